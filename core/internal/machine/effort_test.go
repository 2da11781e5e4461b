package machine

import (
	"fmt"
	"testing"
	"time"

	"broker/core"
	"broker/core/internal/link"
)

// many is a large number of dependents, children, members or ancestors.
const many = 10_000

// done does an operation, and then all steps that it leaves, each with a batch of its own. It fails if the operation
// or a step touches more jobs and links than it may. It returns the number of steps.
func (l *limited) done(t *testing.T, op core.Op) (steps int) {
	t.Helper()
	var s Sealed
	l.Seal(&s)
	l.Committed(&s)
	l.do(op)
	for {
		if linked := l.table.Touched + l.table.Linked; linked > l.effortOf(op)+3*core.MaxAfter {
			t.Errorf("%T: %d jobs and links at once", op, linked)
		}
		if l.Seal(&s); len(s.Batch.Changes) > l.effortOf(op) {
			t.Errorf("%T: %d changes in a batch", op, len(s.Batch.Changes))
		}
		l.Committed(&s)
		steps++
		if !l.Tick(3, 100) {
			break
		}
	}
	if l.overrun != nil {
		t.Errorf("%T: %v", op, l.overrun)
	}
	if err := l.Check(); err != nil {
		t.Error(err)
	}
	return steps
}

// submitted submits a job and returns its number.
func (l *limited) submitted(j core.Job) uint64 {
	j.Queue = "q"
	seq := l.do(&core.Submit{Job: &j}).Seq
	l.table.OpenBytes = 0
	return seq
}

// fanOf submits many jobs that wait for others.
func (l *limited) fanOf(after ...uint64) {
	for i := range many {
		l.submitted(core.Job{After: after, OnBroken: core.OnBroken(i % 4)})
	}
}

func TestNoOperationOnAJobWalksItsDependents(t *testing.T) {
	t.Parallel()
	const head, dependent = 1, many / 2
	for name, op := range map[string]core.Op{
		"submit":              &core.Submit{Job: &core.Job{Queue: "q", After: []uint64{head}}},
		"inspect":             &core.Inspect{Ref: core.Ref{Seq: head}, Dependents: true},
		"refused cancel":      &core.Cancel{Ref: core.Ref{Seq: head}, Dependents: core.DependentsRefuse},
		"move":                &core.Move{Ref: core.Ref{Seq: head}, Queue: "other"},
		"lease":               &core.Lease{Queues: []string{"q"}, Holder: core.HeldByWorker, Worker: "w"},
		"cancel a dependent":  &core.Cancel{Ref: core.Ref{Seq: dependent}},
		"move a dependent":    &core.Move{Ref: core.Ref{Seq: dependent}, After: []core.Ref{}},
		"enqueue a dependent": &core.Enqueue{Ref: core.Ref{Seq: dependent}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLimited()
			l.submitted(core.Job{})
			l.fanOf(head)
			l.do(op)
			if l.table.Touched+l.table.Linked > 10 {
				t.Errorf("%d jobs and %d links were touched", l.table.Touched, l.table.Linked)
			}
		})
	}
	t.Run("store an ephemeral job", func(t *testing.T) {
		t.Parallel()
		l := newLimited()
		j := &core.Job{Queue: "q", Ephemeral: true, Unique: core.UniqueCoalesce, UniqueKey: "k"}
		l.fanOf(l.do(&core.Submit{Job: j, Watch: core.WatchOutcome}).Seq)
		var s Sealed
		l.Seal(&s)
		l.Committed(&s)
		l.do(&core.Submit{Job: &core.Job{Queue: "q", Unique: core.UniqueCoalesce, UniqueKey: "k"}})
		if l.Seal(&s); len(s.Batch.Changes) != 1 || l.table.Touched > 10 {
			t.Errorf("%d jobs were written, %d touched", len(s.Batch.Changes), l.table.Touched)
		}
	})
}

