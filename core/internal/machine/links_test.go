package machine

import (
	"testing"

	"broker/core"
)

// TestEndOfADependencyDoesNotRewriteTheOthers completes the dependencies of a job one by one. The number of bytes written for
// each must not depend on how many dependencies are left.
func TestEndOfADependencyDoesNotRewriteTheOthers(t *testing.T) {
	t.Parallel()
	const n = 1000
	r := newRig(t)
	c := r.client(core.Faktory)
	after := make([]uint64, n)
	for i := range after {
		after[i] = r.m.table.NextSeq
		r.m.Apply(r.now, c, []core.Op{&core.Submit{Job: &core.Job{Queue: "q", Origin: core.Faktory}}})
	}
	waits := r.m.table.NextSeq
	r.m.Apply(r.now, c, []core.Op{&core.Submit{Job: &core.Job{Queue: "q", Origin: core.Faktory, After: after}}})
	r.flush()
	for i, seq := range after[:n-1] {
		r.m.Apply(r.now, c, []core.Op{&core.Complete{Ref: core.Ref{Seq: seq}, Authority: core.ByAnyone}})
		r.m.Seal(&r.sealed)
		for _, ch := range r.sealed.Batch.Changes {
			if ch.Seq == waits || len(r.sealed.Batch.Changes) > 1 {
				t.Fatalf("the end of dependency %d writes %d changes, one of job %d", i, len(r.sealed.Batch.Changes), ch.Seq)
			}
		}
		r.m.Committed(&r.sealed)
	}
	if err := r.m.Check(); err != nil {
		t.Fatal(err)
	}
	r.m.Take(c, nil)
	r.one(c, &core.Complete{Ref: core.Ref{Seq: after[n-1]}, Authority: core.ByAnyone})
	if s := r.m.table.At(r.m.table.Handle(waits)).State; s != core.Ready {
		t.Errorf("after the last dependency the job is %v", s)
	}
}
