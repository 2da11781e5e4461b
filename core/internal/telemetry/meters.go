package telemetry

import (
	"time"

	"broker/core"
)

// The meter of a queue counts its activity. Counts first go to the current step of two seconds. At the end of the step,
// they are written as a point and added to the current minute and to the sum of all queues. Minutes are added to hours
// in the same way. A step ends before the first decision after it. A queue without a meter of its own uses the meter of
// the rest.

// Meter measures one queue, or several together.
type Meter struct {
	name     string
	levels   [len(core.Steps)]level
	gauges   Gauges
	wait     core.Histogram // since the process started, without the current minute
	run      core.Histogram
	activity uint64 // recent number of jobs: halved each minute
	saved    savedBlocks
}

func newMeter(name string, step int64) *Meter {
	m := &Meter{name: name}
	for i, s := range core.Steps {
		m.levels[i].ring = newRing(s)
		m.levels[i].ring.next = step * int64(core.Step2s.Span()) / int64(s.Span())
	}
	return m
}

// Queue is telemetry's data about a queue. It is embedded in the machine's queue.
type Queue struct {
	Name         string
	meter        *Meter
	recent       uint32 // jobs submitted in recentMinute, if the queue has no meter of its own
	recentMinute int64
}

// Host is what telemetry needs from the machine.
type Host interface {
	// Queue returns a queue by its name; nil: there is none.
	Queue(name string) *Queue
	// QueueGauges returns the gauges of a queue by its name; zero: there is none.
	QueueGauges(name string) Gauges
	// Gauges returns the gauges of all queues together, without the oldest job.
	Gauges() Gauges
	// RemoveMeta removes a stored entry with the open batch.
	RemoveMeta(name string)
	// TypeName returns the name of the type with a number.
	TypeName(kind uint32) string
}

// Meters are all meters.
type Meters struct {
	host  Host
	step  int64        // number of the current step of two seconds
	ends  core.Instant // when the current step ends
	all   *Meter
	rest  *Meter
	named map[string]*Meter
	limit int                       // of named
	list  []*Meter                  // the meters in named, in the order in which they were added
	dirty [len(core.Steps)][]*Meter // meters with something to write; the list of Step2s never contains all

	types map[string]*core.Histograms
	kinds []*core.Histograms // cache of the histograms by number of the type
	spare core.Histograms    // of types beyond the limit

	wanted []*Queue // queues without a meter that were busy in the current minute
	enough uint32   // jobs in a minute that add such a queue to wanted
	saving saving
}

// NewMeters returns the meters for a machine's queues, at most limit; zero: core.MaxDetailed.
func NewMeters(host Host, now core.Instant, limit int) *Meters {
	if limit <= 0 {
		limit = core.MaxDetailed
	}
	x := &Meters{
		host: host, limit: limit, named: map[string]*Meter{}, types: map[string]*core.Histograms{},
		spare: core.Histograms{Wait: new(core.Histogram), Run: new(core.Histogram)}, enough: fewJobs,
	}
	x.begin(stepAt(core.Step2s, now))
	x.saving = nextRound(now)
	x.all, x.rest = newMeter("", x.step), newMeter("", x.step)
	return x
}

// begin makes step the current step.
func (x *Meters) begin(step int64) {
	x.step = step
	x.ends = core.Instant(step+1) * micros(core.Step2s)
}

// micros is the length of a step.
func micros(s core.Step) core.Instant { return core.Instant(s.Span() / time.Microsecond) }

// stepAt returns the number of the step that an instant belongs to.
func stepAt(s core.Step, at core.Instant) int64 { return int64(at / micros(s)) }

// Add starts to measure a queue.
func (x *Meters) Add(q *Queue) {
	if q.meter = x.named[q.Name]; q.meter == nil {
		q.meter = x.rest
	}
}

// Mark records that the gauges of a queue have changed.
func (x *Meters) Mark(q *Queue) { x.mark(q.meter) }

// mark records that the current step of a meter has something to write.
func (x *Meters) mark(mt *Meter) {
	if !mt.levels[core.Step2s].dirty {
		x.markLevel(mt, core.Step2s)
	}
}

