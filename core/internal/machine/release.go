package machine

import "broker/core"

// releaseLease returns a leased job to its original position: its worker is gone or has given it back.
func (m *Machine) releaseLease(h uint32) {
	e := m.jobs.at(h)
	m.unhold(h, e)
	m.count(e.origin, e.holderFrom, func(t *core.Totals) { t.Released++ })
	m.queues[e.queue].counts.Released++
	m.record(h, e, core.EventReleased, "")
	e.set(requeued)
	m.requeueLeased(h, e)
}

// revokeLease takes a lease back as if it had never been granted, if its epoch is still current.
func (m *Machine) revokeLease(seq uint64, epoch uint32) {
	h := m.bySeq.get(seq)
	if h == 0 || m.jobs.at(h).state != core.Leased || m.jobs.at(h).epoch != epoch {
		return
	}
	e := m.jobs.at(h)
	m.unhold(h, e)
	m.count(e.origin, e.holderFrom, func(t *core.Totals) { t.Released++ })
	m.queues[e.queue].counts.Released++
	m.record(h, e, core.EventReleased, "returned unused")
	e.attempts--
	m.requeueLeased(h, e)
}

func (m *Machine) releaseOp(c *client, op *core.Release) {
	_, e, err := m.findIf(op.Ref, &core.Condition{})
	if err == nil && (e.state != core.Leased || e.epoch != op.Epoch) {
		err = core.ErrNotLeased
	}
	if m.rejected(c, op.Tag, e, err) {
		return
	}
	seq := e.seq
	m.revokeLease(seq, op.Epoch)
	m.reply(c, core.Reply{Kind: core.Accepted, Tag: op.Tag, Seq: seq})
}

// requeueLeased decides what happens to a job whose lease ended without an outcome. The caller has counted the attempt or not.
func (m *Machine) requeueLeased(h uint32, e *entry) {
	m.timeOutRuns(e)
	switch {
	case m.abandoned(e):
		m.end(h, &core.Outcome{Cause: core.Cancelled})
	case e.has(stopping):
		m.endStopped(h, e.holderFrom)
	case m.usedUp(e):
		m.endUsedUp(h, e)
	case m.poisonous(e):
		m.buryPoison(h, e)
	default:
		if e.has(changed) {
			m.touch(h, e)
		}
		m.makeReady(h, e)
	}
}

// leaseRanOut ends an expired lease.
func (m *Machine) leaseRanOut(h uint32) {
	e := m.jobs.at(h)
	from := e.holderFrom
	m.unhold(h, e)
	m.record(h, e, core.EventLeaseExpired, "")
	m.tallied(h, e, tallyMoves, func(t *core.Tally) { t.Timeouts++ })
	m.timeOutRuns(e)
	if e.words&endFails != 0 && !e.has(ephemeral) {
		m.failJob(h, from, &core.Failure{Type: core.ReservationExpired, Message: core.ReservationExpiredMessage}, afterFail{})
		return
	}
	e.set(requeued)
	m.leaseLost(h, e)
	m.requeueLeased(h, e)
}

// timeOutRuns times out the runs that waited beyond their deadline for the attempt that now ends.
func (m *Machine) timeOutRuns(e *entry) {
	if !e.has(runOver) {
		return
	}
	e.clear(runOver)
	m.eachWatcher(e, func(n uint32, w *watcher) {
		if !w.over {
			return
		}
		c, r := m.clients[w.client], core.Reply{Kind: core.TimedOut, Tag: w.tag, Seq: e.seq}
		m.unwatch(n, false)
		m.reply(c, r)
	})
}
