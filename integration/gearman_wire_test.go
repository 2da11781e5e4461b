package integration_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"broker/integration/gearmanclient"
	"broker/integration/harness"
)

// jobStatus is the reply to GET_STATUS: known, running, numerator, denominator.
func jobStatus(t testing.TB, c *gearmanclient.Client, handle string) string {
	t.Helper()
	check(t, c.Send(gearmanclient.GetStatus, handle))
	p, err := c.Expect(gearmanclient.StatusRes, harness.Patience)
	check(t, err)
	return strings.Join(p.Args(5)[1:], " ")
}

func TestGearmanStatusOfAJobThroughItsLife(t *testing.T) {
	t.Parallel()
	b := start(t)
	c, w := harness.DialGearman(t, b), harness.DialGearman(t, b)
	handle, err := c.Submit(gearmanclient.SubmitJobBg, "life", "", "body")
	check(t, err)
	equal(t, "waiting", jobStatus(t, c, handle), "1 0 0 0")
	check(t, w.Send(gearmanclient.CanDo, "life"))
	got, function, unique, body, err := w.Grab(harness.Patience)
	check(t, err)
	equal(t, "assignment", []string{got, function, unique, body}, []string{handle, "life", "", "body"})
	equal(t, "running", jobStatus(t, c, handle), "1 1 0 0")
	check(t, w.Send(gearmanclient.WorkStatus, handle, "3", "10"))
	harness.Eventually(t, func() string {
		if s := jobStatus(t, c, handle); s != "1 1 3 10" {
			return s
		}
		return ""
	})
	check(t, w.Send(gearmanclient.WorkComplete, handle, "ignored"))
	harness.Eventually(t, func() string {
		if s := jobStatus(t, c, handle); s != "0 0 0 0" {
			return s
		}
		return ""
	})
}

func TestGearmanForegroundJobIsDroppedWithItsLastClient(t *testing.T) {
	t.Parallel()
	b := start(t)
	first, second := harness.DialGearman(t, b), harness.DialGearman(t, b)
	one, err := first.Submit(gearmanclient.SubmitJob, "leaving", "key", "body")
	check(t, err)
	two, err := second.Submit(gearmanclient.SubmitJob, "leaving", "key", "other body")
	check(t, err)
	equal(t, "both clients wait for one job", two, one)
	check(t, first.Close())
	// The status is read on another connection, which may be served before the first one's end.
	equal(t, "with one client left", statusRow(t, b, "leaving"), "1 0 0")
	check(t, second.Close())
	harness.Eventually(t, func() string {
		// gearmand notices when a worker asks for it.
		w := harness.DialGearman(t, b)
		defer func() { _ = w.Close() }()
		check(t, w.Send(gearmanclient.CanDo, "leaving"))
		check(t, w.Send(gearmanclient.GrabJobUniq))
		p, err := w.Read(harness.Patience)
		check(t, err)
		if p.Type != gearmanclient.NoJob {
			return p.String()
		}
		return ""
	})
}

func TestGearmanSleepingWorkerIsWoken(t *testing.T) {
	t.Parallel()
	b := start(t)
	c, w := harness.DialGearman(t, b), harness.DialGearman(t, b)
	check(t, w.Send(gearmanclient.CanDo, "sleepy"))
	for range 20 {
		check(t, w.Send(gearmanclient.GrabJobUniq))
		_, err := w.Expect(gearmanclient.NoJob, harness.Patience)
		check(t, err)
		check(t, w.Send(gearmanclient.PreSleep))
		_, err = c.Submit(gearmanclient.SubmitJobBg, "sleepy", "", "x")
		check(t, err)
		_, err = w.Expect(gearmanclient.Noop, harness.Patience)
		check(t, err)
		handle, _, _, _, err := w.Grab(harness.Patience)
		check(t, err)
		check(t, w.Send(gearmanclient.WorkComplete, handle, ""))
	}
}

func TestGearmanOneJobWakesOnlyAHandfulOfSleepers(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	b := start(t)
	const sleepers = 1000
	workers := make([]*gearmanclient.Client, sleepers)
	for i := range workers {
		workers[i] = harness.DialGearman(t, b)
		check(t, workers[i].Send(gearmanclient.CanDo, "crowd"))
		check(t, workers[i].Send(gearmanclient.PreSleep))
		// The echo follows once the packets before it were processed.
		check(t, workers[i].Send(gearmanclient.EchoReq, "asleep"))
		_, err := workers[i].Expect(gearmanclient.EchoRes, harness.Patience)
		check(t, err)
	}
	c := harness.DialGearman(t, b)
	_, err := c.Submit(gearmanclient.SubmitJobBg, "crowd", "", "x")
	check(t, err)
	taken, woken := 0, 0
	harness.Eventually(t, func() string {
		for i, w := range workers {
			if w == nil {
				continue
			}
			_, err := w.Expect(gearmanclient.Noop, time.Millisecond)
			if isTimeout(err) {
				continue
			}
			check(t, err)
			woken++
			workers[i] = nil
			handle, _, _, _, err := w.Grab(harness.Patience)
			check(t, err)
			check(t, w.Send(gearmanclient.WorkComplete, handle, ""))
			taken++
			break
		}
		if taken == 0 {
			return "nobody was woken"
		}
		return ""
	})
	for _, w := range workers {
		if w == nil {
			continue
		}
		// A NOOP that was sent before precedes the echo.
		check(t, w.Send(gearmanclient.EchoReq, "still asleep"))
		p, err := w.Read(harness.Patience)
		check(t, err)
		if p.Type == gearmanclient.Noop {
			woken++
		}
	}
	if woken > 5 {
		t.Errorf("one job woke %d of %d sleeping workers", woken, sleepers)
	}
}

