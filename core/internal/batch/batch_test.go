package batch

import (
	"errors"
	"slices"
	"testing"
	"time"

	"broker/core"
	"broker/core/internal/table"
	"broker/core/internal/table/tabletest"
)

// fixture has the batches of a table; the test takes the place of the machine.
type fixture struct {
	*testing.T
	table   *tabletest.Table
	batches *Batches
	most    int // batches that an operation checks; zero: all
}

func setup(t *testing.T) *fixture {
	f := &fixture{T: t, table: tabletest.New()}
	f.batches = New(f.table.Table, f)
	f.table.Queue("q")
	return f
}

func (f *fixture) add(j core.Job, state core.State) uint64 {
	j.Queue = "q"
	h, _ := f.table.Add(&j)
	f.batches.Join(h)
	f.table.Move(h, state)
	return j.Seq
}

// open opens a batch with both callbacks.
func (f *fixture) open(op core.OpenBatch) *Batch {
	g := f.batches.Open(&op)
	f.batches.SetCallbacks(g, func() (complete, success uint64) {
		return f.add(core.Job{CallbackFor: g.Number()}, core.Blocked),
			f.add(core.Job{CallbackFor: g.Number()}, core.Blocked)
	})
	f.check()
	return g
}

func (f *fixture) member(g *Batch) uint64 { return f.add(core.Job{Batch: g.Number()}, core.Ready) }

// fail notes the first failure of a member, which is tried again.
func (f *fixture) fail(seq uint64) {
	f.Helper()
	f.batches.Executed(f.table.Handle(seq))
	f.check()
}

// end ends a job.
func (f *fixture) end(seq uint64, success bool) {
	f.Helper()
	h := f.table.Handle(seq)
	f.batches.MemberDone(h, success)
	f.table.Unlist(h, f.table.At(h))
	f.table.Remove(h)
	f.check()
}

// want compares the states of the callback jobs.
func (f *fixture) want(g *Batch, complete, success core.CallbackState) {
	f.Helper()
	if i := g.Info(); i.Complete != complete || i.Success != success {
		f.Errorf("batch %d: complete %v, success %v, want %v, %v", i.Number, i.Complete, i.Success, complete, success)
	}
}

// Unblock implements Host.
func (f *fixture) Unblock(h uint32, _ *table.Entry) { f.table.Move(h, core.Ready) }

// Spent implements Host.
func (f *fixture) Spent() bool { return f.most > 0 && f.table.Touched >= f.most }

// Later implements Host. Nothing is done later, as if the process ended before.
func (f *fixture) Later(func() bool) {}

func (f *fixture) check() {
	f.Helper()
	c := f.batches.NewCheck(f.Errorf)
	f.table.EachJob(func(h uint32, e *table.Entry) {
		if x := f.table.Optional(h); x != nil {
			c.Member(e, x)
		}
	})
	if have := c.End(); have != f.table.Timers.Len() {
		f.Errorf("%d deadlines, %d are used", f.table.Timers.Len(), have)
	}
}

const (
	pending, enqueued, done = core.CallbackPending, core.CallbackEnqueued, core.CallbackDone
)

func TestCallbacksWaitForMembersAndForTheCommit(t *testing.T) {
	t.Parallel()
	f := setup(t)
	g := f.open(core.OpenBatch{})
	a, b := f.member(g), f.member(g)
	f.end(a, true)
	f.end(b, true)
	f.want(g, pending, pending)
	f.batches.Close(g, false)
	f.want(g, enqueued, pending)
	f.end(g.CompleteJob, true)
	f.want(g, done, enqueued)
	f.end(g.SuccessJob, true)
	f.want(g, done, done)
	if i := g.Info(); i.ExpiresAt != f.table.Now.Add(retainFinished) || i.Total != 2 || i.Pending != 0 {
		t.Errorf("the batch is over: %+v", i)
	}
}

func TestCompleteRunsOnceEveryMemberWasTried(t *testing.T) {
	t.Parallel()
	f := setup(t)
	g := f.open(core.OpenBatch{})
	a, b := f.member(g), f.member(g)
	f.batches.Close(g, false)
	f.fail(a)
	f.fail(a)
	f.want(g, pending, pending)
	f.end(b, true)
	f.want(g, enqueued, pending)
	f.end(g.CompleteJob, true)
	f.want(g, done, pending) // a may still succeed
	f.end(a, true)
	f.want(g, done, enqueued)
}

func TestLostMemberRulesOutSuccess(t *testing.T) {
	t.Parallel()
	f := setup(t)
	g := f.open(core.OpenBatch{})
	a := f.member(g)
	f.batches.Close(g, false)
	f.end(a, false)
	f.end(g.CompleteJob, true)
	f.want(g, done, pending)
	if i := g.Info(); i.Lost != 1 || i.ExpiresAt == 0 {
		t.Errorf("the batch is over: %+v", i)
	}
}

func TestParentWaitsForChildBatches(t *testing.T) {
	t.Parallel()
	f := setup(t)
	parent := f.open(core.OpenBatch{})
	child := f.open(core.OpenBatch{Parent: parent.Number()})
	f.batches.Close(parent, false)
	f.want(parent, pending, pending)
	f.batches.Close(child, false)
	f.end(child.CompleteJob, true)
	f.want(parent, enqueued, pending)
	f.end(parent.CompleteJob, true)
	f.want(parent, done, pending)
	f.end(child.SuccessJob, true)
	f.want(parent, done, enqueued)
}

