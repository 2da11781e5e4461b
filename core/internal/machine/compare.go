package machine

import (
	"fmt"
	"slices"
	"strings"

	"broker/core"
	"broker/core/internal/table"
	"broker/core/internal/timer"
)

// Compare returns the first difference between two machines that were restored from the same store at the same time; nil: they
// make the same decisions. Internal numbers may differ: handles, slots, numbers of names. It is for simulations.
func Compare(a, b *Machine) error {
	if err := sameJobs(a, b); err != nil {
		return err
	}
	names := a.table.AllQueues()
	if other := b.table.AllQueues(); !slices.Equal(names, other) {
		return fmt.Errorf("queues %q and %q", names, other)
	}
	for _, name := range names {
		x, y := a.showQueue(name), b.showQueue(name)
		if err := same("queue "+name, x, y); err != nil {
			return err
		}
	}
	return same("the rest", a.showRest(), b.showRest())
}

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

func sameJobs(a, b *Machine) error {
	walkA, walkB := a.table.From(0, false), b.table.From(0, false)
	for {
		h, g := walkA.Next(), walkB.Next()
		if h == 0 && g == 0 {
			return nil
		}
		if h == 0 || g == 0 || a.table.At(h).Seq != b.table.At(g).Seq {
			return fmt.Errorf("%d and %d jobs: they differ", a.table.Live, b.table.Live)
		}
		if err := same(fmt.Sprintf("job %d", a.table.At(h).Seq), a.showJob(h), b.showJob(g)); err != nil {
			return err
		}
	}
}

// shownJob is everything about a job that affects decisions.
type shownJob struct {
	entry          table.Entry
	queue, kind    string
	holder, group  string
	state, expires core.Instant // its deadlines
	tags           []string
	found          [2]bool // by its id, by its unique key
	optional       table.Optional
	start          core.Instant
	limits         string
	transient      table.Transient
	ends           string // its failure, its outcome and its progress
	trace          string
	firstFail      core.Instant
	tally          core.Tally
	stop           core.Instant
}

func (m *Machine) showJob(h uint32) shownJob {
	e := *m.table.At(h)
	s := shownJob{
		queue: m.queues[e.Queue].Name, kind: m.table.TypeOf(&e), group: m.table.GroupName(&e), tags: m.table.TagsOf(h),
		trace: m.table.TraceOf(h), firstFail: m.table.FirstFail(h, &e), tally: m.table.Tally(h, &e), stop: m.table.StopAt(&e), state: m.table.Timers.At(e.StateTimer), expires: m.table.Timers.At(e.ExpiryTimer),
	}
	if e.State == core.Leased {
		s.holder = m.holderName(&e)
	}
	s.found = m.table.IsFound(h)
	if x := m.table.Optional(h); x != nil {
		s.optional = *x
		m.showOptional(&s, x)
	}
	s.limits = m.limits.ShowJob(h)
	if t := m.table.Transient(h); t != nil {
		s.transient = *t
		end := deref(t.Outcome)
		s.ends = fmt.Sprintf("%+v %+v", deref(t.Failure), deref(end.Failure))
		end.Failure = nil
		s.ends += fmt.Sprintf(" %+v %+v", end, deref(t.Progress))
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

func (m *Machine) showOptional(s *shownJob, x *table.Optional) {
	s.start = m.table.Timers.At(x.StartTimer)
	o := &s.optional
	o.StartTimer, o.Limits = 0, 0
	if o.AskedUntil <= m.table.Now {
		o.AskedUntil = 0 // that time has passed
	}
}

// showQueue shows everything about a queue that affects decisions.
func (m *Machine) showQueue(name string) string {
	q := m.queues[m.table.QueueNumber(name)]
	var b strings.Builder
	fmt.Fprintf(&b, "%v %v %v %v %v %v %v", q.Count, q.Class, fmt.Sprint(q.paused, q.pausedUntil, q.pausedFor, m.table.Timers.At(q.pauseTimer)), q.lifetime, q.stored,
		q.Hidden, q.idleTimer != 0)
	fmt.Fprintf(&b, " ready %v scheduled %v kept %v", m.table.Seqs(&q.Ready), m.table.Seqs(&q.Scheduled), m.table.Seqs(&q.KeptDone))
	if q.ByState == nil {
		q.ByState = new(table.StateLists)
	}
	for s := range q.ByState {
		fmt.Fprint(&b, m.table.Seqs(&q.ByState[s]))
	}
	fmt.Fprint(&b, m.limits.ShowQueue(&q.Queue))
	return b.String()
}

// showRest shows everything else that affects decisions.
func (m *Machine) showRest() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %+v", m.table.ShowNumbers(), *m.Stats())
	for s := range m.table.ByState {
		fmt.Fprint(&b, " ", m.table.Seqs(&m.table.ByState[s]))
	}
	for _, name := range m.table.Groups.Names.All() {
		fmt.Fprintf(&b, " group %s %v", name, m.table.Seqs(&m.table.Groups.Jobs[m.table.Groups.Names.NumberOf(name)]))
	}
	for _, name := range m.table.Tags.Names.All() {
		fmt.Fprintf(&b, " tag %s %v", name, m.table.Seqs(&m.table.Tags.Jobs[m.table.Tags.Names.NumberOf(name)]))
	}
	fmt.Fprint(&b, m.batches.Show())
	fmt.Fprint(&b, m.schedules.Show())
	fmt.Fprint(&b, m.table.ShowMeta())
	fmt.Fprint(&b, m.limits.ShowShared())
	fmt.Fprint(&b, m.table.ShowWindows())
	var deadlines [table.TimerKinds]int
	m.table.Timers.Shift(func(o timer.Owner) bool { deadlines[o.Kind]++; return false }, 0)
	fmt.Fprintf(&b, " deadlines %v meters %v", deadlines, m.meters.Show())
	return b.String()
}
