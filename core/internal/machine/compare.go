package machine

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"broker/core"
	"broker/core/internal/queue"
	"broker/core/internal/timer"
)

// Compare returns the first difference between two machines that were restored from the same store at the same time; nil: they
// decide alike. One must have been made like the other (Options.Like). Numbers that never leave a machine may differ: handles,
// slots, numbers of names. It is for simulations.
func Compare(a, b *Machine) error {
	if err := sameJobs(a, b); err != nil {
		return err
	}
	names := slices.Sorted(maps.Keys(a.names))
	if other := slices.Sorted(maps.Keys(b.names)); !slices.Equal(names, other) {
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
	walkA, walkB := a.bySeq.from(0, false), b.bySeq.from(0, false)
	for {
		h, g := walkA.Next(), walkB.Next()
		if h == 0 && g == 0 {
			return nil
		}
		if h == 0 || g == 0 || a.jobs.at(h).seq != b.jobs.at(g).seq {
			return fmt.Errorf("%d and %d jobs: they differ", a.jobs.live, b.jobs.live)
		}
		if err := same(fmt.Sprintf("job %d", a.jobs.at(h).seq), a.showJob(h), b.showJob(g)); err != nil {
			return err
		}
	}
}

// shownJob is all that matters of a job.
type shownJob struct {
	entry          entry
	queue, kind    string
	holder, group  string
	state, expires core.Instant // its deadlines
	tags           []string
	found          [2]bool // by its id, by its unique key
	optional       optional
	start, slot    core.Instant
	slotOwner      string
	lane           laneName
	laneSlots      [2]core.Instant
	transient      transient
	ends           string // its failure and its outcome
	trace          string
	firstFail      core.Instant
	tally          core.Tally
	stop           core.Instant
}

func (m *Machine) showJob(h uint32) shownJob {
	e := *m.jobs.at(h)
	s := shownJob{
		queue: m.queues[e.queue].name, kind: m.typeOf(&e), group: m.groupName(&e), tags: m.tagsOf(h),
		trace: fmt.Sprint(m.traces[h]), firstFail: m.firstFail(h, &e), tally: m.tally(h, &e), stop: m.stopAt(&e), state: m.timers.At(e.stateTimer), expires: m.timers.At(e.expiryTimer),
	}
	if e.state == core.Leased {
		s.holder = m.holderName(&e)
	}
	s.found = [2]bool{m.byID[e.id] == h, e.unique != (digest{}) && m.findLock(e.queue, e.unique) == h}
	if x := m.optionalState(h); x != nil {
		s.optional = *x
		m.showOptional(&s, x)
	}
	if t := m.transients[h]; t != nil {
		s.transient = *t
		end := deref(t.outcome)
		s.ends = fmt.Sprintf("%+v %+v", deref(t.failure), deref(end.Failure))
		end.Failure = nil
		s.ends += fmt.Sprintf(" %+v", end)
		s.transient.failure, s.transient.outcome = nil, nil
	}
	e.queue, e.kind, e.holder, e.heldAt, e.uniqueNext, e.stateTimer, e.expiryTimer = 0, 0, 0, 0, 0, 0, 0
	e.clear(arrived | hasOptional)
	s.entry = e
	return s
}

// deref is what p points to, for texts that do not depend on where that is.
func deref[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

func (m *Machine) showOptional(s *shownJob, x *optional) {
	s.start, s.slot = m.timers.At(x.startTimer), m.timers.At(x.slotTimer)
	if x.slotKey&workerKey != 0 {
		s.slotOwner = m.workers.names[uint32(x.slotKey)] //nolint:gosec // a number of a name
	}
	if x.lane != nil {
		s.lane = x.lane.name
		for i := range x.lane.slots[:min(len(x.lane.slots), ofShared)] {
			s.laneSlots[i] = m.timers.At(x.lane.slots[i].timer)
		}
	}
	o := &s.optional
	o.startTimer, o.slotTimer, o.slotKey, o.lane = 0, 0, 0, nil
	if o.askedUntil <= m.now {
		o.askedUntil = 0 // that time has passed
	}
}

// showQueue is all that matters of a queue.
func (m *Machine) showQueue(name string) string {
	q := m.queues[m.names[name]]
	var b strings.Builder
	fmt.Fprintf(&b, "%v %v %v %v %v %+v %v %v %v", q.count, q.class, fmt.Sprint(q.paused, q.pausedUntil, q.pausedFor, m.timers.At(q.pauseTimer)), q.lifetime, q.stored, q.limits,
		q.hidden, q.slots, q.idleTimer != 0)
	fmt.Fprintf(&b, " ready %v scheduled %v kept %v", m.seqs(&q.ready), m.seqs(&q.scheduled), m.seqs(&q.keptDone))
	if q.byState == nil {
		q.byState = new(stateLists)
	}
	for s := range q.byState {
		fmt.Fprint(&b, m.seqs(&q.byState[s]))
	}
	if q.policy != nil {
		fmt.Fprintf(&b, " policy %v %+v %v", q.policy.sorted(), q.policy.sharing, q.policy.stored)
	}
	if x := q.order; x != nil {
		fmt.Fprintf(&b, " open %v of %d chains", m.seqs(&x.open), len(x.chains))
	}
	if q.lanes == nil {
		return b.String()
	}
	lanes := slices.SortedFunc(maps.Values(q.lanes.names), func(x, y *lane) int {
		return strings.Compare(x.name.typ+"\x00"+x.name.key, y.name.typ+"\x00"+y.name.key)
	})
	for _, l := range lanes {
		fmt.Fprintf(&b, " lane %v: %v of %d %v", l.name, m.seqs(&l.ready), l.members, l.open)
	}
	for _, k := range slices.SortedFunc(maps.Values(q.lanes.buckets), func(x, y *bucket) int {
		return strings.Compare(fmt.Sprint(x.name), fmt.Sprint(y.name))
	}) {
		fmt.Fprintf(&b, " bucket %v: %v %d %v", k.name, k.limit, k.slots, k.paid)
	}
	return b.String()
}

// seqs are the numbers of the jobs of a list.
func (m *Machine) seqs(l *queue.List) []uint64 {
	all := []uint64{}
	for _, h := range l.Slice(0, l.Len(), nil) {
		all = append(all, m.jobs.at(h).seq)
	}
	return all
}

// showRest is all that matters beside jobs and queues.
func (m *Machine) showRest() string {
	var b strings.Builder
	var windows []string
	fmt.Fprintf(&b, "next %d reserved %d open %d durable %d place %v %+v", m.nextSeq, m.reserved, m.open, m.durable, m.firstPlace, *m.Stats())
	for s := range m.byState {
		fmt.Fprint(&b, " ", m.seqs(&m.byState[s]))
	}
	for _, name := range slices.Sorted(maps.Keys(m.groups.names.number)) {
		fmt.Fprintf(&b, " group %s %v", name, m.seqs(&m.groups.jobs[m.groups.names.number[name]]))
	}
	for _, name := range slices.Sorted(maps.Keys(m.tags.names.number)) {
		fmt.Fprintf(&b, " tag %s %v", name, m.seqs(&m.tags.jobs[m.tags.names.number[name]]))
	}
	for _, number := range slices.Sorted(maps.Keys(m.batches)) {
		g := m.batches[number]
		fmt.Fprintf(&b, " batch %d %+v %d %d %d %d %+v", number, g.batchMeta, g.members, g.done, g.untried, g.failing, g.children)
	}
	for _, name := range slices.Sorted(maps.Keys(m.schedules.byName)) {
		s := m.schedules.byName[name]
		fmt.Fprintf(&b, " schedule %s %s %v %v %v %v", name, s.definition, s.at, s.next, s.live, m.timers.At(s.deadline))
	}
	for _, name := range slices.Sorted(maps.Keys(m.meta)) {
		fmt.Fprintf(&b, " meta %s %q", name, m.meta[name])
	}
	for _, name := range slices.Sorted(maps.Keys(m.shared.byName)) {
		s := m.shared.byName[name]
		fmt.Fprintf(&b, " shared %+v: %d %v", s.SharedLimit, s.bucket.slots, s.bucket.paid)
	}
	for _, w := range m.windows.all {
		if w != nil {
			windows = append(windows, fmt.Sprint(w.seq, w.id, w.createdAt, w.until))
		}
	}
	slices.Sort(windows)
	fmt.Fprintf(&b, " windows %v", windows)
	var deadlines [timerKinds]int
	m.timers.Shift(func(o timer.Owner) bool { deadlines[o.Kind]++; return false }, 0)
	fmt.Fprintf(&b, " deadlines %v meters %v", deadlines, m.meters.Show())
	return b.String()
}