func TestGearmanTextAndBinaryMixOnOneConnection(t *testing.T) {
	t.Parallel()
	b := start(t)
	c := harness.DialGearman(t, b)
	mixed := gearmanclient.Append(nil, gearmanclient.EchoReq, "one")
	mixed = append(mixed, "version\r\n"...)
	mixed = gearmanclient.Append(mixed, gearmanclient.EchoReq, "two")
	check(t, c.Write(mixed))
	p, err := c.Expect(gearmanclient.EchoRes, harness.Patience)
	check(t, err)
	equal(t, "first echo", string(p.Data), "one")
	line, err := c.Admin("status")
	check(t, err)
	equal(t, "version", strings.HasPrefix(line, "OK "), true)
	p, err = c.Expect(gearmanclient.EchoRes, harness.Patience)
	check(t, err)
	equal(t, "second echo", string(p.Data), "two")
	dot, err := c.Admin("nonsense here")
	check(t, err)
	equal(t, "status of nothing", dot, ".\n")
}

func TestGearmanExceptionsNeedTheOption(t *testing.T) {
	t.Parallel()
	b := start(t)
	asking, plain, w := harness.DialGearman(t, b), harness.DialGearman(t, b), harness.DialGearman(t, b)
	check(t, asking.Send(gearmanclient.OptionReq, "exceptions"))
	p, err := asking.Expect(gearmanclient.OptionRes, harness.Patience)
	check(t, err)
	equal(t, "option", string(p.Data), "exceptions")
	for _, c := range []*gearmanclient.Client{asking, plain} {
		_, err := c.Submit(gearmanclient.SubmitJob, "throws", "key", "x")
		check(t, err)
	}
	check(t, w.Send(gearmanclient.CanDo, "throws"))
	handle, _, _, _, err := w.Grab(harness.Patience)
	check(t, err)
	check(t, w.Send(gearmanclient.WorkException, handle, "oh dear"))
	p, err = asking.Expect(gearmanclient.WorkException, harness.Patience)
	check(t, err)
	equal(t, "exception", p.Args(2), []string{handle, "oh dear"})
	p, err = plain.Expect(gearmanclient.WorkFail, harness.Patience)
	check(t, err)
	equal(t, "fail", strings.TrimRight(string(p.Data), "\x00"), handle)
	check(t, w.Send(gearmanclient.WorkFail, handle))
	p, err = w.Expect(gearmanclient.Error, harness.Patience)
	check(t, err)
	equal(t, "fail after the exception", p.Args(2)[0], "JOB_NOT_FOUND")
}

func TestGearmanBadPacketsHurtOnlyTheirConnection(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t) // gearmand hangs or crashes on some of these
	b := start(t)
	bystander := harness.DialGearman(t, b)
	for name, bytes := range map[string]string{
		"type 0":              "\x00REQ\x00\x00\x00\x00\x00\x00\x00\x00",
		"type 43":             "\x00REQ\x00\x00\x00\x2b\x00\x00\x00\x00",
		"type above 2^31":     "\x00REQ\xff\xff\xff\xff\x00\x00\x00\x00",
		"too few arguments":   "\x00REQ\x00\x00\x00\x12\x00\x00\x00\x03abc",
		"a size of four GiB":  "\x00REQ\x00\x00\x00\x12\xff\xff\xff\xff",
		"bad magic":           "\x00BAD\x00\x00\x00\x12\x00\x00\x00\x00",
		"a timeout too large": "\x00REQ\x00\x00\x00\x17\x00\x00\x00\x16f\x0099999999999999999999",
		"random":              "\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d",
	} {
		c, err := gearmanclient.Dial(b.Gearman)
		check(t, err)
		check(t, c.Write([]byte(bytes)))
		check(t, c.Send(gearmanclient.EchoReq, "after"))
		// An error, a close or, if the packet was valid, the echo: anything but silence.
		if _, err := c.Read(harness.Patience); isTimeout(err) {
			t.Errorf("%s: neither a reply nor a close", name)
		}
		check(t, c.Close())
		check(t, bystander.Send(gearmanclient.EchoReq, name))
		p, err := bystander.Expect(gearmanclient.EchoRes, harness.Patience)
		check(t, err)
		equal(t, "echo of the bystander", string(p.Data), name)
	}
}

