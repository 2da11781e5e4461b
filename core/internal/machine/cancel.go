package machine

import "broker/core"

// cancel removes all named jobs or none.
func (m *Machine) cancel(c *client, op *core.Cancel) {
	h, e, err := m.findIf(op.Ref, &op.If)
	if len(op.Also) == 0 && op.Dependents == core.DependentsBreak {
		if !m.rejected(c, op.Tag, e, err) {
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
	if m.rejectedBy(c, op.Tag, e, err) {
		return
	}
	m.cancelAll(c, op, e, named)
}

// cancelOne is cancelAll for one job.
func (m *Machine) cancelOne(c *client, op *core.Cancel, h uint32, e *entry) {
	if stopsFirst(op, e) {
		r := core.Reply{Kind: core.Accepted, Tag: op.Tag, Seq: e.seq, CancelRequested: true}
		r.Commit = m.changeCommit(e)
		m.reply(c, r)
		m.askToStop(h)
		return
	}
	m.acceptedN(c, op.Tag, e, 1)
	m.purgeJob(h, c.protocol)
}

// cancelAll removes jobs, or asks their workers to stop; e is the one that the operation names first.
func (m *Machine) cancelAll(c *client, op *core.Cancel, e *entry, named []uint64) {
	r := core.Reply{Kind: core.Accepted, Tag: op.Tag, Seq: e.seq, N: len(named), Commit: m.promise()}
	for _, seq := range named {
		if stopsFirst(op, m.jobs.at(m.bySeq.get(seq))) {
			r.CancelRequested = true
			r.N--
		}
	}
	m.reply(c, r)
	for _, seq := range named {
		h := m.bySeq.get(seq)
		switch {
		case h == 0: // a finished parent is removed with its last child
		case stopsFirst(op, m.jobs.at(h)):
			m.askToStop(h)
		default:
			m.purgeJob(h, c.protocol)
		}
	}
}

// cancelled lists the jobs that a cancel names, without duplicates.
func (m *Machine) cancelled(first uint32, also []core.Ref) []uint64 {
	seqs := []uint64{m.jobs.at(first).seq}
	seen := map[uint64]bool{seqs[0]: true}
	for _, ref := range also {
		h := m.find(ref)
		if h == 0 {
			continue
		}
		if seq := m.jobs.at(h).seq; !seen[seq] {
			seen[seq] = true
			seqs = append(seqs, seq)
		}
	}
	return seqs
}

// outsideDependents refuses to cancel jobs while a job that is not among them depends on one of them.
func (m *Machine) outsideDependents(named []uint64) error {
	inside := make(map[uint64]bool, len(named))
	for _, seq := range named {
		inside[seq] = true
	}
	for _, seq := range named {
		for _, d := range m.dependents(m.bySeq.get(seq)) {
			if !inside[d] {
				return &core.DependentsError{Seq: seq, Dependent: d}
			}
		}
	}
	return nil
}

// enqueue makes a waiting or dead job ready now.
func (m *Machine) enqueue(c *client, op *core.Enqueue) {
	h, e, err := m.findIf(op.Ref, &op.If)
	if err == nil && !enqueueable(e.state) {
		err = core.ErrInvalid
	}
	if m.rejected(c, op.Tag, e, err) {
		return
	}
	m.accepted(c, op.Tag, e)
	if e.state == core.Ready {
		return // an earlier operation of an atomic list has released it
	}
	if e.state == core.Dead {
		m.leaveDeadSet(h, e)
	}
	m.detach(h, e)
	m.unlink(h)
	e.readyAt, e.lostLeases = m.now, 0
	if m.spent(e) {
		e.attempts = 0 // otherwise it would end again at once
	}
	e.clear(scheduledOrder | broken)
	m.addOrder(c, h, e, core.EventReady)
	m.tallied(h, e, tallyMoves, func(t *core.Tally) { t.Kicks++ })
	e.set(changed)
	m.touch(h, e)
	m.makeReady(h, e)
}

// addOrder notes in a job's timeline what a client has ordered.
func (m *Machine) addOrder(c *client, h uint32, e *entry, kind core.EventKind) {
	if !e.has(ephemeral) {
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
func (m *Machine) leaveDeadSet(h uint32, e *entry) {
	m.revived(e.seq)
	m.joinOrder(h, e)
	until := core.Instant(0)
	if x := m.optionalState(h); x != nil {
		until, x.ttl = x.ttl, 0
	}
	m.expireAt(h, e, until)
}

// bury moves an unfinished job to the dead set, or restarts the stay of a dead one.
func (m *Machine) bury(c *client, op *core.Bury) {
	h, e, err := m.findIf(op.Ref, &op.If)
	if err == nil && (e.state == core.Done || e.has(ephemeral)) {
		err = core.ErrInvalid
	}
	if m.rejected(c, op.Tag, e, err) {
		return
	}
	m.accepted(c, op.Tag, e)
	if e.state == core.Dead {
		m.rebury(h, e)
		return
	}
	group := m.groupName(e)
	m.detach(h, e)
	outcome, _ := m.deathOutcome(h, e)
	m.buryJob(h, c.protocol, outcome)
	m.joinGroupNamed(h, e, group)
}

// end removes an unfinished job: cancelled or expired. Watching clients are notified, and nothing waits for it any more.
func (m *Machine) end(h uint32, outcome *core.Outcome) {
	e := m.jobs.at(h)
	m.detach(h, e)
	switch outcome.Cause {
	case core.Cancelled:
		m.recordFinal(h, e, core.EventCancelled, "")
	case core.Expired:
		m.recordFinal(h, e, core.EventExpired, "")
	case core.Finished, core.LeaseRanOut:
	}
	if e.watchers != 0 {
		m.notifyEnd(h, outcome, outcome, m.changeCommit(e))
	}
	m.unlink(h)
	if e.state != core.Done {
		m.closeLinks(h, false)
	} else {
		m.closed(h, false)
	}
	m.remove(h)
}

// remove removes a job from all indexes and, if it has a record, from the store.
func (m *Machine) remove(h uint32) {
	e := m.jobs.at(h)
	if e.has(hasOptional) {
		m.leaveBatch(h)
	}
	if e.has(stored) {
		m.lastRemoval = m.open
		m.removed = append(m.removed, m.gone(h, e))
		m.openBytes += changeBytes
	}
	m.removeLog(h, e)
	n := e.queue
	m.unindex(h, e)
	m.dropIdle(n)
}

// unindex removes a job from all indexes.
func (m *Machine) unindex(h uint32, e *entry) {
	m.freeUnique(h, e)
	m.leaveOrder(h, e)
	m.dropType(e)
	m.dropTags(h)
	m.timers.Remove(&e.stateTimer)
	m.timers.Remove(&e.expiryTimer)
	if x := m.optionalState(h); x != nil {
		m.timers.Remove(&x.startTimer)
	}
	if e.id != (digest{}) {
		delete(m.byID, e.id)
	}
	m.bySeq.drop(e.seq)
	if e.state == core.Dead {
		delete(m.schedules.dead, e.seq)
	}
	if e.has(hasOptional) {
		m.leaveLane(h)
		delete(m.optionals, h)
	}
	if e.has(hasTransient) {
		m.dropCollected(m.transients[h])
		delete(m.transients, h)
	}
	m.setFirstFail(h, e, 0)
	if e.has(traced) {
		delete(m.traces, h)
	}
	if e.has(tallyMoves | tallyFirstLease) {
		delete(m.tallies, h)
	}
	m.setPayload(h, nil)
	m.unlist(h, e)
	m.move(e, core.Gone)
	m.jobs.release(h)
	if m.jobs.live == 0 {
		m.shrinkMaps()
		m.orders.pages = nil
	}
}

// purge removes jobs in pages.
func (m *Machine) purge(c *client, op *core.Purge) {
	var only uint32
	if op.Queue != "" {
		if only = m.names[op.Queue]; only == 0 {
			m.reply(c, core.Reply{Kind: core.Purged, Tag: op.Tag, Commit: m.jobGone()})
			return
		}
	}
	limit := op.Limit
	if limit <= 0 {
		limit = 1000
	}
	removed, next := m.purgePage(c.protocol, op, only, limit)
	if next == 0 && only != 0 && op.Drop && m.queues[only] != nil {
		m.hide(only, m.queues[only])
		m.resetQueueSettings(only)
	}
	m.reply(c, core.Reply{Kind: core.Purged, Tag: op.Tag, N: removed, Cursor: next, Commit: m.promise()})
}

// purgeBatches ends batches in pages, the oldest first. Children of a batch, and callbacks of others that are its members, are
// newer; so a removal releases nothing. Members stay, as plain jobs.
func (m *Machine) purgeBatches(c *client, op *core.PurgeBatches) {
	limit, below := op.Limit, op.Cursor
	if limit <= 0 {
		limit = 1000
	}
	if below == 0 {
		below = m.nextSeq // batches opened meanwhile are not affected
	}
	r := core.Reply{Kind: core.Purged, Tag: op.Tag}
	for g := m.firstBatch; g != nil && g.number < below; g = m.firstBatch {
		if r.N == limit {
			r.Cursor = below
			break
		}
		m.forgetBatch(g)
		for _, seq := range []uint64{g.CompleteJob, g.SuccessJob} {
			if h := m.bySeq.get(seq); seq != 0 && h != 0 {
				m.purgeJob(h, c.protocol)
			}
		}
		r.N++
	}
	r.Commit = m.promise()
	m.reply(c, r)
}

// purgePage removes up to limit jobs; it finds the ready ones of a single queue by its list, others by a walk.
func (m *Machine) purgePage(by core.Protocol, op *core.Purge, only uint32, limit int) (removed int, next uint64) {
	if only != 0 && op.Origin == core.Internal && len(op.States) == 1 && op.States[0] == core.Ready {
		for q := m.queues[only]; q != nil && q.ready.Len() > 0; removed++ {
			if removed == limit {
				return removed, 1
			}
			m.purgeJob(q.ready.Front(), by)
		}
		return removed, 0
	}
	looked := 0
	for h := uint32(op.Cursor) + 1; h <= m.jobs.next; h++ {
		if removed == limit || looked == 50*limit {
			return removed, uint64(h - 1)
		}
		looked++
		e := m.jobs.at(h)
		if e.seq == 0 || only != 0 && e.queue != only || op.Origin != core.Internal && e.origin != op.Origin ||
			len(op.States) > 0 && !contains(op.States, e.state) {
			continue
		}
		m.purgeJob(h, by)
		removed++
	}
	return removed, 0
}

// purgeJob removes one job of a purge.
func (m *Machine) purgeJob(h uint32, by core.Protocol) {
	m.count(m.jobs.at(h).origin, by, func(t *core.Totals) { t.Cancelled++ })
	m.end(h, &core.Outcome{Cause: core.Cancelled})
}

func contains(states []core.State, s core.State) bool {
	for _, x := range states {
		if x == s {
			return true
		}
	}
	return false
}
