package crossprotocol

import (
	"fmt"
	"strings"
	"testing"

	"broker/core"
	"broker/frontends/frontendtest"
)

// askToStop asks the worker of a job to stop.
func (e *env) askToStop(seq uint64) {
	e.t.Helper()
	if r := e.do(&core.Cancel{Ref: core.Ref{Seq: seq}, Running: core.RunningSignal}); r.Kind != core.Accepted ||
		!r.CancelRequested {
		e.t.Fatalf("%+v", r)
	}
}

func TestFaktoryHeartbeatNamesJobsToStop(t *testing.T) {
	t.Parallel()
	e := newEnv(t, frontendtest.InMemory)
	c, other := e.dialFaktory("w"), e.dialFaktory("v")
	for i := range 3 {
		c.Send(fmt.Sprintf("PUSH {\"jid\":\"job-0000%d\",\"jobtype\":\"x\",\"queue\":%q,\"args\":[]}\r\n", i, queue))
		c.Want("+OK\r\n")
	}
	first := e.newest(queue)
	for range 3 {
		c.Send("FETCH " + queue + "\r\n")
		e.bulk(c)
	}
	beat := "BEAT {\"wid\":\"w\"}\r\n"
	c.Send(beat)
	c.Want("+OK\r\n")
	e.askToStop(first)
	e.askToStop(first - 2)
	other.Send("BEAT {\"wid\":\"v\"}\r\n")
	other.Want("+OK\r\n")
	for range 2 {
		c.Send(beat)
		if got := e.bulk(c); got != `{"cancel":["job-00000","job-00002"]}` {
			t.Errorf("heartbeat: %s", got)
		}
	}
	c.Send("BEAT {\"wid\":\"w\",\"current_state\":\"quiet\"}\r\n")
	if got := e.bulk(c); got != `{"state":"quiet","cancel":["job-00000","job-00002"]}` {
		t.Errorf("heartbeat of a quiet worker: %s", got)
	}
	c.Send("FAIL {\"jid\":\"job-00000\",\"errtype\":\"E\",\"message\":\"stopped\"}\r\nACK {\"jid\":\"job-00002\"}\r\n")
	c.Want("+OK\r\n+OK\r\n")
	if a, b := e.state(first-2), e.state(first); a != "gone" || b != "gone" {
		t.Errorf("the job that failed is %s, the one that was completed is %s", a, b)
	}
	c.Send(beat)
	if got := e.bulk(c); got != `{"state":"quiet"}` {
		t.Errorf("heartbeat after their ends: %s", got)
	}
}

func TestQlessWorkerIsSentTheMessageOfACancel(t *testing.T) {
	t.Parallel()
	e := newEnv(t, frontendtest.InMemory)
	c := e.dialQless()
	c.call("put", "me", queue, id, queue, `{}`, "0")
	c.call("pop", queue, "w", "1")
	listener := qlessClient{e.dial(c.stage), e, c.stage}
	listener.Send("SUBSCRIBE ql:w:w\r\n")
	listener.Rest()
	r := e.do(&core.Inspect{Ref: core.Ref{ID: id}, Brief: true})
	e.askToStop(r.Info.Seq)
	if got := c.job(id).State; got != "running" {
		t.Errorf("the job that is to stop is %s", got)
	}
	c.stage.Settle()
	if got := string(listener.Rest()); !strings.Contains(got, `"event":"canceled"`) || !strings.Contains(got, id) {
		t.Errorf("the worker was sent %q", got)
	}
	if got := c.call("fail", id, "w", "stopped", "no way"); strings.HasPrefix(got, "-") {
		t.Errorf("fail: %s", got)
	}
	if got := e.state(r.Info.Seq); got != "gone" {
		t.Errorf("in the end the job is %s", got)
	}
	if got := c.job(id).State; got != "unknown" {
		t.Errorf("in the end Qless has it as %s", got)
	}
}

// Workers of protocols without a stop request end the job in their own way.
func TestWorkersOfEveryProtocolCanEndAJobWithARequestedCancel(t *testing.T) {
	t.Parallel()
	for _, k := range workerKinds() {
		for _, success := range []bool{true, false} {
			e := newEnv(t, frontendtest.InMemory)
			seq := e.do(&core.Submit{Job: &core.Job{
				Queue: queue, ID: id, MaxFails: 9, Origin: core.Faktory, RetainFor: ttl,
			}}).Seq
			e.jobSeq, e.jobID = seq, id
			w := k.take(e)
			if w == nil {
				t.Fatalf("%s: no job", k.name)
			}
			e.askToStop(seq)
			w.finish(success)
			info := e.do(&core.Inspect{Ref: core.Ref{Seq: seq}}).Info
			want := core.Cancelled
			if success {
				want = core.Finished
			}
			if info == nil || info.State != core.Done || info.Outcome.Success != success || info.Outcome.Cause != want {
				t.Errorf("%s, success %v: %+v", k.name, success, info)
			}
		}
	}
}
