package telemetry

import (
	"cmp"
	"slices"

	"broker/core"
)

// The first MaxDetailed queues get their own meter with their first job. Once a minute, a queue with more than fewJobs
// jobs, and twice as many as the queue with the least busy meter, takes over that meter.

// fewJobs is the number of jobs per minute up to which a queue is not busy; maxWanted is the number of candidates
// considered per minute.
const (
	fewJobs   = 10
	maxWanted = 64
)

// wantMeter gives a queue a free meter, or records it as a candidate.
func (x *Meters) wantMeter(q *Queue, now core.Instant) {
	if q.Name == "" {
		return
	}
	if len(x.list) < x.limit {
		x.giveMeter(q)
		return
	}
	if minute := stepAt(core.Step1m, now); q.recentMinute != minute {
		q.recentMinute, q.recent = minute, 0
	}
	if q.recent++; q.recent == x.enough && len(x.wanted) < maxWanted {
		x.wanted = append(x.wanted, q)
	}
}

// giveMeter gives a queue its own meter.
func (x *Meters) giveMeter(q *Queue) {
	mt := newMeter(q.Name, x.step)
	x.named[q.Name] = mt
	x.list = append(x.list, mt)
	q.meter = mt
	x.mark(mt)
}

// reassignMeters gives meters of quiet queues to busy queues.
func (x *Meters) reassignMeters() {
	for _, q := range x.wanted {
		if x.host.Queue(q.Name) != q || q.meter != x.rest { // it was removed, or already has a meter
			continue
		}
		if least := x.leastBusy(); uint64(q.recent) > 2*least.activity {
			x.Drop(least.name)
			x.giveMeter(q)
		}
	}
	clear(x.wanted)
	x.wanted = x.wanted[:0]
	x.enough = fewJobs
	if len(x.list) == x.limit {
		x.enough = uint32(min(max(fewJobs, 2*x.leastBusy().activity+1), 1<<31))
	}
	for _, mt := range x.list {
		mt.activity /= 2
	}
}

// leastBusy returns the meter with the fewest recent events.
func (x *Meters) leastBusy() *Meter {
	return slices.MinFunc(x.list, func(a, b *Meter) int { return cmp.Compare(a.activity, b.activity) })
}

// Drop removes the meter of a queue; its counts are added to the meter of the rest.
func (x *Meters) Drop(name string) {
	mt := x.named[name]
	if mt == nil {
		return
	}
	delete(x.named, name)
	x.list = slices.DeleteFunc(x.list, func(o *Meter) bool { return o == mt })
	for s := range core.Steps {
		l := &mt.levels[s]
		if !l.dirty {
			continue
		}
		x.dirty[s] = slices.DeleteFunc(x.dirty[s], func(o *Meter) bool { return o == mt })
		x.rest.levels[s].add(l)
		x.markLevel(x.rest, core.Step(s))
	}
	x.rest.wait.Merge(&mt.wait)
	x.rest.run.Merge(&mt.run)
	x.forgetSeries(mt)
	if q := x.host.Queue(name); q != nil {
		q.meter = x.rest
		x.mark(x.rest)
	}
}
