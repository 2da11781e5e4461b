package machine

import (
	"broker/core"
	"broker/core/internal/table"
)

// A job whose worker was asked to stop stays leased until the worker finishes it or the lease ends. Then it ends as cancelled,
// unless it was completed. The time of the request is in a separate map, in the same form as in the record: milliseconds since
// the start of the lease, plus 1. Jobs without a request only need a flag.

// askToStop asks the worker of a leased job to stop, unless it was asked before. The job does not run again.
func (m *Machine) askToStop(h uint32) {
	e := m.table.At(h)
	if e.Has(table.Rerun) {
		e.Clear(table.Rerun)
		e.Set(table.Changed)
		m.table.Touch(h, e)
	}
	if e.Has(table.Stopping) {
		return
	}
	m.table.NoteStop(e)
	e.Set(table.Changed)
	m.table.Touch(h, e)
	m.record(h, e, core.EventCancelRequested, "")
}

// endStopped ends a detached job as cancelled: its worker has stopped, or is gone.
func (m *Machine) endStopped(h uint32, by core.Protocol) {
	e := m.table.At(h)
	m.count(e.Origin, by, func(t *core.Totals) { t.Cancelled++ })
	outcome := &core.Outcome{Cause: core.Cancelled}
	switch {
	case e.Has(table.Rerun):
		m.record(h, e, core.EventCancelled, "")
		m.finish(h, outcome, outcome)
	case m.keptAfter(h, e):
		m.recordFinal(h, e, core.EventCancelled, "")
		m.finish(h, outcome, outcome)
	default:
		m.endDetached(h, outcome)
	}
}

// keptAfter reports whether the outcome of a job that ends now is kept.
func (m *Machine) keptAfter(h uint32, e *table.Entry) bool {
	return m.askedUntil(h, e, m.table.Now) > m.table.Now || !e.Has(table.Ephemeral) && m.keptUntil(m.queues[e.Queue]) > m.table.Now
}
