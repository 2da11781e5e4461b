package machine

import (
	"math"
	"time"

	"broker/core"
)

// A job whose worker is asked to stop stays leased until the worker says how it went, or its lease ends. Then it ends as cancelled,
// unless it was completed. The time of the request is in a side map, as in the record: in milliseconds from the start of the lease, and
// 1. Jobs without a request pay for a flag.

// stopsFirst reports whether a cancel leaves a job to its worker.
func stopsFirst(op *core.Cancel, e *entry) bool {
	return op.Running == core.RunningSignal && e.state == core.Leased
}

// askToStop asks the worker of a leased job to stop, unless it was asked before. The job does not run again.
func (m *Machine) askToStop(h uint32) {
	e := m.jobs.at(h)
	if e.has(rerun) {
		e.clear(rerun)
		e.set(changed)
		m.touch(h, e)
	}
	if e.has(stopping) {
		return
	}
	m.noteStop(e)
	e.set(changed)
	m.touch(h, e)
	m.record(h, e, core.EventCancelRequested, "")
}

// noteStop records that the worker of a job is asked to stop from now on.
func (m *Machine) noteStop(e *entry) {
	e.set(stopping)
	m.stops[e.seq] = uint32(min(max(m.now.Sub(e.leasedAt).Milliseconds(), 0)+1, math.MaxUint32)) //nolint:gosec // bounded
}

// forgetStop takes the request back.
func (m *Machine) forgetStop(e *entry) {
	if e.has(stopping) {
		e.clear(stopping)
		delete(m.stops, e.seq)
	}
}

// stopAt is since when the worker of a job is asked to stop; zero: it is not.
func (m *Machine) stopAt(e *entry) core.Instant {
	if !e.has(stopping) {
		return 0
	}
	return e.leasedAt.Add(time.Duration(m.stops[e.seq]-1) * time.Millisecond)
}

// endStopped ends a detached job as cancelled: its worker has stopped, or is gone.
func (m *Machine) endStopped(h uint32, by core.Protocol) {
	e := m.jobs.at(h)
	m.count(e.origin, by, func(t *core.Totals) { t.Cancelled++ })
	outcome := &core.Outcome{Cause: core.Cancelled}
	switch {
	case e.has(rerun):
		m.record(h, e, core.EventCancelled, "")
		m.finish(h, outcome, outcome)
	case m.keptAfter(h, e):
		m.recordFinal(h, e, core.EventCancelled, "")
		m.finish(h, outcome, outcome)
	default:
		m.end(h, outcome)
	}
}

// keptAfter reports whether the outcome of a job that ends now is kept.
func (m *Machine) keptAfter(h uint32, e *entry) bool {
	return m.askedUntil(h, e, m.now) > m.now || !e.has(ephemeral) && m.keptUntil(m.queues[e.queue]) > m.now
}
