package machine

import (
	"broker/core"
	"broker/core/internal/limit"
	"broker/core/internal/table"
)

// hold records the holder of a job.
func (m *Machine) hold(c *client, op *core.Lease, h uint32, e *table.Entry) {
	e.Set(table.Held)
	e.HolderKind, e.HolderFrom = op.Holder, c.protocol
	key := uint64(c.id)
	switch op.Holder {
	case core.HeldByConn:
		e.Holder, e.HeldAt = c.slot, uint32(len(c.held))
		c.held = append(c.held, h)
	case core.HeldByWorker:
		m.table.HoldNamed(h, e, op.Worker)
		c.worker = m.table.Workers.NameOf(e.Holder)
		key = limit.WorkerKey | uint64(e.Holder)
	case core.HeldByNobody:
		e.Holder = 0
	}
	m.limits.TakeSlot(h, e, key)
}

// unhold removes a job, still Leased, from its holder; it may be called twice.
func (m *Machine) unhold(h uint32, e *table.Entry) {
	if !e.Has(table.Held) {
		return
	}
	e.Clear(table.Held)
	m.left = lastHolder{seq: e.Seq, leasedAt: e.LeasedAt}
	m.table.Unlist(h, e)
	m.table.Timers.Remove(&e.StateTimer)
	m.limits.GiveSlot(h, e)
	m.stats.LeasedBy[e.HolderFrom]--
	switch e.HolderKind {
	case core.HeldByConn:
		c := m.clients[e.Holder]
		m.left.name, m.left.address = c.name, c.address
		m.table.SwapOut(&c.held, e.HeldAt)
	case core.HeldByWorker:
		m.left.name = m.table.Workers.NameOf(e.Holder)
		m.table.DropNamed(e)
	case core.HeldByNobody:
	}
	e.Holder, e.HeldAt = 0, 0
}
