package machine

import (
	"errors"
	"slices"
	"time"

	"broker/core"
	"broker/core/internal/limit"
	"broker/core/internal/table"
	"broker/core/internal/timer"
	"broker/core/internal/watch"
)

// grant leases a job to a client or worker for a number of milliseconds; zero: until the connection closes.
func (m *Machine) grant(c *client, op *core.Lease, h uint32, e *table.Entry, granted uint32) {
	m.raiseEpoch(e)
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

// epochStep is how many leaders in a row give out epochs that differ.
const epochStep = 256

// raiseEpoch gives a job its next epoch. What a leader has decided may be lost with it while clients know of it: so no
// epoch of a leader is one of another leader's, of the epochStep that led before it.
func (m *Machine) raiseEpoch(e *table.Entry) {
	if e.Epoch++; m.opts.Term != 0 {
		e.Epoch += (uint32(m.opts.Term) - e.Epoch) % epochStep
	}
}

// grantOf describes the lease of a job.
func (m *Machine) grantOf(e *table.Entry) core.Grant {
	return core.Grant{
		Epoch: e.Epoch, LeasedAt: e.LeasedAt, LeaseFor: e.LeaseSpan(), EnqueuedAt: min(e.ReadyAt, m.table.Now),
		Attempts: e.Attempts, Fails: e.Fails,
	}
}

// hold records the holder of a job.
func (m *Machine) hold(c *client, op *core.Lease, h uint32, e *table.Entry) {
	e.Set(table.Held)
	e.HolderKind, e.HolderFrom = op.Holder, c.protocol
	m.table.SetVersion(h, core.CutText(op.Version, core.MaxWorkerVersion))
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

// transferLease transfers a lease to a worker with an id.
func (m *Machine) transferLease(c *client, op *core.TransferLease) {
	h, e, err := m.findIf(op.Ref, &core.Condition{})
	switch {
	case err != nil:
	case e.State != core.Leased || e.Epoch != op.Epoch:
		err = core.ErrNotLeased
	case op.Worker == "" || op.LeaseFor < 0:
		err = core.ErrInvalid
	}
	if m.stopsHere(c, op.Tag, e, err) {
		return
	}
	m.unhold(h, e)
	m.adoptConsumer(c, op.Worker)
	to := core.Lease{Holder: core.HeldByWorker, Worker: op.Worker, Version: m.table.LastVersion(h)}
	granted := table.Millis(op.LeaseFor)
	if granted == 0 {
		granted = m.grantFor(e, &to, 0)
	}
	m.limits.Transferred(&m.queues[e.Queue].Queue, h, e)
	m.grant(c, &to, h, e, granted)
	m.waited = 0
	e.Set(table.Changed)
	m.table.Touch(h, e)
	m.record(h, e, core.EventLeased, "transferred")
	m.reply(c, core.Reply{
		Kind: core.Accepted, Tag: op.Tag, Seq: e.Seq, Lease: m.grantOf(e), Commit: m.table.ChangeCommit(e),
	})
}

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
	_, e, err := m.findIf(op.Ref, &op.If)
	if err == nil && (e.State != core.Leased || e.Epoch != op.Epoch) {
		err = core.ErrNotLeased
	}
	if m.stopsHere(c, op.Tag, e, err) {
		return
	}
	seq := e.Seq
	m.revokeLease(seq, op.Epoch)
	m.reply(c, core.Reply{Kind: core.Accepted, Tag: op.Tag, Seq: seq})
}

// requeueLeased decides what happens to a job whose lease ended without an outcome. The caller decides whether the
// attempt counts.
func (m *Machine) requeueLeased(h uint32, e *table.Entry) {
	m.timeOutRuns(e)
	switch {
	case m.watchers.Abandoned(e):
		m.end(h, &core.Outcome{Cause: core.Cancelled})
	case e.Has(table.Stopping):
		m.endStopped(h, e.HolderFrom, nil)
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
		m.failJob(h, from, &core.Failure{Type: core.ReservationExpired, Message: core.ReservationExpiredMessage},
			afterFail{})
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

// authorize finds the job of a finish or report and checks that the client may do that. If the job exists, it is
// returned with the error too.
func (m *Machine) authorize(
	c *client, ref core.Ref, is *core.Condition, authority core.FinishAuthority,
) (uint32, *table.Entry, error) {
	h, e, err := m.findIf(ref, is)
	if err != nil {
		return h, e, err
	}
	return h, e, m.authorityRefusal(c, e, authority)
}

// authorizeEnd is authorize for the end of a run. A lease that the previous process granted just before it ended may be
// missing in the store. The report of its worker still counts, and the lease is counted with it.
func (m *Machine) authorizeEnd(
	c *client, ref core.Ref, is *core.Condition, authority core.FinishAuthority,
) (uint32, *table.Entry, error) {
	h, e, err := m.findIf(ref, is)
	if err == nil {
		err = m.authorityRefusal(c, e, authority)
	}
	if authority == core.ByLeased && errors.Is(err, core.ErrNotLeased) && m.mayHaveBeenLeased(e) {
		return h, e, nil
	}
	return h, e, err
}

// mayHaveBeenLeased reports whether a ready job may have been leased when the previous process ended.
func (m *Machine) mayHaveBeenLeased(e *table.Entry) bool {
	return e.State == core.Ready && e.Has(table.Untouched)
}

// countLostLease counts a lease of which only the end is known.
func (m *Machine) countLostLease(e *table.Entry, authority core.FinishAuthority) {
	if authority == core.ByLeased && m.mayHaveBeenLeased(e) {
		e.Attempts++
		m.raiseEpoch(e)
	}
}

// authorityRefusal returns why a client must not finish a job.
func (m *Machine) authorityRefusal(c *client, e *table.Entry, authority core.FinishAuthority) error {
	switch authority {
	case core.ByHolder:
		if e.State != core.Leased || e.HolderKind != core.HeldByConn || e.Holder != c.slot {
			return core.ErrNotHolder
		}
	case core.ByLeased:
		if e.State != core.Leased {
			return core.ErrNotLeased
		}
	case core.ByAnyone:
		if !e.State.Unfinished() {
			return core.ErrFinished
		}
	}
	return nil
}

// findIf finds the job that ref names and checks the condition. With ErrConflict it also returns the job.
func (m *Machine) findIf(ref core.Ref, is *core.Condition) (uint32, *table.Entry, error) {
	h := m.table.Find(ref)
	if h == 0 {
		return 0, nil, core.ErrNotFound
	}
	e := m.table.At(h)
	if is.Restricts() && !m.holds(e, is) && !m.list.IsApplied() {
		return h, e, core.ErrConflict
	}
	return h, e, nil
}

// holds reports whether a job meets a condition.
func (m *Machine) holds(e *table.Entry, is *core.Condition) bool {
	return (len(is.States) == 0 || slices.Contains(is.States, e.State)) &&
		(!is.HasEpoch || is.Epoch == e.Epoch) &&
		(!is.Unended ||
			e.State == core.Leased && (e.StateTimer == 0 || m.table.Timers.At(e.StateTimer) > m.table.Now)) &&
		(is.LeasedAt == 0 || e.State == core.Leased && is.LeasedAt == e.LeasedAt) &&
		(is.Queue == "" || is.Queue == m.queues[e.Queue].Name) &&
		(is.Worker == "" ||
			e.Has(table.Held) && e.HolderKind == core.HeldByWorker && is.Worker == m.table.Workers.NameOf(e.Holder))
}
