package machine

import "broker/core"

// leaseJob gives a particular job to a worker with an id or to a connection.
func (m *Machine) leaseJob(c *client, op *core.LeaseJob) {
	h, e, err := m.findIf(op.Ref, &op.If)
	if err == nil {
		err = m.leaseJobRefusal(h, e, op)
	}
	if m.rejected(c, op.Tag, e, err) {
		return
	}
	stops := e.has(stopping)
	m.takeForLease(h, e)
	m.move(e, core.Leased)
	if stops {
		e.set(stopping) // the next worker is asked too: grant says when
	}
	e.attempts++
	m.meters.Leased(&m.queues[e.queue].watch, e.kind, m.now-e.waitsSince(m.now))
	if q := m.queues[e.queue]; q.lanes != nil {
		m.sortIn(h, e, q) // the walk may not have reached it
		m.countLease(q.lanes, h)
	}
	m.grantJob(c, op, h, e)
	if x := m.optionalState(h); x != nil && x.uniqueStart && !e.has(unlocked) {
		m.unlock(h)
	}
	m.count(e.origin, c.protocol, func(t *core.Totals) { t.Leased++ })
	m.queues[e.queue].counts.Leased[c.protocol]++
	e.set(changed)
	m.touch(h, e)
	r := core.Reply{Kind: core.Accepted, Tag: op.Tag, Seq: e.seq, Lease: core.Grant{
		Epoch: e.epoch, LeasedAt: e.leasedAt, LeaseFor: e.leaseSpan(), EnqueuedAt: min(e.readyAt, m.now), Attempts: e.attempts, Fails: e.fails,
	}}
	r.Commit = m.changeCommit(e)
	m.reply(c, r)
	m.record(h, e, core.EventLeased, "")
}

// grantJob grants the lease.
func (m *Machine) grantJob(c *client, op *core.LeaseJob, h uint32, e *entry) {
	if !op.ByConn {
		m.grant(c, &core.Lease{Holder: core.HeldByWorker, Worker: op.Worker}, h, e, millis(op.LeaseFor))
		return
	}
	m.worksNow(c)
	lease := &core.Lease{Holder: core.HeldByConn}
	span := m.leaseFor(e)
	if op.LeaseFor != 0 {
		span = millis(op.LeaseFor)
	}
	m.grant(c, lease, h, e, span)
}

func (m *Machine) leaseJobRefusal(h uint32, e *entry, op *core.LeaseJob) error {
	switch e.state {
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
	case m.outOfTurn(h, e):
		return core.ErrOutOfTurn
	}
	return nil
}

// takeForLease makes a job ready and takes it out of its queue's list.
func (m *Machine) takeForLease(h uint32, e *entry) {
	if e.state == core.Ready {
		m.removeReady(m.queues[e.queue], h)
		return
	}
	if e.state == core.Leased {
		m.unhold(h, e)
		m.count(e.origin, e.holderFrom, func(t *core.Totals) { t.Released++ })
		m.timeOutRuns(e)
		m.forgetProgress(h, e)
	} else {
		m.detach(h, e)
	}
	if e.state == core.Dead {
		m.leaveDeadSet(h, e)
	}
	m.move(e, core.Ready)
}