func (x *Meters) markLevel(mt *Meter, s core.Step) {
	if l := &mt.levels[s]; !l.dirty {
		l.dirty = true
		x.dirty[s] = append(x.dirty[s], mt)
	}
}

// Submitted counts a job that was submitted to a queue.
func (x *Meters) Submitted(q *Queue, now core.Instant) {
	if q.meter == x.rest {
		x.wantMeter(q, now)
	}
	q.meter.levels[core.Step2s].submitted++
}

// Leased counts a lease and how long its job has waited. kind is the number of the job's type; zero: the queue's name.
func (x *Meters) Leased(q *Queue, kind uint32, waited core.Instant) {
	q.meter.levels[core.Step2s].wait.AddSpan(waited)
	if kind != 0 {
		x.typeHistograms(kind).Wait.AddSpan(waited)
	}
}

// Finished counts a job that is done or failed.
func (x *Meters) Finished(q *Queue, failed bool) {
	if l := &q.meter.levels[core.Step2s]; failed {
		l.failed++
	} else {
		l.done++
	}
}

// Ran counts how long a job that is done or failed has run.
func (x *Meters) Ran(q *Queue, kind uint32, span core.Instant) {
	q.meter.levels[core.Step2s].run.AddSpan(span)
	if kind != 0 {
		x.typeHistograms(kind).Run.AddSpan(span)
	}
}

