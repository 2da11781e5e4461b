package crossprotocol

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"broker/core"
	"broker/frontends/frontendtest"
)

// jobNames are the ids of one job.
type jobNames struct{ handle, workqID, jid string }

// submitAs submits a job with a protocol and returns its ids.
func (e *env) submitAs(protocol core.Protocol, queue string, n int) jobNames {
	e.t.Helper()
	own := jid(n)
	switch protocol {
	case core.Workq:
		c := e.dial(e.workq)
		c.Send(fmt.Sprintf("add %s %s 60000 3600000 2\r\nhi\r\n", id4(n), queue))
		c.Want("+OK\r\n")
		own = id4(n)
	case core.Gearman:
		c := e.dial(e.gearman)
		c.SendBytes(packet(submitJobBg, queue, "", "hi"))
		e.one(c, jobCreated)
	case core.Faktory:
		c := e.dialFaktory("")
		c.Send(fmt.Sprintf("PUSH {\"jid\":%q,\"jobtype\":\"T\",\"queue\":%q,\"args\":[],\"custom\":{\"track\":1}}\r\n",
			own, queue))
		c.Want("+OK\r\n")
	case core.Internal:
	}
	seq := e.newest(queue)
	names := jobNames{handle: fmt.Sprint("H:host:", seq), workqID: core.Alias(seq), jid: own}
	switch protocol {
	case core.Workq:
		names.workqID = own
	case core.Gearman:
		names.jid = core.MintedID(seq, e.workq.Clock.Now())
	case core.Faktory, core.Internal:
	}
	return names
}

// id4 is a UUIDv4.
func id4(n int) string { return fmt.Sprintf("6ba7b810-9dad-41d1-a0b4-%012x", n) }

// jid is not a UUID: Workq uses an alias for it.
func jid(n int) string { return fmt.Sprintf("jid-%08d", n) }

// TestEveryNameWorksInItsProtocol uses the three ids of a job in every command that takes one.
func TestEveryNameWorksInItsProtocol(t *testing.T) {
	t.Parallel()
	for _, protocol := range []core.Protocol{core.Workq, core.Gearman, core.Faktory} {
		e := newEnv(t)
		wq, g, f := e.dial(e.workq), e.dial(e.gearman), e.dialFaktory("names")
		fresh := func(n int) jobNames { return e.submitAs(protocol, fmt.Sprint("q", n), n) }

		job := fresh(1) // status requests
		g.SendBytes(packet(getStatus, job.handle))
		if got := e.one(g, statusRes).fields[1:3]; got[0] != "1" || got[1] != "0" {
			t.Errorf("%v: GET_STATUS %v", protocol, got)
		}
		wq.Send("inspect job " + job.workqID + "\r\n")
		if got := string(wq.Rest()); !strings.HasPrefix(got, "+OK 1\r\n"+job.workqID+" ") {
			t.Errorf("%v: inspect job: %q", protocol, got)
		}
		f.Send("TRACK GET " + job.jid + "\r\n")
		if got := e.bulk(f); !strings.Contains(got, `"state":"enqueued"`) {
			t.Errorf("%v: TRACK GET: %s", protocol, got)
		}

		g.Send("cancel job " + job.handle + "\r\n")
		g.Want("OK\r\n")
		wq.Send("inspect job " + job.workqID + "\r\n")
		wq.Want("-NOT-FOUND\r\n")

		job = fresh(2) // deleted with Workq
		wq.Send("delete " + job.workqID + "\r\n")
		wq.Want("+OK\r\n")
		g.SendBytes(packet(getStatus, job.handle))
		if got := e.one(g, statusRes).fields[1]; got != "0" {
			t.Errorf("%v: a deleted job is known", protocol)
		}

		job = fresh(3) // finished with Workq, without a lease
		wq.Send("complete " + job.workqID + " 0\r\n\r\n")
		wq.Want("+OK\r\n")

		job = fresh(4) // finished with Faktory
		f.Send("FETCH q4\r\n")
		if got := e.bulk(f); !strings.Contains(got, fmt.Sprintf(`"jid":%q`, job.jid)) {
			t.Errorf("%v: fetched %s, not %s", protocol, got, job.jid)
		}
		f.Send(fmt.Sprintf("ACK {\"jid\":%q}\r\n", job.jid))
		f.Want("+OK\r\n")
		g.SendBytes(packet(getStatus, job.handle))
		if got := e.one(g, statusRes).fields[1]; got != "0" {
			t.Errorf("%v: a job that was acknowledged is known", protocol)
		}

		job = fresh(5) // its id is in use in every protocol
		if protocol != core.Gearman {
			f.Send(fmt.Sprintf("PUSH {\"jid\":%q,\"jobtype\":\"other\",\"args\":[]}\r\n", job.jid))
			if got := string(f.Rest()); !strings.HasPrefix(got, "-ERR ") {
				t.Errorf("%v: a second job with its jid: %q", protocol, got)
			}
		}
		wq.Send("add " + job.workqID + " q5 60000 60000 0\r\n\r\n")
		if got := string(wq.Rest()); !strings.HasPrefix(got, "-CLIENT-ERROR ") {
			t.Errorf("%v: a second job with its Workq id: %q", protocol, got)
		}
	}
}

