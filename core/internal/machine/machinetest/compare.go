package machinetest

import (
	"fmt"
	"slices"
	"strings"

	"broker/core"
	"broker/core/internal/batch"
	"broker/core/internal/limit"
	"broker/core/internal/machine"
	"broker/core/internal/queue"
	"broker/core/internal/schedule"
	"broker/core/internal/table"
	"broker/core/internal/telemetry"
	"broker/core/internal/timer"
)

// Compare returns the first difference between two machines that were restored from the same store at the same time;
// nil: they make the same decisions. Internal numbers may differ: handles, slots, numbers of names.
func Compare(a, b *machine.Machine) error {
	x, y := machine.PartsOf(a), machine.PartsOf(b)
	if err := sameJobs(&x, &y); err != nil {
		return err
	}
	names := queueNames(x.Table)
	if other := queueNames(y.Table); !slices.Equal(names, other) {
		return fmt.Errorf("queues %q and %q", names, other)
	}
	for _, name := range names {
		if err := same("queue "+name, showQueue(&x, name), showQueue(&y, name)); err != nil {
			return err
		}
	}
	return same("the rest", showRest(a, &x), showRest(b, &y))
}

// queueNames are the names of all queues, in order.
func queueNames(t *table.Table) (names []string) {
	for _, n := range t.SortedQueues() {
		names = append(names, t.QueueAt(n).Name)
	}
	return names
}

// same compares two values by their texts, and shows where these differ.
func same(what string, a, b any) error {
	x, y := fmt.Sprintf("%+v", a), fmt.Sprintf("%+v", b)
	if x == y {
		return nil
	}
	at := 0
	for at < min(len(x), len(y)) && x[at] == y[at] {
		at++
	}
	from := max(at-200, 0)
	return fmt.Errorf("%s: %.400s\nand: %.400s", what, x[from:], y[from:])
}

func sameJobs(a, b *machine.Parts) error {
	walkA, walkB := a.Table.From(0, false), b.Table.From(0, false)
	for {
		h, g := walkA.Next(), walkB.Next()
		if h == 0 && g == 0 {
			return nil
		}
		if h == 0 || g == 0 || a.Table.At(h).Seq != b.Table.At(g).Seq {
			return fmt.Errorf("%d and %d jobs: they differ", a.Table.Live, b.Table.Live)
		}
		if err := same(fmt.Sprintf("job %d", a.Table.At(h).Seq), showJob(a, h), showJob(b, g)); err != nil {
			return err
		}
	}
}

// shownJob is everything about a job that affects decisions.
type shownJob struct {
	entry          table.Entry
	queue, kind    string
	worker, group  string
	state, expires core.Instant // its deadlines
	tags           []string
	found          [2]bool // by its id, by its unique key
	optional       table.Optional
	dependents     []uint64 // successors, then children
	start          core.Instant
	limits         string
	transient      table.Transient
	ends           string // its failure, its outcome and its progress
	trace, version string
	firstFail      core.Instant
	tally          core.Tally
	stop           core.Instant
}

func showJob(p *machine.Parts, h uint32) shownJob {
	t := p.Table
	e := *t.At(h)
	s := shownJob{
		queue: p.Queues[e.Queue].Name, kind: t.TypeOf(&e), group: t.GroupName(&e), tags: t.TagsOf(h),
		trace: t.TraceOf(h), version: t.VersionOf(h, &e),
		firstFail: t.FirstFail(h, &e), tally: t.Tally(h, &e), stop: t.StopAt(&e),
		state: t.Timers.At(e.StateTimer), expires: t.Timers.At(e.ExpiryTimer),
	}
	if e.State == core.Leased && e.HolderKind == core.HeldByWorker { // leases of connections end with the process
		s.worker = t.Workers.NameOf(e.Holder)
	}
	s.found = table.IsFound(t, h)
	if x := t.Optional(h); x != nil {
		s.optional, s.start = *x, t.Timers.At(x.StartTimer)
		s.optional.StartTimer, s.optional.Limits = 0, 0
		s.optional.Successors, s.optional.Children = nil, nil
		for _, list := range [...]*table.Dependents{x.Successors, x.Children} {
			list.Each(func(h uint32) bool {
				s.dependents = append(s.dependents, t.At(h).Seq)
				return true
			})
		}
		if x.AskedUntil <= t.Now {
			s.optional.AskedUntil = 0 // that time has passed
		}
	}
	s.limits = limit.ShowJob(p.Limits, h)
	if x := t.Transient(h); x != nil {
		s.transient = *x
		end := deref(x.Outcome)
		s.ends = fmt.Sprintf("%+v %+v", deref(x.Failure), deref(end.Failure))
		end.Failure = nil
		s.ends += fmt.Sprintf(" %+v %+v", end, deref(x.Progress))
		s.transient.Failure, s.transient.Outcome, s.transient.Progress = nil, nil, nil
	}
	e.Queue, e.Kind, e.Holder, e.HeldAt, e.UniqueNext, e.StateTimer, e.ExpiryTimer = 0, 0, 0, 0, 0, 0, 0
	e.Clear(table.Arrived | table.HasOptional)
	s.entry = e
	return s
}

// deref returns the value that p points to, for texts that do not contain addresses.
func deref[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// showQueue shows everything about a queue that affects decisions.
func showQueue(p *machine.Parts, name string) string {
	n := p.Table.QueueNumber(name)
	q := p.Queues[n]
	var b strings.Builder
	fmt.Fprintf(&b, "%v %v %v %s", q.Count, q.Class, q.Hidden, p.Settings[n])
	lists, kept := q.ByState, q.KeptDone
	if kept == nil {
		kept = new(queue.List)
	}
	fmt.Fprintf(
		&b, " ready %v scheduled %v kept %v",
		table.Seqs(p.Table, &q.Ready), table.Seqs(p.Table, &q.Scheduled), table.Seqs(p.Table, kept),
	)
	if lists == nil {
		lists = new(table.StateLists)
	}
	for s := range lists {
		fmt.Fprint(&b, table.Seqs(p.Table, &lists[s]))
	}
	fmt.Fprint(&b, limit.ShowQueue(p.Limits, q))
	return b.String()
}

// showRest shows everything else that affects decisions.
func showRest(m *machine.Machine, p *machine.Parts) string {
	t := p.Table
	var b strings.Builder
	fmt.Fprintf(&b, "%s %+v", table.ShowNumbers(t), *m.Stats())
	for s := range t.ByState {
		fmt.Fprint(&b, " ", table.Seqs(t, &t.ByState[s]))
	}
	for _, name := range t.Groups.Names.All() {
		fmt.Fprintf(&b, " group %s %v", name, table.Seqs(t, &t.Groups.Jobs[t.Groups.Names.NumberOf(name)]))
	}
	for _, name := range t.Tags.Names.All() {
		fmt.Fprintf(&b, " tag %s %v", name, table.Seqs(t, &t.Tags.Jobs[t.Tags.Names.NumberOf(name)]))
	}
	fmt.Fprint(&b, batch.Show(p.Batches), schedule.Show(p.Schedules), table.ShowMeta(t), limit.ShowShared(p.Limits),
		table.ShowWindows(t))
	var deadlines [table.TimerKinds]int
	t.Timers.Shift(func(o timer.Owner) bool { deadlines[o.Kind]++; return false }, 0)
	fmt.Fprintf(&b, " deadlines %v meters %v", deadlines, telemetry.Show(p.Meters))
	return b.String()
}
