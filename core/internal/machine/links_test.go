package machine

import (
	"fmt"
	"testing"

	"broker/core"
)

// TestEndOfADependencyDoesNotRewriteTheOthers completes the dependencies of a job one by one. The number of bytes
// written for each must not depend on how many dependencies are left.
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
				t.Fatalf("the end of dependency %d writes %d changes, one of job %d", i, len(r.sealed.Batch.Changes),
					ch.Seq)
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

// TestDeathOfAJobTouchesEachDependentAFewTimes buries a job that dependents of all kinds wait for. The first of them
// stays.
func TestDeathOfAJobTouchesEachDependentAFewTimes(t *testing.T) {
	t.Parallel()
	const dependents = 20_000
	for _, death := range []string{"bury", "cancel"} {
		for _, mix := range [][]core.OnBroken{
			{core.BrokenReleases},
			{core.BrokenFails},
			{core.BrokenDrops},
			{core.BrokenWaits},
			{core.BrokenReleases, core.BrokenWaits, core.BrokenDrops, core.BrokenFails},
		} {
			t.Run(fmt.Sprint(death, mix), func(t *testing.T) {
				l := newLimited()
				head := l.do(&core.Submit{Job: &core.Job{Queue: "q"}}).Seq
				for i := range dependents {
					j := &core.Job{Queue: "q", OnBroken: mix[i%len(mix)]}
					switch {
					case i == 0:
						j.OnBroken, j.After = core.BrokenWaits, []uint64{head}
					case i%2 == 0:
						j.Parent = head
					default:
						j.After = []uint64{head}
					}
					l.do(&core.Submit{Job: j})
				}
				l.table.OpenBytes, l.table.Touched = 0, 0
				if death == "bury" {
					l.do(&core.Bury{Ref: core.Ref{Seq: head}})
				} else {
					l.do(&core.Cancel{Ref: core.Ref{Seq: head}})
				}
				if most := 6 * dependents; l.table.Touched > most {
					t.Errorf("%d jobs and links were touched, want at most %d", l.table.Touched, most)
				}
				if err := l.Check(); err != nil {
					t.Error(err)
				}
			})
		}
	}
}
