package machine

import (
	"slices"

	"broker/core"
)

// The first MaxDetailed queues get their own meter with their first job. Once a minute, a queue with more than fewJobs in it and
// twice as many as the least busy meter replaces that one.

// fewJobs is the number of jobs per minute up to which a queue is not busy; maxWanted is the number of candidates considered per
// minute.
const (
	fewJobs   = 10
	maxWanted = 64
)

// wantMeter gives a queue a free meter, or records it as a candidate.
func (m *Machine) wantMeter(n uint32, q *jobQueue) {
	x := &m.measures
	if q.name == "" {
		return
	}
	if len(x.list) < x.limit {
		m.giveMeter(q)
		return
	}
	if minute := stepAt(core.Step1m, m.now); q.recentMinute != minute {
		q.recentMinute, q.recent = minute, 0
	}
	if q.recent++; q.recent == x.enough && len(x.wanted) < maxWanted {
		x.wanted = append(x.wanted, n)
	}
}

// giveMeter gives a queue its own meter.
func (m *Machine) giveMeter(q *jobQueue) {
	x := &m.measures
	mt := newMeter(q.name, x.step)
	x.named[q.name] = mt
	x.list = append(x.list, mt)
	q.meter = mt
	x.mark(mt)
}

// reassignMeters replaces the meters of quiet queues by those of busy ones.
func (m *Machine) reassignMeters() {
	x := &m.measures
	for _, n := range x.wanted {
		q := m.queues[n]
		if q == nil || q.meter != x.rest {
			continue
		}
		if least := x.leastBusy(); uint64(q.recent) > 2*least.activity {
			m.dropMeter(least.name)
			m.giveMeter(q)
		}
	}
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
func (x *measures) leastBusy() *meter {
	return slices.MinFunc(x.list, func(a, b *meter) int {
		switch {
		case a.activity < b.activity:
			return -1
		case a.activity > b.activity:
			return 1
		}
		return 0
	})
}

// dropMeter removes the meter of a queue; its counts are added to those of the rest.
func (m *Machine) dropMeter(name string) {
	x := &m.measures
	mt := x.named[name]
	if mt == nil {
		return
	}
	delete(x.named, name)
	x.list = slices.DeleteFunc(x.list, func(o *meter) bool { return o == mt })
	for s := range core.Steps {
		l := &mt.levels[s]
		if !l.dirty {
			continue
		}
		x.dirty[s] = slices.DeleteFunc(x.dirty[s], func(o *meter) bool { return o == mt })
		x.rest.levels[s].add(l)
		x.markLevel(x.rest, core.Step(s))
	}
	x.rest.wait.Merge(&mt.wait)
	x.rest.run.Merge(&mt.run)
	m.forgetSeries(mt)
	if n := m.names[name]; n != 0 {
		m.queues[n].meter = x.rest
		x.mark(x.rest)
	}
}
