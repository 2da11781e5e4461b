package machine

import (
	"broker/core"
	"broker/core/internal/table"
)

// heldByBatch reports whether a job is a callback that its batch has not released.
func (m *Machine) heldByBatch(h uint32, e *table.Entry) bool {
	x := m.table.Optional(h)
	return e.State == core.Blocked && x != nil && x.CallbackFor != 0
}

// unblock makes a job scheduled or ready.
func (m *Machine) unblock(h uint32, e *table.Entry) {
	m.table.Unlist(h, e)
	if e.ReadyAt < m.table.Now {
		e.ReadyAt = m.table.Now
		e.Clear(table.ScheduledOrder)
	}
	m.schedule(h, e)
}
