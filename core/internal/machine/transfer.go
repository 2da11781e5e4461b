package machine

import (
	"time"

	"broker/core"
	"broker/core/internal/timer"
)

// transferLease transfers a lease to a worker with an id.
func (m *Machine) transferLease(c *client, op *core.TransferLease) {
	h, e, err := m.findIf(op.Ref, &core.Condition{})
	switch {
	case err != nil:
	case e.state != core.Leased || e.epoch != op.Epoch:
		err = core.ErrNotLeased
	case op.Worker == "" || op.LeaseFor < 0:
		err = core.ErrInvalid
	}
	if m.rejected(c, op.Tag, e, err) {
		return
	}
	m.unhold(h, e)
	to := core.Lease{Holder: core.HeldByWorker, Worker: op.Worker}
	granted := millis(op.LeaseFor)
	if granted == 0 {
		granted = m.grantFor(e, &to, 0)
	}
	if q := m.queues[e.queue]; q.lanes != nil {
		m.sortIn(h, e, q) // the walk may not have reached it
	}
	m.grant(c, &to, h, e, granted)
	m.waited = 0
	e.set(changed)
	m.touch(h, e)
	m.record(h, e, core.EventLeased, "transferred")
	r := core.Reply{Kind: core.Accepted, Tag: op.Tag, Seq: e.seq, Lease: core.Grant{
		Epoch: e.epoch, LeasedAt: e.leasedAt, LeaseFor: e.leaseSpan(), EnqueuedAt: min(e.readyAt, m.now), Attempts: e.attempts, Fails: e.fails,
	}}
	r.Commit = m.changeCommit(e)
	m.reply(c, r)
}

// grant leases a job to a client or worker for a number of milliseconds; zero: as long as the connection.
func (m *Machine) grant(c *client, op *core.Lease, h uint32, e *entry, granted uint32) {
	e.epoch++
	e.clear(untouched)
	m.waited = e.waitsSince(m.now)
	e.leasedAt = m.now
	if e.has(stopping) {
		m.noteStop(e)
	}
	m.enlist(h, e)
	e.granted = granted
	if granted != 0 {
		until := m.now.Add(time.Duration(granted) * time.Millisecond)
		e.stateTimer = m.timers.Add(until, timer.Owner{Kind: timerState, Handle: h})
	}
	m.hold(c, op, h, e)
	m.stats.LeasedBy[c.protocol]++
	if e.has(tallyMoves | tallyFirstLease) {
		m.talliedLease(h, e)
	}
}
