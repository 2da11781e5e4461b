package machine

import (
	"time"

	"broker/core"
)

// What happens in a queue is counted in its meter: at once for the present step of two seconds, whose end writes a point
// and adds what was counted to the present minute and to the sum of all queues; likewise from minutes to hours. Steps end
// before the first decision after them. A queue without a meter of its own has that of the rest.

// meter measures one queue.
type meter struct {
	name     string
	levels   [len(core.Steps)]level
	was      gauges
	wait     core.Histogram // since the process started, without the present minute
	run      core.Histogram
	activity uint64 // jobs lately: halved each minute
	saved    savedBlocks
}

func newMeter(name string, step int64) *meter {
	m := &meter{name: name}
	for i, s := range core.Steps {
		m.levels[i].ring = newRing(s)
		m.levels[i].ring.next = step * int64(core.Step2s.Span()) / int64(s.Span())
	}
	return m
}

// measures are all meters.
type measures struct {
	step  int64        // number of the present step of two seconds
	ends  core.Instant // when that is over
	all   *meter
	rest  *meter
	named map[string]*meter
	limit int                       // of named
	list  []*meter                  // those of named, in the order in which they came
	dirty [len(core.Steps)][]*meter // those with something to write; never all in the list of Step2s

	types map[string]*core.Histograms
	kinds []*core.Histograms // the same by number of the type, as far as it was looked up
	spare core.Histograms    // of types beyond the bound

	wanted []uint32 // queues without a meter that were busy in the present minute
	enough uint32   // how many jobs a minute make such a queue one of wanted
	saving saving
}

func newMeasures(now core.Instant) measures {
	x := measures{
		limit: core.MaxDetailed, named: map[string]*meter{}, types: map[string]*core.Histograms{},
		spare: core.Histograms{Wait: new(core.Histogram), Run: new(core.Histogram)}, enough: fewJobs,
	}
	x.begin(stepAt(core.Step2s, now))
	x.saving = nextRound(now)
	x.all, x.rest = newMeter("", x.step), newMeter("", x.step)
	return x
}

// begin makes step the present one.
func (x *measures) begin(step int64) {
	x.step = step
	x.ends = core.Instant(step+1) * micros(core.Step2s)
}

// micros is the length of a step.
func micros(s core.Step) core.Instant { return core.Instant(s.Span() / time.Microsecond) }

// stepAt is the number of the step that an instant is in.
func stepAt(s core.Step, at core.Instant) int64 { return int64(at / micros(s)) }

// mark notes that the present step of a meter has something to write.
func (x *measures) mark(mt *meter) {
	if !mt.levels[core.Step2s].dirty {
		x.markLevel(mt, core.Step2s)
	}
}

func (x *measures) markLevel(mt *meter, s core.Step) {
	if l := &mt.levels[s]; !l.dirty {
		l.dirty = true
		x.dirty[s] = append(x.dirty[s], mt)
	}
}

// measureSubmit counts a job that has come to a queue.
func (m *Machine) measureSubmit(n uint32, q *jobQueue) {
	if q.meter == m.measures.rest {
		m.wantMeter(n, q)
	}
	q.meter.levels[core.Step2s].submitted++
}

// measureLease counts how long a job that is being leased has waited.
func (m *Machine) measureLease(q *jobQueue, e *entry) {
	span := m.now - e.waitsSince(m.now)
	q.meter.levels[core.Step2s].wait.AddSpan(span)
	if e.kind != 0 {
		m.typeHistograms(e.kind).Wait.AddSpan(span)
	}
}

// measureRun counts how long a job has run that is done or failed; one that was not leased has not run.
func (m *Machine) measureRun(q *jobQueue, e *entry, failed bool) {
	l := &q.meter.levels[core.Step2s]
	if failed {
		l.failed++
	} else {
		l.done++
	}
	if e.state != core.Leased {
		return
	}
	l.run.AddSpan(m.now - e.leasedAt)
	if e.kind != 0 {
		m.typeHistograms(e.kind).Run.AddSpan(m.now - e.leasedAt)
	}
}

// waitsSince is since when a ready job can be handed out.
func (e *entry) waitsSince(now core.Instant) core.Instant {
	return max(min(e.readyAt, now), e.createdAt, e.leasedAt)
}