func TestGearmanLargeWorkloadPasses(t *testing.T) {
	t.Parallel()
	b := start(t)
	c, w := harness.DialGearman(t, b), harness.DialGearman(t, b)
	// The limit of the packet is 64 MiB; the other arguments need some of it.
	body := strings.Repeat("0123456789abcdef", 4<<20-64)
	check(t, w.Send(gearmanclient.CanDo, "large"))
	handle, err := c.Submit(gearmanclient.SubmitJob, "large", "", body)
	check(t, err)
	_, _, _, got, err := w.Grab(harness.Patience)
	check(t, err)
	equal(t, "workload unchanged", got == body, true)
	check(t, w.Send(gearmanclient.WorkComplete, handle, body))
	p, err := c.Expect(gearmanclient.WorkComplete, harness.Patience)
	check(t, err)
	equal(t, "result unchanged", p.Args(2)[1] == body, true)
}

func TestGearmanWorkloadBeyondTheLimitIsRefused(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	b := start(t)
	for _, front := range []string{
		"\x00REQ\x00\x00\x00\x12\x10\x00\x00\x00f\x00\x00",
		"\x00REQ\x00\x00\x00\x12\x04\x00\x00\x05f\x00u\x00", // 64 MiB and one byte
	} {
		wantTooLarge(t, harness.DialGearman(t, b), []byte(front))
	}
}

// wantTooLarge sends the start of a packet that must be refused.
func wantTooLarge(t *testing.T, c *gearmanclient.Client, front []byte) {
	t.Helper()
	check(t, c.Write(front))
	p, err := c.Expect(gearmanclient.Error, harness.Patience)
	check(t, err)
	equal(t, "code", p.Args(2)[0], "ARGUMENT_TOO_LARGE")
	if _, err := c.Read(harness.Patience); !errors.Is(err, io.EOF) {
		t.Errorf("after the refusal: %v instead of the end of the connection", err)
	}
}

func TestGearmanResultBeyondTheLimitEndsItsJob(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	b := start(t)
	c, w := harness.DialGearman(t, b), harness.DialGearman(t, b)
	_, err := c.Submit(gearmanclient.SubmitJob, "too-much", "", "x")
	check(t, err)
	check(t, w.Send(gearmanclient.CanDo, "too-much"))
	handle, _, _, _, err := w.Grab(harness.Patience)
	check(t, err)
	head := gearmanclient.Append(nil, gearmanclient.WorkComplete)[:8]
	head = binary.BigEndian.AppendUint32(head, uint32(len(handle)+1+64<<20+1))
	wantTooLarge(t, w, append(append(head, handle...), 0))
	p, err := c.Expect(gearmanclient.WorkFail, harness.Patience)
	check(t, err)
	equal(t, "handle", p.Args(1)[0], handle)
	equal(t, "the job is gone", jobStatus(t, c, handle)[:1], "0")
}

func TestGearmanFullQueueRefusesInItsOwnWords(t *testing.T) {
	t.Parallel()
	b := start(t)
	c := harness.DialGearman(t, b)
	_, err := c.Submit(gearmanclient.SubmitJobBg, "bounded", "", "x")
	check(t, err)
	reply, err := c.Admin("maxqueue bounded 2") // gearmand ignores it for an unknown function
	check(t, err)
	equal(t, "maxqueue", reply, "OK\r\n")
	_, err = c.Submit(gearmanclient.SubmitJobBg, "bounded", "", "x")
	check(t, err)
	check(t, c.Send(gearmanclient.SubmitJobBg, "bounded", "", "x"))
	p, err := c.Expect(gearmanclient.Error, harness.Patience)
	check(t, err)
	equal(t, "error", p.Args(2), []string{"QUEUE_ERROR", "Job queue is full"})
}

func TestGearmanStatusListsAThousandFunctions(t *testing.T) {
	t.Parallel()
	b := start(t)
	c := harness.DialGearman(t, b)
	const functions, jobs = 1000, 20
	var want []string
	for i := range functions {
		var burst []byte
		for range jobs {
			burst = gearmanclient.Append(burst, gearmanclient.SubmitJobBg, fmt.Sprintf("function-%04d", i), "", "x")
		}
		check(t, c.Write(burst))
		for range jobs {
			_, err := c.Expect(gearmanclient.JobCreated, harness.Patience)
			check(t, err)
		}
		want = append(want, fmt.Sprintf("function-%04d\t%d\t0\t0", i, jobs))
	}
	begin := time.Now()
	rows, err := c.AdminList("status")
	check(t, err)
	took := time.Since(begin)
	slices.Sort(rows)
	equal(t, "status", strings.Join(rows, "\n") == strings.Join(want, "\n"), true)
	harness.CheckDuration(t, "the status of a thousand functions", took, 5*time.Second)
}