// typeHistograms returns the histograms of a type. Types beyond the limit share one pair, which is never shown.
func (x *Meters) typeHistograms(kind uint32) *core.Histograms {
	for int(kind) >= len(x.kinds) {
		x.kinds = append(x.kinds, nil)
	}
	h := x.kinds[kind]
	if h == nil {
		name := x.host.TypeName(kind)
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

// ForgetKind clears the cache for a type number that may be reused.
func (x *Meters) ForgetKind(kind uint32) {
	if int(kind) < len(x.kinds) {
		x.kinds[kind] = nil
	}
}

// Due reports whether the current step has ended.
func (x *Meters) Due(now core.Instant) bool { return now >= x.ends }

// ClockSet adapts to a change of the wall clock.
func (x *Meters) ClockSet(now core.Instant) {
	x.EndStep(now)
	x.saving = nextRound(now)
}

// EndStep closes the steps that have ended: the current one, and also the minute and the hour if they have ended.
func (x *Meters) EndStep(now core.Instant) {
	next := stepAt(core.Step2s, now)
	for _, s := range core.Steps {
		per := int64(s.Span() / core.Step2s.Span())
		if x.step/per == next/per {
			break
		}
		if len(x.dirty[s]) > 0 {
			x.closeLevel(s, x.step/per)
		}
		if s == core.Step1m {
			x.reassignMeters()
		}
		if s == core.Step1h {
			x.expireSeries(next)
		}
	}
	x.begin(next)
}

// closeLevel writes the points of all meters with something to write in a step, and adds their counts to the next
// longer step.
func (x *Meters) closeLevel(s core.Step, step int64) {
	if s == core.Step2s {
		x.readGauges()
	}
	for _, mt := range x.dirty[s] {
		if s == core.Step2s {
			x.all.levels[s].add(&mt.levels[s])
		}
		x.closeMeter(mt, s, step)
	}
	if s == core.Step2s {
		x.closeMeter(x.all, s, step)
	}
	clear(x.dirty[s])
	x.dirty[s] = x.dirty[s][:0]
}

// closeMeter writes the point of a step, and adds the counts to the next longer step.
func (x *Meters) closeMeter(mt *Meter, s core.Step, step int64) {
	l := &mt.levels[s]
	l.closeStep(s, step, &mt.gauges)
	if s == core.Step1m {
		mt.wait.Merge(&l.wait)
		mt.run.Merge(&l.run)
		mt.activity += uint64(l.submitted) + uint64(l.done) + uint64(l.failed)
	}
	if s != core.Step1h {
		mt.levels[s+1].add(l)
		x.markLevel(mt, s+1)
	}
	l.reset()
}

// readGauges reads the gauges of the queues whose steps end.
func (x *Meters) readGauges() {
	for _, mt := range x.dirty[core.Step2s] {
		x.fill(mt)
		if mt == x.rest {
			continue
		}
		mt.gauges = x.host.QueueGauges(mt.name)
	}
	sum := Gauges{}
	for _, mt := range x.list {
		sum.Ready += mt.gauges.Ready
		sum.Leased += mt.gauges.Leased
		if at := mt.gauges.OldestAt; at != 0 && (sum.OldestAt == 0 || at < sum.OldestAt) {
			sum.OldestAt = at
		}
	}
	x.fill(x.all)
	x.fill(x.rest)
	x.all.gauges = x.host.Gauges()
	x.all.gauges.OldestAt = sum.OldestAt
	x.rest.gauges = Gauges{Ready: x.all.gauges.Ready - sum.Ready, Leased: x.all.gauges.Leased - sum.Leased}
}

// fill writes the points of the past steps in which the gauges of a meter have not changed.
func (x *Meters) fill(mt *Meter) {
	for _, s := range core.Steps {
		mt.levels[s].fill(s, x.step/int64(s.Span()/core.Step2s.Span()), &mt.gauges)
	}
}

// Rates returns how many jobs a second were submitted to a queue and done or failed in it, over the last minute.
// measured is false for queues that share a meter with others; one that has had no job yet has zero of both.
func (x *Meters) Rates(q *Queue) (in, out float64, measured bool) {
	if q.meter == x.rest {
		return 0, 0, len(x.list) < x.limit
	}
	l := &q.meter.levels[core.Step2s]
	for step := x.step - 30; step < x.step; step++ {
		p := l.ring.at(step)
		in += float64(p.submitted)
		out += float64(p.done) + float64(p.failed)
	}
	return in / 60, out / 60, true
}

// Series returns the requested points; valid is false for an unknown step.
func (x *Meters) Series(op *core.ReadSeries, now core.Instant) (series *core.Series, valid bool) {
	if int(op.Step) >= len(core.Steps) {
		return nil, false
	}
	series = &core.Series{Step: op.Step, Points: []core.Point{}}
	if mt := x.meterFor(op.Queue, op.Rest); mt != nil {
		mt.readPoints(op, now, series)
	}
	return series, true
}

// meterFor returns the requested meter, or nil.
func (x *Meters) meterFor(queue string, rest bool) *Meter {
	switch {
	case rest:
		return x.rest
	case queue == "":
		return x.all
	}
	return x.named[queue]
}

func (mt *Meter) readPoints(op *core.ReadSeries, now core.Instant, into *core.Series) {
	span, end := micros(op.Step), stepAt(op.Step, now)
	l := &mt.levels[op.Step]
	l.fill(op.Step, end, &mt.gauges)
	first := max(end-int64(op.Step.Points()), int64((op.From+span-1)/span))
	into.From = core.Instant(first) * span
	for step := first; step < end; step++ {
		p := l.ring.at(step)
		into.Points = append(into.Points, p.full())
	}
}

// Histograms returns the requested histograms; they are nil if there are none.
func (x *Meters) Histograms(op *core.ReadHistograms) (h core.Histograms) {
	if op.Type != "" {
		if of := x.types[op.Type]; of != nil {
			h = core.Histograms{Wait: of.Wait.Clone(), Run: of.Run.Clone()}
		}
		return h
	}
	if mt := x.meterFor(op.Queue, op.Rest); mt != nil {
		h = x.histogramsOf(mt)
	}
	return h
}

// histogramsOf returns the histograms of a meter since the process started.
func (x *Meters) histogramsOf(mt *Meter) core.Histograms {
	h := core.Histograms{Wait: mt.wait.Clone(), Run: mt.run.Clone()}
	for _, s := range []core.Step{core.Step2s, core.Step1m} {
		h.Wait.Merge(&mt.levels[s].wait)
		h.Run.Merge(&mt.levels[s].run)
	}
	if mt == x.all { // it lacks the current steps of the other meters
		for _, other := range x.dirty[core.Step2s] {
			h.Wait.Merge(&other.levels[core.Step2s].wait)
			h.Run.Merge(&other.levels[core.Step2s].run)
		}
	}
	return h
}
