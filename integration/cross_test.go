package integration_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	faktory "github.com/contribsys/faktory/client"

	"broker/integration/gearmanclient"
	"broker/integration/harness"
)

func TestCommandLineClientIsAnsweredByANodeWorker(t *testing.T) {
	t.Parallel()
	harness.Need(t, "gearman")
	harness.NeedNode(t)
	b := startShared(t)
	w := nodeWorker(t, b, "reverse=echo")
	// Faktory's ACK has no result: the client receives an empty one.
	equal(t, "output", gearmanCLI(t, b, "hello\n", "-f", "reverse"), "")
	job := w.Await("job", 1)[0]
	equal(t, "args", string(job.Data), `["hello\n"]`)
	equal(t, "note", strings.Contains(string(job.Custom), `"from":"gearman"`), true)
}

func TestAckMayCarryAResult(t *testing.T) {
	t.Parallel()
	b := startShared(t)
	fkt := dialFaktory(t, b)
	for _, e := range []struct{ result, want string }{
		{`"plain text"`, "plain text"},
		{`{"a": 1.50}`, `{"a": 1.50}`},
		{`"caf\u00e9"`, "café"},
		{`[1,2]`, `[1,2]`},
		{`false`, `false`},
	} {
		caller, runner := harness.DialGearman(t, b), harness.DialWorkq(t, b)
		_, err := caller.Submit(gearmanclient.SubmitJob, "acked", "", "question")
		check(t, err)
		job, err := fkt.Fetch("acked")
		check(t, err)
		ack(t, fkt, job.Jid, e.result)
		p, err := caller.Expect(gearmanclient.WorkComplete, harness.Patience)
		check(t, err)
		equal(t, "Gearman's result of "+e.result, p.Args(2)[1], e.want)

		add := wqJob("acked", "question")
		check(t, runner.Add(add))
		job, err = fkt.Fetch("acked")
		check(t, err)
		ack(t, fkt, job.Jid, e.result)
		r, err := runner.Result(add.ID, harness.Patience)
		check(t, err)
		equal(t, "Workq's result of "+e.result, string(r.Body), e.want)
	}
}

func ack(t *testing.T, c *faktory.Client, jid, result string) {
	t.Helper()
	reply, err := c.Generic(fmt.Sprintf(`ACK {"jid":%q,"result":%s}`, jid, result))
	check(t, err)
	equal(t, "ACK", reply, "OK")
}

func TestDataAndWarningsPrecedeTheResult(t *testing.T) {
	t.Parallel()
	b := startShared(t)
	caller, w, wq := harness.DialGearman(t, b), harness.DialGearman(t, b), harness.DialWorkq(t, b)
	check(t, w.Send(gearmanclient.CanDo, "chunks"))
	job := wqJob("chunks", "x")
	check(t, wq.Add(job))
	finish := func() {
		t.Helper()
		handle, _, _, _, err := w.Grab(harness.Patience)
		check(t, err)
		check(t, w.Send(gearmanclient.WorkData, handle, "one "))
		check(t, w.Send(gearmanclient.WorkWarning, handle, "careful"))
		check(t, w.Send(gearmanclient.WorkData, handle, "two "))
		check(t, w.Send(gearmanclient.WorkComplete, handle, "three"))
	}
	finish()
	r, err := wq.Result(job.ID, harness.Patience)
	check(t, err)
	equal(t, "Workq's result", string(r.Body), "one two three")

	_, err = caller.Submit(gearmanclient.SubmitJob, "chunks", "", "x")
	check(t, err)
	finish()
	var seen []string
	for range 4 {
		p, err := caller.Read(harness.Patience)
		check(t, err)
		seen = append(seen, fmt.Sprint(p.Type, " ", p.Args(2)[1]))
	}
	equal(t, "Gearman's packets", seen, []string{"28 one ", "29 careful", "28 two ", "13 three"})
}