func TestBatchThatIsNotCommittedInTimeEnds(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.open(core.OpenBatch{OpenUntil: f.table.Now.Add(time.Hour)})
	f.table.Now = f.table.Now.Add(time.Hour)
	o, due := f.table.Timers.PopDue(f.table.Now)
	if !due || o.Kind != table.TimerBatch {
		t.Fatal("the batch has no deadline")
	}
	g := f.batches.Expire(o.Handle)
	if f.batches.Ended(g); f.batches.Count() != 0 || f.batches.Find(g.Number()) != nil {
		t.Error("the batch stays")
	}
}

func TestCommittedBatchTakesMembersOnlyAgainWhenReopened(t *testing.T) {
	t.Parallel()
	f := setup(t)
	g := f.open(core.OpenBatch{})
	f.member(g)
	if err := f.batches.Refusal(g.Number()); err != nil {
		t.Error(err)
	}
	f.batches.Close(g, false)
	if err := f.batches.Refusal(g.Number()); !errors.Is(err, core.ErrBatchState) {
		t.Errorf("a committed batch: %v", err)
	}
	f.batches.Close(g, true)
	if err := f.batches.Refusal(g.Number()); err != nil {
		t.Errorf("a reopened batch: %v", err)
	}
	if err := f.batches.Refusal(g.Number() + 100); !errors.Is(err, core.ErrNoBatch) {
		t.Errorf("no batch: %v", err)
	}
}

func TestBatchesAreListedFromBothEnds(t *testing.T) {
	t.Parallel()
	f := setup(t)
	var all []uint64
	for range 5 {
		all = append(all, f.open(core.OpenBatch{}).Number())
	}
	for _, oldest := range []bool{true, false} {
		var have []uint64
		for op := (core.ListBatches{Oldest: oldest}); ; {
			rows, next, _ := f.batches.List(&op, 2)
			for _, row := range rows {
				have = append(have, row.Number)
			}
			if op.From = next; next == 0 {
				break
			}
		}
		if !oldest {
			slices.Reverse(have)
		}
		if !slices.Equal(have, all) {
			t.Errorf("oldest first %v: %v, want %v", oldest, have, all)
		}
	}
}

// FuzzBatches opens, commits and reopens nested batches while members end. After each step, the counters must agree,
// and every due callback must be released.
func FuzzBatches(f *testing.F) {
	f.Add([]byte{0, 1, 1, 3, 4, 5, 6, 0, 8, 1, 9, 3})
	f.Add([]byte("batches in batches, with members that end"))
	f.Fuzz(func(t *testing.T, steps []byte) {
		x := setup(t)
		var batches []*Batch
		var jobs []uint64
		for _, step := range steps[:min(len(steps), 200)] {
			n := int(step >> 3)
			switch step & 7 {
			case 0:
				op := core.OpenBatch{OpenUntil: x.table.Now.Add(time.Hour)}
				if len(batches) > 0 && n%2 == 1 {
					op.Parent = batches[n%len(batches)].Number()
				}
				g := x.open(op)
				batches, jobs = append(batches, g), append(jobs, g.CompleteJob, g.SuccessJob)
			case 1, 2:
				if len(batches) > 0 {
					if g := batches[n%len(batches)]; x.batches.Refusal(g.Number()) == nil {
						jobs = append(jobs, x.member(g))
					}
				}
			case 3:
				if len(batches) > 0 {
					x.batches.Close(batches[n%len(batches)], n%4 == 0)
				}
			case 4, 5, 6:
				if len(jobs) == 0 {
					break
				}
				if seq := jobs[n%len(jobs)]; x.state(seq) == core.Ready && step&7 == 4 {
					x.fail(seq)
				} else if x.state(seq) == core.Ready {
					x.end(seq, step&7 == 5)
				}
			case 7:
				if i := slices.IndexFunc(jobs, func(seq uint64) bool { return x.state(seq) == core.Ready }); i >= 0 {
					h := x.table.Handle(jobs[i])
					x.batches.Leave(h)
					x.table.Remove(h)
				}
			}
			x.check()
		}
		stored := setup(t)
		for name, value := range x.sealed() {
			if err := stored.batches.Restore(name, value); err != nil {
				t.Fatalf("%s: %v", value, err)
			}
		}
		if stored.batches.Count() != x.batches.Count() {
			t.Errorf("%d batches are restored of %d", stored.batches.Count(), x.batches.Count())
		}
	})
}

// state is the state of a job; core.Gone: it is removed.
func (f *fixture) state(seq uint64) core.State {
	if h := f.table.Handle(seq); h != 0 {
		return f.table.At(h).State
	}
	return core.Gone
}

// sealed are the batches as they are stored.
func (f *fixture) sealed() map[string][]byte {
	all := map[string][]byte{}
	for _, entry := range f.batches.Seal(nil) {
		if entry.Value != nil {
			all[entry.Name] = entry.Value
		}
	}
	return all
}

// TestStartChecksWhatAStepWouldHave ends the process at each batch of a chain of empty batches that is checked.
func TestStartChecksWhatAStepWouldHave(t *testing.T) {
	t.Parallel()
	const depth = 5
	for most := 1; most <= 2*depth; most++ {
		f, parent := setup(t), uint64(0)
		for range depth {
			parent = f.batches.Open(&core.OpenBatch{Parent: parent}).Number()
			f.batches.mutate(f.batches.Find(parent), func() {})
		}
		f.most, f.table.Touched = 1, 1
		for g := f.batches.last; g != nil; g = g.older {
			f.batches.Close(g, false)
		}
		f.most, f.table.Touched = most, 0
		f.batches.check(f.batches.last)
		again := setup(t)
		for _, entry := range f.batches.Seal(nil) {
			if err := again.batches.Restore(entry.Name, entry.Value); err != nil {
				t.Fatal(err)
			}
		}
		again.batches.Relink()
		for g := again.batches.first; g != nil; g = g.newer {
			again.want(g, done, done)
		}
		again.check()
	}
}