// A job of each protocol gets a successor and a child for each of its ids.
func TestWorkqLinksTakeNamesOfEveryProtocol(t *testing.T) {
	t.Parallel()
	for _, protocol := range []core.Protocol{core.Workq, core.Gearman, core.Faktory} {
		e := newEnv(t)
		wq := e.dial(e.workq)
		job := e.submitAs(protocol, "first", 1)
		names := []string{job.handle, job.workqID, job.jid, strings.ToUpper(job.workqID), "urn:uuid:" + job.workqID}
		for i, name := range names {
			for j, flag := range []string{"-after=", "-parent="} {
				wq.Send(fmt.Sprintf("add %s next 60000 3600000 0 %s%s\r\n\r\n", id4(10+2*i+j), flag, name))
				if got := string(wq.Rest()); got != "+OK\r\n" {
					t.Errorf("%v: %s%s: %q", protocol, flag, name, got)
				}
			}
		}
		wq.Send("lease next 0\r\n")
		wq.Want("-TIMEOUT\r\n")
		wq.Send("complete " + job.workqID + " 0\r\n\r\n")
		wq.Want("+OK\r\n")
		for range names { // children first, because successors wait for them too
			wq.Send("lease next 0\r\n")
			child := strings.Fields(string(wq.Rest()))[2]
			if n := child[len(child)-1]; strings.IndexByte("13579bdf", n) < 0 {
				t.Errorf("%v: %s is not a child", protocol, child)
			}
			wq.Send("complete " + child + " 0\r\n\r\n")
			wq.Want("+OK\r\n")
		}
		for range names {
			wq.Send("lease next 0\r\n")
			if got := string(wq.Rest()); !strings.HasPrefix(got, "+OK 1\r\n") {
				t.Errorf("%v: a successor is not ready: %q", protocol, got)
			}
		}
		wq.Send("lease next 0\r\n")
		wq.Want("-TIMEOUT\r\n")
	}
}

// The outcome is only in the store when TRACK GET asks for it.
func TestTrackGetReportsTheOutcomeOfAWorkqJob(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	wq, f := e.dial(e.workq), e.dialFaktory("")
	for i, end := range []struct{ verb, state string }{{"complete", "success"}, {"fail", "failed"}} {
		job := e.submitAs(core.Workq, "q", i+1)
		wq.Send(fmt.Sprintf("%s %s 2\r\nso\r\n", end.verb, job.workqID))
		wq.Want("+OK\r\n")
		f.Send("TRACK GET " + job.jid + "\r\n")
		if got := e.bulk(f); !strings.Contains(got, fmt.Sprintf(`"state":%q`, end.state)) {
			t.Errorf("after %s: %s", end.verb, got)
		}
	}
}

