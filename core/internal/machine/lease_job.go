package machine

import (
	"broker/core"
	"broker/core/internal/table"
)

// leaseJob leases a particular job to a worker with an id or to a connection.
func (m *Machine) leaseJob(c *client, op *core.LeaseJob) {
	h, e, err := m.findIf(op.Ref, &op.If)
	if err == nil {
		err = m.leaseJobRefusal(h, e, op)
	}
	if m.rejected(c, op.Tag, e, err) {
		return
	}
	stops := e.Has(table.Stopping)
	m.takeForLease(h, e)
	m.move(e, core.Leased)
	if stops {
		e.Set(table.Stopping) // the next worker is asked to stop too; grant sets the time
	}
	e.Attempts++
	m.meters.Leased(&m.queues[e.Queue].metered, e.Kind, m.table.Now-e.WaitsSince(m.table.Now))
	m.limits.LeasedAnyway(&m.queues[e.Queue].Queue, h, e)
	m.grantJob(c, op, h, e)
	if x := m.table.Optional(h); x != nil && x.UniqueStart && !e.Has(table.Unlocked) {
		m.unlock(h)
	}
	m.count(e.Origin, c.protocol, func(t *core.Totals) { t.Leased++ })
	m.queues[e.Queue].counts.of(c.protocol).leased++
	e.Set(table.Changed)
	m.table.Touch(h, e)
	m.reply(c, core.Reply{Kind: core.Accepted, Tag: op.Tag, Seq: e.Seq, Lease: m.grantOf(e), Commit: m.table.ChangeCommit(e)})
	m.record(h, e, core.EventLeased, "")
}

// grantJob grants the lease.
func (m *Machine) grantJob(c *client, op *core.LeaseJob, h uint32, e *table.Entry) {
	if !op.ByConn {
		m.grant(c, &core.Lease{Holder: core.HeldByWorker, Worker: op.Worker}, h, e, table.Millis(op.LeaseFor))
		return
	}
	m.worksNow(c)
	lease := &core.Lease{Holder: core.HeldByConn}
	span := m.leaseFor(e)
	if op.LeaseFor != 0 {
		span = table.Millis(op.LeaseFor)
	}
	m.grant(c, lease, h, e, span)
}

func (m *Machine) leaseJobRefusal(h uint32, e *table.Entry, op *core.LeaseJob) error {
	switch e.State {
	case core.Ready, core.Scheduled, core.Retrying, core.Leased:
	case core.Dead:
		if !op.Dead {
			return core.ErrFinished
		}
	case core.Done:
		return core.ErrFinished
	case core.Gone, core.Blocked:
		return core.ErrInvalid
	}
	switch {
	case op.ByConn == (op.Worker != ""), op.LeaseFor < 0, op.LeaseFor == 0 && !op.ByConn:
		return core.ErrInvalid
	case m.draining:
		return core.ErrDraining
	case m.limits.OutOfTurn(h, e):
		return core.ErrOutOfTurn
	}
	return nil
}

// takeForLease makes a job ready and takes it out of its queue's list.
func (m *Machine) takeForLease(h uint32, e *table.Entry) {
	if e.State == core.Ready {
		m.limits.RemoveReady(&m.queues[e.Queue].Queue, h)
		return
	}
	if e.State == core.Leased {
		m.unhold(h, e)
		m.count(e.Origin, e.HolderFrom, func(t *core.Totals) { t.Released++ })
		m.timeOutRuns(e)
		m.table.ForgetProgress(h, e)
	} else {
		m.detach(h, e)
	}
	if e.State == core.Dead {
		m.leaveDeadSet(h, e)
		m.links.Unlink(h)
	}
	m.move(e, core.Ready)
}
