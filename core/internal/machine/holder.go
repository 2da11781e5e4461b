package machine

import (
	"time"

	"broker/core"
	"broker/core/internal/limit"
	"broker/core/internal/table"
	"broker/core/internal/timer"
)

// grant leases a job to a client or worker for a number of milliseconds; zero: until the connection closes.
func (m *Machine) grant(c *client, op *core.Lease, h uint32, e *table.Entry, granted uint32) {
	e.Epoch++
	e.Clear(table.Untouched)
	m.waited = e.WaitsSince(m.table.Now)
	e.LeasedAt = m.table.Now
	if e.Has(table.Stopping) {
		m.table.NoteStop(e)
	}
	m.table.Enlist(h, e)
	e.Granted = granted
	if granted != 0 {
		until := m.table.Now.Add(time.Duration(granted) * time.Millisecond)
		e.StateTimer = m.table.Timers.Add(until, timer.Owner{Kind: table.TimerState, Handle: h})
	}
	m.hold(c, op, h, e)
	m.stats.LeasedBy[c.protocol]++
	if e.Has(table.TallyMoves | table.TallyFirstLease) {
		m.table.TalliedLease(h, e)
	}
}

// grantOf describes the lease of a job.
func (m *Machine) grantOf(e *table.Entry) core.Grant {
	return core.Grant{
		Epoch: e.Epoch, LeasedAt: e.LeasedAt, LeaseFor: e.LeaseSpan(), EnqueuedAt: min(e.ReadyAt, m.table.Now), Attempts: e.Attempts, Fails: e.Fails,
	}
}

// hold records the holder of a job.
func (m *Machine) hold(c *client, op *core.Lease, h uint32, e *table.Entry) {
	e.Set(table.Held)
	e.HolderKind, e.HolderFrom = op.Holder, c.protocol
	key, worker := uint64(c.id), c.own
	switch op.Holder {
	case core.HeldByConn:
		e.Holder, e.HeldAt = c.slot, uint32(len(c.held))
		c.held = append(c.held, h)
	case core.HeldByWorker:
		m.table.HoldNamed(h, e, op.Worker)
		c.worker = m.table.Workers.NameOf(e.Holder)
		key, worker = limit.WorkerKey|uint64(e.Holder), m.consumers.named(c.worker)
	case core.HeldByNobody:
		e.Holder = 0
		if worker != nil {
			e.Holder = worker.number
		}
	}
	m.leaseStarted(worker, m.queues[e.Queue])
	m.limits.TakeSlot(h, e, key)
}

// unhold removes a job, still Leased, from its holder; it may be called twice.
func (m *Machine) unhold(h uint32, e *table.Entry) {
	if !e.Has(table.Held) {
		return
	}
	e.Clear(table.Held)
	m.lastHolder = lastHolder{seq: e.Seq, leasedAt: e.LeasedAt}
	m.table.Unlist(h, e)
	m.table.Timers.Remove(&e.StateTimer)
	m.limits.FreeSlot(h, e)
	m.stats.LeasedBy[e.HolderFrom]--
	switch e.HolderKind {
	case core.HeldByConn:
		c := m.clients[e.Holder]
		m.lastHolder.name, m.lastHolder.address = c.name, c.address
		m.table.SwapOut(&c.held, e.HeldAt)
		m.leaseEnded(c.own, m.queues[e.Queue])
	case core.HeldByWorker:
		m.lastHolder.name = m.table.Workers.NameOf(e.Holder)
		m.leaseEnded(m.consumers.byName[m.lastHolder.name], m.queues[e.Queue])
		m.table.DropNamed(e)
	case core.HeldByNobody:
		m.leaseEnded(m.consumers.all[e.Holder], m.queues[e.Queue])
	}
	e.Holder, e.HeldAt = 0, 0
}