func TestEndOfAJobWithManyDependentsTakesSteps(t *testing.T) {
	t.Parallel()
	ref := core.Ref{Seq: 1}
	for name, op := range map[string]core.Op{
		"complete": &core.Complete{Ref: ref, Authority: core.ByAnyone},
		"fail":     &core.Fail{Ref: ref, Authority: core.ByAnyone, Final: true},
		"bury":     &core.Bury{Ref: ref},
		"cancel":   &core.Cancel{Ref: ref},
		"purge":    &core.Purge{Queue: "q", States: []core.State{core.Ready}, Limit: 1},
		"drop":     &core.DropQueue{Queue: "q", Limit: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLimited()
			head, other := l.submitted(core.Job{}), l.submitted(core.Job{ReadyAt: 1 << 60})
			l.fanOf(head, other)
			l.fanOf(head)
			for range many {
				l.submitted(core.Job{Parent: head, OnBroken: core.BrokenFails})
			}
			if steps := l.done(t, op); steps < many/1000 {
				t.Errorf("only %d steps", steps)
			}
		})
	}
}

// A death breaks jobs that wait for an ancestor; a chain of jobs breaks, or is closed, one after another.
func TestChainsEndInSteps(t *testing.T) {
	t.Parallel()
	chain := func(l *limited, link func(last uint64) core.Job) (first, last uint64) {
		first = l.submitted(core.Job{})
		for last = first; last < first+many; {
			last = l.submitted(link(last))
		}
		return first, last
	}
	parents := func(last uint64) core.Job { return core.Job{Parent: last} }
	for name, do := range map[string]func(t *testing.T, l *limited) (steps int){
		"dependents that fail": func(t *testing.T, l *limited) (steps int) {
			first, _ := chain(l, func(last uint64) core.Job {
				return core.Job{After: []uint64{last}, OnBroken: core.BrokenFails}
			})
			return l.done(t, &core.Bury{Ref: core.Ref{Seq: first}})
		},
		"dependents that are dropped": func(t *testing.T, l *limited) (steps int) {
			first, _ := chain(l, func(last uint64) core.Job {
				return core.Job{After: []uint64{last}, OnBroken: core.BrokenDrops}
			})
			return l.done(t, &core.Cancel{Ref: core.Ref{Seq: first}})
		},
		"ancestors that are closed": func(t *testing.T, l *limited) (steps int) {
			first, last := chain(l, parents)
			for seq := first; seq < last; seq++ {
				l.do(&core.Complete{Ref: core.Ref{Seq: seq}, Authority: core.ByAnyone})
				l.table.OpenBytes = 0
			}
			steps = l.done(t, &core.Complete{Ref: core.Ref{Seq: last}, Authority: core.ByAnyone})
			if l.table.Live != 0 {
				t.Errorf("%d jobs are left", l.table.Live)
			}
			return steps
		},
		"ancestors of a dead job": func(t *testing.T, l *limited) (steps int) {
			first, last := chain(l, parents)
			for seq := first; seq < last; seq++ {
				l.do(&core.Complete{Ref: core.Ref{Seq: seq}, Authority: core.ByAnyone})
				l.table.OpenBytes = 0
			}
			drops := l.submitted(core.Job{After: []uint64{first}, OnBroken: core.BrokenDrops})
			steps = l.done(t, &core.Bury{Ref: core.Ref{Seq: last}})
			if l.table.Handle(drops) != 0 {
				t.Errorf("job %d waits for a job with a dead descendant", drops)
			}
			return steps
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if steps := do(t, newLimited()); steps < 5 {
				t.Errorf("only %d steps", steps)
			}
		})
	}
}

func TestBatchWithManyMembersOrAncestorsEndsAtOnce(t *testing.T) {
	t.Parallel()
	l := newLimited()
	outer := l.do(&core.OpenBatch{Complete: &core.Job{Queue: "callbacks"}}).Seq
	inner := outer
	for range many {
		inner = l.do(&core.OpenBatch{Parent: inner}).Seq
	}
	member := l.submitted(core.Job{Batch: inner})
	for range many {
		l.submitted(core.Job{Batch: inner})
	}
	for _, op := range []core.Op{
		&core.CloseBatch{Batch: inner}, &core.Cancel{Ref: core.Ref{Seq: member}}, &core.CloseBatch{Batch: outer},
	} {
		if l.do(op); l.table.Touched > 10 || l.overrun != nil {
			t.Errorf("%T touched %d jobs and batches, %v", op, l.table.Touched, l.overrun)
		}
	}
}