// typeHistograms are those of a type; types beyond the bound share one pair, which nobody reads.
func (m *Machine) typeHistograms(kind uint32) *core.Histograms {
	x := &m.measures
	for int(kind) >= len(x.kinds) {
		x.kinds = append(x.kinds, nil)
	}
	h := x.kinds[kind]
	if h == nil {
		name := m.types.names[kind]
		if h = x.types[name]; h == nil {
			if len(x.types) == x.limit {
				return &x.spare
			}
			h = &core.Histograms{Wait: new(core.Histogram), Run: new(core.Histogram)}
			x.types[name] = h
		}
		x.kinds[kind] = h
	}
	return h
}

// forgetKind is for a number of a type that may be given to another one.
func (x *measures) forgetKind(kind uint32) {
	if int(kind) < len(x.kinds) {
		x.kinds[kind] = nil
	}
}

// endStep closes the steps that are over: the present one, and with it the minute and the hour if they have ended too.
func (m *Machine) endStep(now core.Instant) {
	x, next := &m.measures, stepAt(core.Step2s, now)
	for _, s := range core.Steps {
		per := int64(s.Span() / core.Step2s.Span())
		if x.step/per == next/per {
			break
		}
		if len(x.dirty[s]) > 0 {
			m.closeLevel(s, x.step/per)
		}
		if s == core.Step1m {
			m.reassignMeters()
		}
		if s == core.Step1h {
			m.expireSeries(next)
		}
	}
	x.begin(next)
}

// closeLevel writes the points of all meters that have something to write in a step, and adds what they have counted to
// the next longer one.
func (m *Machine) closeLevel(s core.Step, step int64) {
	x := &m.measures
	if s == core.Step2s {
		m.readGauges()
	}
	for _, mt := range x.dirty[s] {
		if s == core.Step2s {
			x.all.levels[s].add(&mt.levels[s])
		}
		m.closeMeter(mt, s, step)
	}
	if s == core.Step2s {
		m.closeMeter(x.all, s, step)
	}
	clear(x.dirty[s])
	x.dirty[s] = x.dirty[s][:0]
}

// closeMeter writes the point of a step, and adds what was counted to the next longer one.
func (m *Machine) closeMeter(mt *meter, s core.Step, step int64) {
	l := &mt.levels[s]
	l.closeStep(s, step, &mt.was)
	if s == core.Step1m {
		mt.wait.Merge(&l.wait)
		mt.run.Merge(&l.run)
		mt.activity += uint64(l.submitted) + uint64(l.done) + uint64(l.failed)
	}
	if s != core.Step1h {
		mt.levels[s+1].add(l)
		m.measures.markLevel(mt, s+1)
	}
	l.reset()
}

// readGauges notes what the queues hold whose steps end.
func (m *Machine) readGauges() {
	x := &m.measures
	for _, mt := range x.dirty[core.Step2s] {
		x.fill(mt)
		if mt == x.rest {
			continue
		}
		mt.was = gauges{}
		if n := m.names[mt.name]; n != 0 {
			mt.was = m.gaugesOf(m.queues[n])
		}
	}
	sum := gauges{}
	for _, mt := range x.list {
		sum.ready += mt.was.ready
		sum.leased += mt.was.leased
		if at := mt.was.oldestAt; at != 0 && (sum.oldestAt == 0 || at < sum.oldestAt) {
			sum.oldestAt = at
		}
	}
	x.fill(x.all)
	x.fill(x.rest)
	x.all.was = gauges{
		ready: uint32(m.stats.Jobs[core.Ready]), leased: uint32(m.stats.Jobs[core.Leased]), oldestAt: sum.oldestAt,
	}
	x.rest.was = gauges{ready: x.all.was.ready - sum.ready, leased: x.all.was.leased - sum.leased}
}

// fill writes the points of those steps before the present ones in which the gauges of a meter have stood still.
func (x *measures) fill(mt *meter) {
	for _, s := range core.Steps {
		mt.levels[s].fill(s, x.step/int64(s.Span()/core.Step2s.Span()), &mt.was)
	}
}

