package machine

import (
	"cmp"
	"slices"

	"broker/core"
	"broker/core/internal/table"
)

// cancel removes all named jobs or none.
func (m *Machine) cancel(c *client, op *core.Cancel) {
	h, e, err := m.findIf(op.Ref, &op.If)
	if len(op.Also) == 0 && op.Dependents == core.DependentsBreak {
		if !m.stopsHere(c, op.Tag, e, err) {
			m.cancelOne(c, op, h, e)
		}
		return
	}
	var named []uint64
	if err == nil {
		named = m.cancelled(h, op.Also)
		if op.Dependents == core.DependentsRefuse {
			err = m.outsideDependents(named)
		}
	}
	if m.stopsHereBy(c, op.Tag, e, err) {
		return
	}
	m.cancelAll(c, op, e, named)
}

// cancelOne is cancelAll for one job.
func (m *Machine) cancelOne(c *client, op *core.Cancel, h uint32, e *table.Entry) {
	if op.OnlyAsks(e.State) {
		m.reply(c, core.Reply{
			Kind: core.Accepted, Tag: op.Tag, Seq: e.Seq, CancelRequested: true, Commit: m.table.ChangeCommit(e),
		})
		m.askToStop(h)
		return
	}
	m.acceptedN(c, op.Tag, e, 1)
	m.purgeJob(h, c.protocol)
}

// cancelAll removes jobs, or asks their workers to stop; e is the job that the operation names first.
func (m *Machine) cancelAll(c *client, op *core.Cancel, e *table.Entry, named []uint64) {
	r := core.Reply{Kind: core.Accepted, Tag: op.Tag, Seq: e.Seq, N: len(named), Commit: m.table.Promise()}
	m.table.Touched += len(named)
	for _, seq := range named {
		if op.OnlyAsks(m.table.At(m.table.Handle(seq)).State) {
			r.CancelRequested = true
			r.N--
		}
	}
	m.reply(c, r)
	for _, seq := range named {
		h := m.table.Handle(seq)
		switch {
		case h == 0: // a finished parent is removed with its last child
		case op.OnlyAsks(m.table.At(h).State):
			m.askToStop(h)
		default:
			m.purgeJob(h, c.protocol)
		}
	}
}

// cancelled lists the jobs that a cancel names, without duplicates.
func (m *Machine) cancelled(first uint32, also []core.Ref) []uint64 {
	seqs := []uint64{m.table.At(first).Seq}
	seen := map[uint64]bool{seqs[0]: true}
	for _, ref := range also {
		h := m.table.Find(ref)
		if h == 0 {
			continue
		}
		if seq := m.table.At(h).Seq; !seen[seq] {
			seen[seq] = true
			seqs = append(seqs, seq)
		}
	}
	return seqs
}

// outsideDependents returns an error if a job that is not among the named jobs depends on one of them.
func (m *Machine) outsideDependents(named []uint64) error {
	inside := make(map[uint64]bool, len(named))
	for _, seq := range named {
		inside[seq] = true
	}
	for _, seq := range named {
		if d := m.links.DependentOutside(m.table.Handle(seq), inside); d != 0 {
			return &core.DependentsError{Seq: seq, Dependent: d}
		}
	}
	return nil
}

// enqueue makes a waiting or dead job ready now. A job that is dead because of a dependency waits for it again if that
// has left the dead set.
func (m *Machine) enqueue(c *client, op *core.Enqueue) {
	h, e, err := m.findIf(op.Ref, &op.If)
	if err == nil && !enqueueable(e.State) {
		err = core.ErrInvalid
	}
	if m.stopsHere(c, op.Tag, e, err) {
		return
	}
	m.accepted(c, op.Tag, e)
	if e.State == core.Ready {
		return // an earlier operation of an atomic list has released it
	}
	waits := false
	if e.State == core.Dead {
		m.leaveDeadSet(h, e)
		waits = m.links.Rejoin(h)
	} else {
		m.links.Unlink(h)
	}
	m.detach(h, e)
	e.ReadyAt, e.LostLeases = m.table.Now, 0
	if m.usedUpByPolicy(h, e) {
		m.setAttempts(h, e, 0) // otherwise it would end again at once
	}
	e.Clear(table.ScheduledOrder | table.Broken)
	m.table.Tallied(h, e, table.TallyMoves, func(t *core.Tally) { t.Kicks++ })
	e.Set(table.Changed)
	m.table.Touch(h, e)
	if waits {
		m.recordOrder(c, h, e, core.EventChanged)
		m.move(e, core.Blocked)
		m.table.Enlist(h, e)
		return
	}
	m.recordOrder(c, h, e, core.EventReady)
	m.makeReady(h, e)
}

// recordOrder records an order of a client in a job's timeline.
func (m *Machine) recordOrder(c *client, h uint32, e *table.Entry, kind core.EventKind) {
	if !e.Has(table.Ephemeral) {
		m.addEntry(c, h, e, core.TimelineEntry{Kind: kind, Detail: "by order"})
	}
}

