package machine

import (
	"broker/core"
	"broker/core/internal/table"
	"broker/core/internal/watch"
)

// releaseLease returns a leased job to its queue, because its worker is gone or has given it back.
func (m *Machine) releaseLease(h uint32) {
	e := m.table.At(h)
	m.unhold(h, e)
	m.count(e.Origin, e.HolderFrom, func(t *core.Totals) { t.Released++ })
	m.queues[e.Queue].counts.released++
	m.record(h, e, core.EventReleased, "")
	e.Set(table.Requeued)
	m.putBehind(h, e)
	m.requeueLeased(h, e)
}

// putBehind gives a detached job the position behind the jobs that wait, if its protocol wants that for a job that
// becomes ready again. Otherwise a job that always fails would keep its queue from its workers. In an ordered queue
// its key moves instead. The position of a key is not stored: after a restart each key is where its first job is.
func (m *Machine) putBehind(h uint32, e *table.Entry) {
	switch {
	case !e.Origin.ReturnsBehind():
	case e.Has(table.SeqOrder):
		m.limits.PutBehind(h, e)
	default:
		e.ReadyAt = max(m.table.Now, m.table.FirstPlace)
		e.Set(table.Changed)
	}
}

// revokeLease undoes a lease as if it had never been granted, if its epoch is still current.
func (m *Machine) revokeLease(seq uint64, epoch uint32) {
	h := m.table.Handle(seq)
	if h == 0 || m.table.At(h).State != core.Leased || m.table.At(h).Epoch != epoch {
		return
	}
	e := m.table.At(h)
	m.unhold(h, e)
	m.count(e.Origin, e.HolderFrom, func(t *core.Totals) { t.Released++ })
	m.queues[e.Queue].counts.released++
	m.record(h, e, core.EventReleased, "returned unused")
	e.Attempts--
	m.requeueLeased(h, e)
}

func (m *Machine) releaseOp(c *client, op *core.Release) {
	_, e, err := m.findIf(op.Ref, &core.Condition{})
	if err == nil && (e.State != core.Leased || e.Epoch != op.Epoch) {
		err = core.ErrNotLeased
	}
	if m.rejected(c, op.Tag, e, err) {
		return
	}
	seq := e.Seq
	m.revokeLease(seq, op.Epoch)
	m.reply(c, core.Reply{Kind: core.Accepted, Tag: op.Tag, Seq: seq})
}

// requeueLeased decides what happens to a job whose lease ended without an outcome. The caller decides whether the attempt
// counts.
func (m *Machine) requeueLeased(h uint32, e *table.Entry) {
	m.timeOutRuns(e)
	switch {
	case m.watchers.Abandoned(e):
		m.end(h, &core.Outcome{Cause: core.Cancelled})
	case e.Has(table.Stopping):
		m.endStopped(h, e.HolderFrom)
	case m.usedUp(h, e):
		m.endUsedUp(h, e)
	case m.poisonous(e):
		m.buryPoison(h, e)
	default:
		if e.Has(table.Changed) {
			m.table.Touch(h, e)
		}
		m.makeReady(h, e)
	}
}

// leaseRanOut ends an expired lease.
func (m *Machine) leaseRanOut(h uint32) {
	e := m.table.At(h)
	from := e.HolderFrom
	m.unhold(h, e)
	m.record(h, e, core.EventLeaseExpired, "")
	m.table.Tallied(h, e, table.TallyMoves, func(t *core.Tally) { t.Timeouts++ })
	m.timeOutRuns(e)
	if e.Extra&table.EndFails != 0 && !e.Has(table.Ephemeral) {
		m.failJob(h, from, &core.Failure{Type: core.ReservationExpired, Message: core.ReservationExpiredMessage}, afterFail{})
		return
	}
	e.Set(table.Requeued)
	m.putBehind(h, e)
	m.leaseLost(h, e)
	m.requeueLeased(h, e)
}

// timeOutRuns ends the wait of clients whose deadline had passed while they waited for this attempt to end.
func (m *Machine) timeOutRuns(e *table.Entry) {
	if !e.Has(table.RunOver) {
		return
	}
	e.Clear(table.RunOver)
	m.watchers.Each(e, func(n uint32, w *watch.Watcher) {
		if !w.Over {
			return
		}
		c, r := m.clients[w.Client], core.Reply{Kind: core.TimedOut, Tag: w.Tag, Seq: e.Seq}
		m.unwatch(n, false)
		m.reply(c, r)
	})
}