func TestProgressIsReadAcrossProtocols(t *testing.T) {
	t.Parallel()
	e := newEnv(t, frontendtest.InMemory)
	g, f := e.dial(e.gearman), e.dialFaktory("progress")

	job := e.submitAs(core.Faktory, "by-gearman", 1)
	g.SendBytes(packet(canDo, "by-gearman"))
	g.SendBytes(packet(grabJobUniq))
	e.one(g, jobAssignUniq)
	g.SendBytes(packet(workStatus, job.handle, "1", "4"))
	f.Send("TRACK GET " + job.jid + "\r\n")
	if got := e.bulk(f); !strings.Contains(got, `"percent":25`) || !strings.Contains(got, `"state":"working"`) {
		t.Errorf("TRACK GET of 1 of 4: %s", got)
	}

	client := e.dial(e.gearman)
	client.SendBytes(packet(submitJob, "by-faktory", "", "x"))
	handle := e.one(client, jobCreated).fields[0]
	f.Send("FETCH by-faktory\r\n")
	var fetched struct{ Jid string }
	e.object(f, &fetched)
	f.Send(fmt.Sprintf("TRACK SET {\"jid\":%q,\"percent\":40,\"desc\":\"on it\"}\r\n", fetched.Jid))
	f.Want("+OK\r\n")
	if got := describe(e.answers(client)); got != "WORK_STATUS 40 100" {
		t.Errorf("the foreground client got %q", got)
	}
	g.SendBytes(packet(getStatus, handle))
	if got := e.one(g, statusRes).fields[1:]; strings.Join(got, " ") != "1 1 40 100" {
		t.Errorf("GET_STATUS of 40 %%: %v", got)
	}
}

// TestPausedThrottledAndFullQueuesInEveryProtocol checks the replies that docs/sharing.md lists.
func TestPausedThrottledAndFullQueuesInEveryProtocol(t *testing.T) {
	t.Parallel()
	for what, hold := range map[string]core.Op{
		"pause": &core.PauseQueue{Queue: "q", Paused: true},
		"throttle": &core.PutLimit{Limit: core.Limit{
			Selector: core.InQueue("q", core.ScopeQueue, ""), Throttle: core.Throttle{Leased: 1}, FromConfig: true,
		}},
	} {
		e := newEnv(t, frontendtest.InMemory)
		e.submitAs(core.Workq, "q", 1)
		e.submitAs(core.Gearman, "q", 2)
		e.submitAs(core.Faktory, "q", 3)
		if what == "throttle" {
			c := e.dial(e.workq)
			c.Send("lease q 0\r\n")
			c.Rest()
		}
		e.do(hold)
		g, wq, f := e.dial(e.gearman), e.dial(e.workq), e.dialFaktory("held")
		g.SendBytes(packet(canDo, "q"))
		g.SendBytes(packet(grabJobUniq))
		e.one(g, noJob)
		g.SendBytes(packet(preSleep))
		g.WantSilence()
		wq.Send("lease q 1000\r\n")
		f.Send("FETCH q\r\n")
		e.advance(2100 * time.Millisecond)
		wq.Want("-TIMEOUT\r\n")
		f.Want("$-1\r\n")
		g.WantSilence()
	}
	e := newEnv(t, frontendtest.InMemory)
	e.submitAs(core.Workq, "q", 1)
	e.do(&core.SetQueueMax{Queue: "q", Max: core.QueueMax{High: 1, Normal: 1, Low: 1}})
	g, wq, f := e.dial(e.gearman), e.dial(e.workq), e.dialFaktory("")
	for _, typ := range []uint32{submitJob, submitJobBg, submitJobHigh, submitJobLowBg} {
		g.SendBytes(packet(typ, "q", "", "x"))
		if got := describe(e.answers(g)); got != "ERROR QUEUE_ERROR" {
			t.Errorf("a full queue is %q to Gearman", got)
		}
	}
	for _, line := range []string{"add %s q 1000 60000 0\r\n\r\n", "run %s q 1000 60000 0\r\n\r\n"} {
		wq.Send(fmt.Sprintf(line, id4(2)))
		if got := string(wq.Rest()); !strings.HasPrefix(got, "-SERVER-ERROR ") {
			t.Errorf("a full queue is %q to Workq", got)
		}
	}
	f.Send(fmt.Sprintf("PUSH {\"jid\":%q,\"jobtype\":\"T\",\"queue\":\"q\",\"args\":[]}\r\n", jid(4)))
	if got := string(f.Rest()); !strings.HasPrefix(got, "-ERR ") {
		t.Errorf("a full queue is %q to Faktory", got)
	}
}