// enqueueable reports whether Enqueue applies to a state.
func enqueueable(s core.State) bool {
	switch s {
	case core.Scheduled, core.Retrying, core.Blocked, core.Dead:
		return true
	case core.Gone, core.Ready, core.Leased, core.Done:
	}
	return false
}

// leaveDeadSet restores the time to live of a job that leaves the dead set.
func (m *Machine) leaveDeadSet(h uint32, e *table.Entry) {
	m.schedules.Revived(e.Seq)
	m.limits.JoinOrder(h, e)
	until := core.Instant(0)
	if x := m.table.Optional(h); x != nil {
		until, x.TTL = x.TTL, 0
	}
	m.table.ExpireAt(h, e, until)
}

// bury moves an unfinished job to the dead set, or restarts DeadFor of a dead job.
func (m *Machine) bury(c *client, op *core.Bury) {
	h, e, err := m.findIf(op.Ref, &op.If)
	if err == nil && (e.State == core.Done || e.Has(table.Ephemeral)) {
		err = core.ErrInvalid
	}
	if m.stopsHere(c, op.Tag, e, err) {
		return
	}
	m.accepted(c, op.Tag, e)
	if e.State == core.Dead {
		m.rebury(h, e)
		return
	}
	group := m.table.GroupName(e)
	m.detach(h, e)
	outcome, _ := m.deathOutcome(h, e)
	m.buryJob(h, c.protocol, outcome)
	m.table.JoinGroupNamed(h, e, cmp.Or(group, op.Group))
	if op.DiedAt == 0 || op.DiedAt >= m.table.Now {
		return
	}
	m.reburyAt(h, e, op.DiedAt)
	if until := m.deadUntil(h, e); until != 0 && until <= m.table.Now {
		m.rebury(h, e)
	}
}

// end removes an unfinished job that was cancelled or has expired. Watching clients are notified, and no job waits for
// it any more.
func (m *Machine) end(h uint32, outcome *core.Outcome) {
	m.detach(h, m.table.At(h))
	m.endDetached(h, outcome)
}

// endDetached is end for a job that was detached.
func (m *Machine) endDetached(h uint32, outcome *core.Outcome) {
	e := m.table.At(h)
	switch outcome.Cause {
	case core.Cancelled:
		if outcome.Failure == nil {
			m.recordFinal(h, e, core.EventCancelled, "")
		} else {
			m.recordCancelled(h, e, outcome.Failure)
		}
	case core.Expired:
		m.recordFinal(h, e, core.EventExpired, "")
	case core.Finished, core.LeaseRanOut:
	}
	if e.Watchers != 0 {
		m.notifyEnd(h, outcome, outcome, m.table.ChangeCommit(e))
	}
	m.links.Unlink(h)
	if e.State != core.Done {
		m.links.End(h, false)
	} else {
		m.links.Cancelled(h)
	}
	m.remove(h)
}

// remove removes a job from all indexes and, if it has a record, from the store.
func (m *Machine) remove(h uint32) {
	e := m.table.At(h)
	if e.Has(table.HasOptional) {
		m.batches.Leave(h)
		m.logs.Remove(h, e)
	}
	m.table.MarkRemoved(h, e)
	n := e.Queue
	m.unindex(h, e)
	m.dropIdle(n)
}

// unindex removes a job from all indexes.
func (m *Machine) unindex(h uint32, e *table.Entry) {
	m.table.FreeUnique(h, e)
	m.limits.LeaveOrder(h, e)
	m.dropType(e)
	if e.State == core.Dead {
		m.schedules.Forget(e.Seq)
	}
	if e.Has(table.HasOptional) {
		m.limits.ForgetLimits(h)
	}
	m.table.DropIndexes(h, e)
	m.move(e, core.Gone)
	if m.table.Release(h) {
		m.limits.Drained()
	}
}

// purge removes jobs in pages.
func (m *Machine) purge(c *client, op *core.Purge) {
	var only uint32
	if op.Queue != "" {
		if only = m.table.QueueNumber(op.Queue); only == 0 {
			m.reply(c, core.Reply{Kind: core.Purged, Tag: op.Tag, Commit: m.table.JobGone()})
			return
		}
	}
	removed, next := m.purgePage(c.protocol, op, only, removals(op.Limit))
	if next == 0 && only != 0 && op.Drop && m.queues[only] != nil {
		m.table.Hide(only)
		m.resetQueueSettings(only)
	}
	m.reply(c, core.Reply{Kind: core.Purged, Tag: op.Tag, N: removed, Cursor: next, Commit: m.table.Promise()})
}

// purgeLook is how many jobs a page of a purge looks at for each job that it may remove.
const purgeLook = 50

// removals returns how many jobs or batches to remove for a requested limit.
func removals(asked int) int {
	if asked <= 0 {
		return 1000
	}
	return asked
}