func TestListsOfClientsAndWorkersLookAtFew(t *testing.T) {
	t.Parallel()
	l := newLimited()
	for i := range many {
		id := l.OpenClient(2, core.ClientOptions{Protocol: core.Workq})
		l.submitted(core.Job{})
		l.as(id, &core.Lease{Queues: []string{"q"}, Holder: core.HeldByWorker, Worker: fmt.Sprint("w", i), LeaseFor: time.Hour})
	}
	for i := range many - 5 { // what is listed comes last
		l.do(&core.Complete{Ref: core.Ref{Seq: uint64(i + 1)}, Authority: core.ByAnyone})
		l.table.OpenBytes = 0
	}
	l.OpenClient(2, core.ClientOptions{Protocol: core.Gearman})
	pages, workers := 0, map[string]bool{}
	for cursor, more := uint64(0), true; more; more = cursor != 0 {
		r := l.do(&core.ListWorkers{Cursor: cursor})
		for _, w := range r.Workers {
			workers[w.Name] = true
		}
		cursor = r.NextWorker
		pages++
	}
	if len(workers) != 5 || pages < many/maxPage {
		t.Errorf("%d workers in %d pages", len(workers), pages)
	}
	pages, clients := 0, 0
	for after, more := core.ClientID(0), true; more; more = after != 0 {
		r := l.do(&core.ListClients{Protocol: core.Gearman, After: after})
		clients, after = clients+len(r.Clients), r.NextClient
		pages++
	}
	if clients != 1 || pages < many/maxPage {
		t.Errorf("%d clients in %d pages", clients, pages)
	}
	if err := l.Check(); err != nil {
		t.Error(err)
	}
}

func TestListOfLimitsLooksAtFewQueues(t *testing.T) {
	t.Parallel()
	l := newLimited()
	for i := range many {
		l.do(&core.CreateQueue{Queue: fmt.Sprint("without", i)})
		l.do(&core.PutLimit{Limit: core.Limit{
			Selector: core.InQueue(fmt.Sprint("q", i), core.ScopeQueue, ""), Throttle: core.Throttle{Leased: 1},
		}})
		l.table.OpenBytes = 0
	}
	names := make([]string, core.MaxShared)
	for i := range names {
		names[i] = fmt.Sprint("unknown", i)
	}
	const shared = 20
	for i := range shared {
		l.do(&core.PutLimit{Limit: core.Limit{
			Name: fmt.Sprint("s", i), Selector: core.Selector{Queues: names}, Throttle: core.Throttle{Leased: 1},
		}})
	}
	pages, found := 0, map[core.LimitID]bool{}
	for op, more := (core.ListLimits{}), true; more; more = op.After != (core.LimitID{}) {
		r := l.do(&op)
		for i := range r.Limits {
			found[r.Limits[i].ID()] = true
		}
		op.After = r.NextLimit
		pages++
	}
	if len(found) != many+shared || pages < many/1000+shared {
		t.Errorf("%d limits in %d pages", len(found), pages)
	}
	if err := l.Check(); err != nil {
		t.Error(err)
	}
}

// TestJudgeFindsAnOperationThatWalks makes sure that the bound is one.
func TestJudgeFindsAnOperationThatWalks(t *testing.T) {
	t.Parallel()
	l := newLimited()
	for _, c := range []struct {
		op      core.Op
		touched int
		within  bool
	}{
		{&core.Inspect{}, 2064, true},
		{&core.Inspect{}, 2065, false},
		{&core.Cancel{Also: make([]core.Ref, 100)}, 2264, true},
		{&core.Move{After: make([]core.Ref, 1)}, 2067 + 4*link.MaxWalk, false},
	} {
		l.overrun, l.table.Touched = nil, c.touched
		if l.judge(c.op); (l.Check() == nil) != c.within {
			t.Errorf("%T that touches %d: %v", c.op, c.touched, l.overrun)
		}
	}
	l.overrun, l.table.Touched = nil, 5000
	if l.judgeStep("A Tick", 100); l.overrun == nil {
		t.Error(fmt.Errorf("a Tick touches %d", l.table.Touched))
	}
}

// Nodes that know an older format only would not continue what is left.
func TestEndOfAJobTakesOneStepWhileOlderNodesMayLead(t *testing.T) {
	t.Parallel()
	l, format := newLimited(), stepsFormat-1
	l.opts.Format = func() int { return format }
	for range 2 {
		head := l.submitted(core.Job{})
		l.fanOf(head)
		l.do(&core.Cancel{Ref: core.Ref{Seq: head}})
		if steps := l.Tick(3, 100); steps != (format == stepsFormat) {
			t.Errorf("format %d, more steps: %v", format, steps)
		}
		if err := l.Check(); err != nil {
			t.Error(err)
		}
		format++
	}
}
