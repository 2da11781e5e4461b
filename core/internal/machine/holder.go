package machine

import "broker/core"

// hold records the holder of a job.
func (m *Machine) hold(c *client, op *core.Lease, h uint32, e *entry) {
	e.set(held)
	e.holderKind, e.holderFrom = op.Holder, c.protocol
	key := uint64(c.id)
	switch op.Holder {
	case core.HeldByConn:
		e.holder, e.heldAt = c.slot, uint32(len(c.held))
		c.held = append(c.held, h)
	case core.HeldByWorker:
		m.holdNamed(h, e, op.Worker)
		c.worker = m.workers.names[e.holder]
		key = workerKey | uint64(e.holder)
	case core.HeldByNobody:
		e.holder = 0
	}
	m.takeSlot(h, e, key)
}

// unhold removes a job, still Leased, from its holder; it may be called twice.
func (m *Machine) unhold(h uint32, e *entry) {
	if !e.has(held) {
		return
	}
	e.clear(held)
	m.left = lastHolder{seq: e.seq, name: m.holderName(e), address: m.holderAddress(nil, e), leasedAt: e.leasedAt}
	m.unlist(h, e)
	m.timers.Remove(&e.stateTimer)
	m.giveSlot(h, e)
	m.stats.LeasedBy[e.holderFrom]--
	switch e.holderKind {
	case core.HeldByConn:
		m.swapOut(&m.clients[e.holder].held, e.heldAt)
	case core.HeldByWorker:
		m.dropNamed(e)
	case core.HeldByNobody:
	}
	e.holder, e.heldAt = 0, 0
}