func (m *Machine) gaugesOf(q *jobQueue) gauges {
	return gauges{
		ready: uint32(q.count[core.Ready]), leased: uint32(q.count[core.Leased]), oldestAt: m.oldestReady(q),
	}
}

// maxRuns is at how many priorities oldestReady looks.
const maxRuns = 16

// oldestReady is when the ready job of a queue became ready that has waited longest, zero if there is none. The list is in
// the order of that instant within a priority, so that it looks at the first job of each; beyond maxRuns it may miss one.
func (m *Machine) oldestReady(q *jobQueue) (oldest core.Instant) {
	h := q.ready.Front()
	for runs := 0; h != 0 && runs < maxRuns; runs++ {
		e := m.jobs.at(h)
		if at := max(min(e.readyAt, m.now), e.createdAt); oldest == 0 || at < oldest {
			oldest = at
		}
		walk := q.ready.From(func(h uint32) bool {
			x := m.jobs.at(h)
			return x.priority() > e.priority() || x.priority() == e.priority() && (!x.has(scheduledOrder) || e.has(scheduledOrder))
		})
		h = walk.Next()
	}
	return oldest
}

// rates are how many jobs a second have come to a queue and were run in it, over the last minute.
func (m *Machine) rates(q *jobQueue) (in, out float64) {
	x := &m.measures
	if q.meter == x.rest {
		return 0, 0
	}
	l := &q.meter.levels[core.Step2s]
	for step := x.step - 30; step < x.step; step++ {
		p := l.ring.at(step)
		in += float64(p.submitted)
		out += float64(p.done) + float64(p.failed)
	}
	return in / 60, out / 60
}

func (m *Machine) readSeries(c *client, op *core.ReadSeries) {
	if int(op.Step) >= len(core.Steps) {
		m.failed(c, op.Tag, core.ErrInvalid)
		return
	}
	series := &core.Series{Step: op.Step, Points: []core.Point{}}
	if mt := m.meterFor(op.Queue, op.Rest); mt != nil {
		m.readPoints(mt, op, series)
	}
	m.reply(c, core.Reply{Kind: core.Answered, Tag: op.Tag, Answer: &core.Answer{Series: series}})
}

// meterFor is the meter that somebody asks for, nil if there is none.
func (m *Machine) meterFor(queue string, rest bool) *meter {
	switch {
	case rest:
		return m.measures.rest
	case queue == "":
		return m.measures.all
	}
	return m.measures.named[queue]
}

func (m *Machine) readPoints(mt *meter, op *core.ReadSeries, into *core.Series) {
	span, end := micros(op.Step), stepAt(op.Step, m.now)
	l := &mt.levels[op.Step]
	l.fill(op.Step, end, &mt.was)
	first := max(end-int64(op.Step.Points()), int64((op.From+span-1)/span))
	into.From = core.Instant(first) * span
	for step := first; step < end; step++ {
		p := l.ring.at(step)
		into.Points = append(into.Points, p.full())
	}
}

func (m *Machine) readHistograms(c *client, op *core.ReadHistograms) {
	r := core.Reply{Kind: core.Answered, Tag: op.Tag, Answer: &core.Answer{}}
	if op.Type != "" {
		if h := m.measures.types[op.Type]; h != nil {
			r.Histograms = core.Histograms{Wait: h.Wait.Clone(), Run: h.Run.Clone()}
		}
		m.reply(c, r)
		return
	}
	if mt := m.meterFor(op.Queue, op.Rest); mt != nil {
		r.Histograms = m.histogramsOf(mt)
	}
	m.reply(c, r)
}

// histogramsOf is what a meter has counted since the process started.
func (m *Machine) histogramsOf(mt *meter) core.Histograms {
	h := core.Histograms{Wait: mt.wait.Clone(), Run: mt.run.Clone()}
	for _, s := range []core.Step{core.Step2s, core.Step1m} {
		h.Wait.Merge(&mt.levels[s].wait)
		h.Run.Merge(&mt.levels[s].run)
	}
	if mt == m.measures.all { // the present steps of the others will be added to it
		for _, other := range m.measures.dirty[core.Step2s] {
			h.Wait.Merge(&other.levels[core.Step2s].wait)
			h.Run.Merge(&other.levels[core.Step2s].run)
		}
	}
	return h
}