// purgeBatches ends batches in pages, the oldest first. Children of a batch, and members that are callbacks of other
// batches, are newer than the batch, so its removal releases nothing. Members stay and no longer belong to a batch.
func (m *Machine) purgeBatches(c *client, op *core.PurgeBatches) {
	limit, below := removals(op.Limit), op.Cursor
	if below == 0 {
		below = m.table.NextSeq // later batches are not affected
	}
	r := core.Reply{Kind: core.Purged, Tag: op.Tag}
	for g := m.batches.Oldest(below); g != nil; g = m.batches.Oldest(below) {
		if r.N == limit {
			r.Cursor = below
			break
		}
		m.table.Touched++
		m.batches.Forget(g)
		for _, seq := range g.CallbackJobs() {
			if h := m.table.Handle(seq); seq != 0 && h != 0 {
				m.purgeJob(h, c.protocol)
			}
		}
		r.N++
	}
	r.Commit = m.table.Promise()
	m.reply(c, r)
}

// purgePage removes up to limit jobs; it finds the ready jobs of a single queue by the queue's list, other jobs by a
// walk over all jobs.
func (m *Machine) purgePage(by core.Protocol, op *core.Purge, only uint32, limit int) (removed int, next uint64) {
	if only != 0 && op.Origin == core.Internal && len(op.States) == 1 && op.States[0] == core.Ready {
		for q := m.queues[only]; q != nil && q.Ready.Len() > 0; removed++ {
			if removed == limit {
				return removed, 1
			}
			m.table.Touched++
			m.purgeJob(q.Ready.Front(), by)
		}
		return removed, 0
	}
	looked := 0
	for h := uint32(op.Cursor) + 1; h <= m.table.LastHandle; h++ {
		if removed == limit || looked == purgeLook*limit || m.links.Spent(purgeLook*limit) {
			return removed, uint64(h - 1)
		}
		looked++
		m.table.Touched++
		e := m.table.At(h)
		if e.Seq == 0 || only != 0 && e.Queue != only || op.Origin != core.Internal && e.Origin != op.Origin ||
			len(op.States) > 0 && !slices.Contains(op.States, e.State) {
			continue
		}
		m.purgeJob(h, by)
		removed++
	}
	return removed, 0
}

// purgeJob removes one job of a purge.
func (m *Machine) purgeJob(h uint32, by core.Protocol) {
	e := m.table.At(h)
	m.count(e.Origin, by, func(t *core.Totals) { t.Cancelled++ })
	m.queues[e.Queue].counts.of(by).cancelled++
	m.end(h, &core.Outcome{Cause: core.Cancelled})
}

// A job whose worker was asked to stop stays leased until the worker finishes it or the lease ends. Then it ends as
// cancelled, unless it was completed. The time of the request is in a separate map, in the same form as in the record:
// milliseconds since the start of the lease, plus 1. Jobs without a request only need a flag.

// askToStop asks the worker of a leased job to stop, unless it was asked before. The job does not run again.
func (m *Machine) askToStop(h uint32) {
	e := m.table.At(h)
	if e.Has(table.Rerun) {
		e.Clear(table.Rerun)
		e.Set(table.Changed)
		m.table.Touch(h, e)
	}
	if e.Has(table.Stopping) {
		return
	}
	m.table.NoteStop(e)
	e.Set(table.Changed)
	m.table.Touch(h, e)
	m.record(h, e, core.EventCancelRequested, "")
}

// endStopped ends a detached job as cancelled: its worker has stopped, with the failure that it reports, or is gone
// (nil). The failure does not count as one of the job's, and is kept with the outcome.
func (m *Machine) endStopped(h uint32, by core.Protocol, failure *core.Failure) {
	e := m.table.At(h)
	m.count(e.Origin, by, func(t *core.Totals) { t.Cancelled++ })
	outcome := &core.Outcome{Cause: core.Cancelled}
	if failure != nil && (failure.Type != "" || failure.Message != "" || len(failure.Data) > 0) {
		f := *failure
		f.Count, f.FailedAt, f.NextAt = e.Fails, m.table.Now, 0
		outcome.Failure, outcome.Result = &f, f.Data
	}
	if !e.Has(table.Rerun) && !m.keptAfter(h, e) {
		m.endDetached(h, outcome)
		return
	}
	m.recordCancelled(h, e, outcome.Failure)
	m.finish(h, outcome, outcome)
}

// recordCancelled records that a job ends as cancelled, with the failure that its worker reported, if any.
func (m *Machine) recordCancelled(h uint32, e *table.Entry, f *core.Failure) {
	if f == nil {
		m.recordRunEnd(h, e, core.EventCancelled, "")
		return
	}
	if e.Entries > 0 && !e.Has(table.Ephemeral) {
		m.addEntry(m.actor, h, e, core.TimelineEntry{
			Kind: core.EventCancelled, Detail: f.Type, Text: core.CutText(f.Message, core.MaxTimelineText),
		})
	}
	if e.Has(table.Rerun) {
		m.emit(h, e, core.EventCancelled, f.Type)
	} else {
		m.emitFinal(h, e, core.EventCancelled, f.Type)
	}
}

// keptAfter reports whether the outcome of a job that ends now is kept.
func (m *Machine) keptAfter(h uint32, e *table.Entry) bool {
	return m.askedUntil(h, e, m.table.Now) > m.table.Now ||
		!e.Has(table.Ephemeral) && m.keptUntil(m.queues[e.Queue]) > m.table.Now
}
