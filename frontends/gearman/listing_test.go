package gearman

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"broker/core"
	"broker/frontends/frontendtest"
	"broker/frontends/gearman/packet"
)

func TestLongListingIsPagedAndPushesFollowIt(t *testing.T) {
	t.Parallel()
	s := frontendtest.Open(t, newMaker(nil), frontendtest.InMemory)
	c, worker := s.Dial("client"), s.Dial("worker")
	const jobs = pageJobs*16 + 7
	var in []byte
	for i := range jobs {
		in = append(in, request(packet.SubmitJob, "f", fmt.Sprint("u", i), "")...)
	}
	c.SendBytes(in)
	for i := range jobs {
		c.WantBytes(answer(packet.JobCreated, fmt.Sprint("H:host:", i+1)))
	}
	worker.SendBytes([]byte(join(request(packet.CanDo, "f"), request(packet.GrabJob))))
	worker.WantBytes(answer(packet.JobAssign, "H:host:1", "f", ""))
	for _, l := range []struct {
		command string
		row     func(i int) string
	}{
		{"show jobs\r\n", func(i int) string { return fmt.Sprintf("H:host:%d\t0\t0\t0\n", i+1) }},
		{"show unique jobs\r\n", func(i int) string { return fmt.Sprintf("u%d\n", i) }},
	} {
		c.SendBytes([]byte(join(l.command, request(packet.EchoReq, "after"))))
		var want strings.Builder
		for i := range jobs {
			want.WriteString(l.row(i))
		}
		c.Want(want.String() + ".\n" + string(answer(packet.EchoRes, "after")))
	}
	worker.SendBytes(request(packet.WorkComplete, "H:host:1", "done"))
	c.WantBytes(answer(packet.WorkComplete, "H:host:1", "done"))
	// After EOF all commands are answered.
	s.Dial("admin").Hangup()
	last := s.Dial("last")
	last.Send("show jobs\n")
	last.EOF()
	if got := strings.Count(last.ReadUntil(".\n"), "\n"); got != jobs {
		t.Errorf("%d lines, want %d", got, jobs)
	}
}

// A client that does not read must not make the session write without limit.
func TestSlowReaderPausesItsInput(t *testing.T) {
	t.Parallel()
	echoes := request(packet.EchoReq, strings.Repeat("x", 200<<10))
	s, conn := open(&fakeBroker{}, testOptions())
	var in []byte
	for range 200 {
		in = append(in, echoes...)
	}
	used := 0
	for {
		n := s.Feed(in[used:])
		if used += n; n == 0 {
			break
		}
	}
	if used == len(in) || conn.out.Len() > 2*fakeOutputLimit+maxPipeline*len(echoes) {
		t.Fatalf("took %d of %d bytes, wrote %d", used, len(in), conn.out.Len())
	}
	conn.taken()
	s.Deliver()
	if n := s.Feed(in[used:]); n == 0 {
		t.Error("nothing is taken once the client has read")
	}
}

func TestListingPausesForASlowReader(t *testing.T) {
	t.Parallel()
	s, conn := open(&fakeBroker{}, testOptions())
	for range 300 {
		w := s.front.workers.add(s.Client+1, 1, "10.0.0.2")
		s.Client++
		s.front.workers.setID(w, strings.Repeat("i", 100_000))
	}
	in := []byte("workers\nversion\n")
	n := s.Feed(in)
	if conn.out.Len() > 2*fakeOutputLimit {
		t.Errorf("%d bytes written for nobody", conn.out.Len())
	}
	var got strings.Builder
	for turn := 0; turn < 1000 && !strings.HasSuffix(got.String(), "OK 1.1.20\n"); turn++ {
		got.WriteString(conn.taken())
		s.Deliver()
		n += s.Feed(in[n:])
	}
	if lines := strings.Count(got.String(), "\n"); lines != 301+1+1 || n != len(in) {
		t.Errorf("%d lines, %d bytes used", lines, n)
	}
}

// Large jobs are sent a few at a time, even if a worker grabs many at once.
func TestLargeJobsAreLeasedFewAtATime(t *testing.T) {
	t.Parallel()
	s := frontendtest.Open(t, newMaker(nil), frontendtest.InMemory)
	client, worker := s.Dial("client"), s.Dial("worker")
	body := strings.Repeat("x", 200<<10)
	const jobs = 40
	for i := range jobs {
		client.SendBytes(request(packet.SubmitJobBg, "f", "", body))
		client.WantBytes(answer(packet.JobCreated, fmt.Sprint("H:host:", i+1)))
	}
	in := request(packet.CanDo, "f")
	for range jobs + 1 {
		in = append(in, request(packet.GrabJob)...)
	}
	worker.SendBytes(in)
	for i := range jobs {
		worker.WantBytes(answer(packet.JobAssign, fmt.Sprint("H:host:", i+1), "f", body))
	}
	worker.WantBytes(answer(packet.NoJob))
}

func TestTooManyFunctionsAreRefused(t *testing.T) {
	t.Parallel()
	s := frontendtest.Open(t, newMaker(nil), frontendtest.InMemory)
	w := s.Dial("worker")
	var in []byte
	for range maxFunctions {
		in = append(in, request(packet.CanDo, "f")...)
	}
	w.SendBytes(in)
	w.WantSilence()
	w.SendBytes(request(packet.CanDo, "f"))
	w.WantBytes(answer(packet.Error, "ARGUMENT_TOO_LARGE", "Too many functions"))
	s.Advance(time.Second)
}

func TestShowUniqueJobsOmitsUnreadableJobs(t *testing.T) {
	t.Parallel()
	b := &fakeBroker{do: func(op core.Op) []core.Reply {
		list, ok := op.(*core.ListJobs)
		if !ok {
			return nil
		}
		return []core.Reply{{Kind: core.Listed, Tag: list.Tag, Jobs: []core.JobInfo{
			{Seq: 1, State: core.Ready, Job: &core.Job{Origin: core.Faktory, ID: "first"}},
			{Seq: 2, State: core.Ready}, // removed in the meantime
			{Seq: 3, State: core.Ready, Job: &core.Job{Origin: core.Faktory, ID: "third"}},
		}}}
	}}
	s, c := open(b, testOptions())
	s.Feed([]byte("show unique jobs\n"))
	if got, want := c.taken(), "first\nthird\n.\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
