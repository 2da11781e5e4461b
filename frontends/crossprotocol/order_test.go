package crossprotocol

import (
	"errors"
	"testing"
	"time"

	"broker/core"
	"broker/frontends/frontendtest"
)

// meet connects a worker of one kind, then a worker of another kind, for the same queue.
func meet(t *testing.T, play func(e *env, first, second workerKind)) {
	t.Helper()
	for _, first := range workerKinds() {
		for _, second := range workerKinds() {
			t.Run(first.name+", "+second.name, func(t *testing.T) {
				t.Parallel()
				play(newEnv(t, frontendtest.InMemory), first, second)
			})
		}
	}
}

// admit submits a job that workers of all protocols can take.
func (e *env) admit(job core.Job) uint64 {
	e.t.Helper()
	job.Queue, job.MaxFails, job.Backoff, job.Origin, job.RetainFor = queue, 9, core.BackoffFaktory, core.Faktory, ttl
	r := e.do(&core.Submit{Job: &job})
	if r.Kind != core.Submitted {
		e.t.Fatalf("submit: %+v", r)
	}
	return r.Seq
}

// takes makes a worker take the next job, which must be this one.
func (e *env) takes(k workerKind, seq uint64, jid string) *worker {
	e.t.Helper()
	e.jobSeq, e.jobID = seq, jid
	w := k.take(e)
	if w == nil || e.state(seq) != "leased" {
		e.t.Fatalf("the %s does not get job %d, which is %s", k.name, seq, e.state(seq))
	}
	return w
}

// takesNothing checks that a worker gets no job.
func (e *env) takesNothing(k workerKind) {
	e.t.Helper()
	if k.take(e) != nil {
		e.t.Errorf("the %s gets a job", k.name)
	}
}

// In an ordered queue the second job of a key waits for the first one, whichever protocol runs it, and also while the
// first waits for its retry.
func TestJobsOfAKeyKeepTheirOrderForWorkersOfEveryProtocol(t *testing.T) {
	t.Parallel()
	meet(t, func(e *env, first, second workerKind) {
		e.do(&core.ShareQueue{Sharing: core.Sharing{
			Queue: queue, Key: core.JobKey{Kind: core.KeyTag, Tag: "k"}, Ordered: true,
		}})
		one := e.admit(core.Job{ID: "order-0001", Tags: []string{"k:a"}})
		two := e.admit(core.Job{ID: "order-0002", Tags: []string{"k:a"}})
		w := e.takes(first, one, "order-0001")
		e.takesNothing(second)
		w.finish(false)
		if got := e.state(one); got != "retrying" {
			e.t.Fatalf("the first job is %s", got)
		}
		e.takesNothing(second)
		e.advance(time.Hour)
		e.takes(first, one, "order-0001").finish(true)
		e.takes(second, two, "order-0002").finish(true)
		if got := e.state(two); got != "done" {
			e.t.Errorf("the second job is %s", got)
		}
	})
}

// A later submission with the same key changes a waiting job. It does not change a running job.
func TestJobsThatAWorkerHasAreNotReplaced(t *testing.T) {
	t.Parallel()
	meet(t, func(e *env, first, second workerKind) {
		replace := func(body string) core.Reply {
			return e.do(&core.Submit{Job: &core.Job{
				Queue: queue, Body: []byte(body), Format: core.Args, UniqueKey: "k", Unique: core.UniqueReplace,
			}})
		}
		seq := e.admit(core.Job{
			ID: "order-0001", Body: []byte(`["old"]`), Format: core.Args, UniqueKey: "k", Unique: core.UniqueRefuse,
		})
		if r := replace(`["new"]`); r.Seq != seq || !r.Existing {
			e.t.Fatalf("while it waits: %+v", r)
		}
		for _, k := range []workerKind{first, second} {
			w := e.takes(k, seq, "order-0001")
			if r := replace(`["late"]`); !errors.Is(r.Err, core.ErrNotUnique) {
				e.t.Errorf("while a %s has it: %+v", k.name, r)
			}
			w.finish(false)
			e.advance(time.Hour)
		}
		if r := e.do(&core.Inspect{Ref: core.Ref{Seq: seq}}); string(r.Job.Body) != `["new"]` {
			e.t.Errorf("in the end its body is %s", r.Job.Body)
		}
	})
}