func TestJobsAreKnownInEveryProtocol(t *testing.T) {
	t.Parallel()
	b := startShared(t)
	gearman, wq, fkt := harness.DialGearman(t, b), harness.DialWorkq(t, b), dialFaktory(t, b)

	t.Run("gearman job leased and completed over Workq", func(t *testing.T) {
		handle, err := gearman.Submit(gearmanclient.SubmitJob, "known-1", "uniq", "x")
		check(t, err)
		l, err := wq.Lease(harness.Patience, "known-1")
		check(t, err)
		o, err := wq.InspectJob(l.ID)
		check(t, err)
		equal(t, "inspected", o.Name+o.Value("name"), l.ID+"known-1")
		check(t, wq.Complete(l.ID, []byte("done")))
		p, err := gearman.Expect(gearmanclient.WorkComplete, harness.Patience)
		check(t, err)
		equal(t, "completion", p.Args(2), []string{handle, "done"})
	})
	t.Run("Faktory job leased over Workq and acknowledged over Faktory", func(t *testing.T) {
		job := fktJob("known-2", 1)
		job.Jid = "no-uuid-at-all"
		check(t, fkt.Push(job))
		l, err := wq.Lease(harness.Patience, "known-2")
		check(t, err)
		check(t, fkt.Ack(job.Jid))
		wantIsOneOf(t, wq.Complete(l.ID, nil))
		equal(t, "processed", fktState(t, fkt).Data.TotalProcessed >= 1, true)
	})
	t.Run("Workq id is the jid", func(t *testing.T) {
		job := wqJob("known-3", "x")
		check(t, wq.Add(job))
		got, err := fkt.Fetch("known-3")
		check(t, err)
		equal(t, "jid", got.Jid, job.ID)
		check(t, wq.Complete(job.ID, []byte("by the other protocol")))
		check(t, fkt.Ack(job.ID)) // too late; +OK all the same
		r, err := wq.Result(job.ID, 0)
		check(t, err)
		equal(t, "result", string(r.Body), "by the other protocol")
	})
	t.Run("ids are one name space", func(t *testing.T) {
		job := wqJob("known-4", "x")
		check(t, wq.Add(job))
		other := fktJob("known-4", "y")
		other.Jid = job.ID
		if err := fkt.Push(other); err == nil {
			t.Error("a second job with the same id was accepted")
		}
		check(t, wq.Delete(job.ID))
		check(t, fkt.Push(other))
	})
	t.Run("unique of a foreign job is its id", func(t *testing.T) {
		job := wqJob("known-5", "x")
		check(t, wq.Add(job))
		w := harness.DialGearman(t, b)
		check(t, w.Send(gearmanclient.CanDo, "known-5"))
		handle, _, unique, _, err := w.Grab(harness.Patience)
		check(t, err)
		equal(t, "unique", unique, job.ID)
		check(t, w.Send(gearmanclient.WorkStatus, handle, "1", "4"))
		check(t, gearman.Send(gearmanclient.GetStatus, handle))
		p, err := gearman.Expect(gearmanclient.StatusRes, harness.Patience)
		check(t, err)
		equal(t, "known and running", p.Args(5)[1:3], []string{"1", "1"})
	})
}

// wantIsOneOf accepts both refusals of a late completion.
func wantIsOneOf(t testing.TB, err error) {
	t.Helper()
	if err == nil {
		t.Fatal("a completion after the ACK was accepted")
	}
	if text := err.Error(); text != "-NOT-FOUND" && text != "-CLIENT-ERROR Duplicate result" {
		t.Fatalf("a completion after the ACK: %v", err)
	}
}

func TestOneQueueKeepsOneOrderForAllProtocols(t *testing.T) {
	t.Parallel()
	b := startShared(t)
	gearman, wq, fkt := harness.DialGearman(t, b), harness.DialWorkq(t, b), dialFaktory(t, b)
	submitGearman := func(kind gearmanclient.Type, body string) {
		t.Helper()
		_, err := gearman.Submit(kind, "mixed", "", body)
		check(t, err)
	}
	push := func(body string, priority int) {
		t.Helper()
		job := fktJob("mixed", body)
		job.Custom = map[string]any{"priority": priority}
		check(t, fkt.Push(job))
	}
	submitGearman(gearmanclient.SubmitJobLowBg, "5 gearman low")
	check(t, wq.Add(wqJob("mixed", "4 workq normal")))
	push("4 faktory normal", 0)
	submitGearman(gearmanclient.SubmitJobBg, "4 gearman normal")
	check(t, wq.Add(wqJob("mixed", "1 workq 9", "-priority=9")))
	submitGearman(gearmanclient.SubmitJobHighBg, "3 gearman high")
	push("2 faktory 2", 2)
	check(t, wq.Add(wqJob("mixed", "6 workq -9", "-priority=-9")))
	want := []string{
		"1 workq 9", `["2 faktory 2"]`, "3 gearman high", "4 workq normal", `["4 faktory normal"]`, "4 gearman normal",
		"5 gearman low", "6 workq -9",
	}
	var got []string
	for range want {
		l, err := wq.Lease(harness.Patience, "mixed")
		check(t, err)
		got = append(got, string(l.Body))
		check(t, wq.Complete(l.ID, nil))
	}
	equal(t, "order", got, want)
}

func TestPauseAndLimitHoldForEveryProtocol(t *testing.T) {
	t.Parallel()
	b := startShared(t)
	gearman, wq, fkt := harness.DialGearman(t, b), harness.DialWorkq(t, b), dialFaktory(t, b)
	check(t, fkt.Push(fktJob("shared", 1)))
	reply, err := gearman.Admin("maxqueue shared 2")
	check(t, err)
	equal(t, "maxqueue", reply, "OK\r\n")
	check(t, wq.Add(wqJob("shared", "2")))
	if err := wq.Add(wqJob("shared", "3")); err == nil {
		t.Error("Workq add was accepted by a full queue")
	}
	if err := fkt.Push(fktJob("shared", 3)); err == nil {
		t.Error("Faktory push was accepted by a full queue")
	}
	check(t, gearman.Send(gearmanclient.SubmitJobBg, "shared", "", "3"))
	p, err := gearman.Expect(gearmanclient.Error, harness.Patience)
	check(t, err)
	equal(t, "Gearman's refusal", p.Args(2)[0], "QUEUE_ERROR")

	check(t, fkt.PauseQueues("shared"))
	_, err = wq.Lease(0, "shared")
	if err == nil {
		t.Error("Workq leased from a paused queue")
	}
	check(t, gearman.Send(gearmanclient.CanDo, "shared"))
	check(t, gearman.Send(gearmanclient.GrabJobUniq))
	_, err = gearman.Expect(gearmanclient.NoJob, harness.Patience)
	check(t, err)
	check(t, gearman.Send(gearmanclient.PreSleep))
	check(t, fkt.ResumeQueues("shared"))
	_, err = gearman.Expect(gearmanclient.Noop, harness.Patience)
	check(t, err)
}

func TestFaktoryTotalsCountJobsOfAnyOrigin(t *testing.T) {
	t.Parallel()
	b := startShared(t)
	fkt, wq := dialFaktory(t, b), harness.DialWorkq(t, b)
	for i := range 3 {
		job := wqJob("counted", "x")
		check(t, wq.Add(job))
		_, err := fkt.Fetch("counted")
		check(t, err)
		equal(t, "working", fktState(t, fkt).Data.Sets["working"], uint64(1))
		if i == 0 {
			check(t, fkt.Fail(job.ID, errors.New("it broke"), nil))
		} else {
			check(t, fkt.Ack(job.ID))
		}
	}
	state := fktState(t, fkt).Data
	equal(t, "processed and failed", fmt.Sprint(state.TotalProcessed, state.TotalFailures), "3 1")
}

func TestPasswordDoesNotShutOtherProtocolsOut(t *testing.T) {
	t.Parallel()
	harness.Need(t, "gearman")
	harness.BrokerOnly(t)
	b := harness.Start(t, harness.Options{Password: "secret"})
	w := goWorker(t, b, "crossing=echo")
	gearmanCLI(t, b, "hello", "-b", "-f", "crossing")
	equal(t, "args", string(w.Await("job", 1)[0].Data), `["hello"]`)
	wq := harness.DialWorkq(t, b)
	job := wqJob("crossing", "again")
	check(t, wq.Add(job))
	r, err := wq.Result(job.ID, harness.Patience)
	check(t, err)
	equal(t, "success", r.OK, true)
}
