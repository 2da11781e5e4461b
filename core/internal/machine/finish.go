package machine

import (
	"errors"
	"math"
	"time"

	"broker/core"
	"broker/core/internal/record"
	"broker/core/internal/timer"
)

// accepted is the reply to a change; for a job that is not stored it depends on no commit.
func (m *Machine) accepted(c *client, tag uint64, e *entry) { m.acceptedN(c, tag, e, 0) }

func (m *Machine) acceptedN(c *client, tag uint64, e *entry, n int) {
	r := m.newReply(c, core.Accepted, tag, m.changeCommit(e))
	r.Seq, r.N = e.seq, n
}

// succeeded is the outcome of a completed job that no client will see.
var succeeded = &core.Outcome{Success: true}

func (m *Machine) complete(c *client, op *core.Complete) {
	h, e, err := m.authorizeEnd(c, op.Ref, &op.If, op.Authority)
	if m.rejected(c, op.Tag, e, err) {
		return
	}
	m.accepted(c, op.Tag, e)
	m.countLostLease(e, op.Authority)
	m.detach(h, e)
	m.count(e.origin, c.protocol, func(t *core.Totals) { t.Done++ })
	m.queues[e.queue].counts.Done[c.protocol]++
	m.watchFinish(c.protocol, e, false)
	m.recordRunEnd(h, e, core.EventDone, "")
	streamed := succeeded
	if e.watchers != 0 || e.has(keepsOutcome) || m.queues[e.queue].retention != (core.Retention{}) {
		streamed = &core.Outcome{Success: true, Result: op.Result}
	}
	whole := streamed
	if op.Authority != core.ByAnyone && e.has(hasTransient) && len(m.transients[h].data) > 0 {
		whole = &core.Outcome{Success: true, Result: append(m.transients[h].data, op.Result...)}
	}
	m.finish(h, streamed, whole)
}

// detach removes an unfinished job from its list or holder.
func (m *Machine) detach(h uint32, e *entry) {
	m.unlist(h, e)
	e.clear(untouched)
	q := m.queues[e.queue]
	switch e.state {
	case core.Ready:
		m.removeReady(q, h)
	case core.Scheduled:
		q.scheduled.Remove(h, m.before)
		m.timers.Remove(&e.stateTimer)
	case core.Retrying:
		m.timers.Remove(&e.stateTimer)
	case core.Leased:
		m.unhold(h, e)
	case core.Gone, core.Blocked, core.Done, core.Dead:
	}
}

// finish ends a detached job: it notifies watching clients, updates links, and keeps the outcome if the job says so.
func (m *Machine) finish(h uint32, streamed, whole *core.Outcome) {
	e := m.jobs.at(h)
	if e.has(rerun) {
		m.runAgain(h, e, streamed, whole)
		return
	}
	if e.has(hasOptional) {
		m.unlink(h)
		m.leaveLane(h)
	}
	m.leaveOrder(h, e)
	m.move(e, core.Done)
	e.readyAt = m.now
	if !whole.Success {
		e.set(doneFailed)
	}
	m.freeUnique(h, e)
	if e.watchers != 0 {
		m.notifyEnd(h, streamed, whole, m.changeCommit(e))
	}
	open := false
	if e.has(hasOptional) {
		m.memberDone(h, whole.Success)
		open = m.closeLinks(h, whole.Success)
	}
	switch {
	case m.retain(h, e, whole):
		m.enlist(h, e)
		m.trim(e.queue)
	case open:
		m.retainForChildren(h, e)
		m.enlist(h, e)
	default:
		m.remove(h)
	}
}

// retainForChildren reduces a finished job to what its children and successors need.
func (m *Machine) retainForChildren(h uint32, e *entry) {
	was := e.has(listed)
	m.unlist(h, e)
	e.clear(keepsOutcome | keptByQueue)
	if was {
		m.enlist(h, e)
	}
	if e.has(hasTransient) {
		m.transients[h].outcome = nil
	}
	m.expireAt(h, e, 0)
	e.set(changed)
	m.touch(h, e)
}

// retain keeps a finished job while its outcome is retained; false: it is not, or that time has passed.
func (m *Machine) retain(h uint32, e *entry, whole *core.Outcome) bool {
	until := m.askedUntil(h, e, m.now)
	if kept := m.keptUntil(m.queues[e.queue]); kept > until && !e.has(ephemeral) {
		if until > m.now {
			m.noteAsked(h, e, until)
		}
		until = kept
		e.set(keepsOutcome | keptByQueue)
	}
	if until <= m.now {
		return false
	}
	n := m.ensureTransient(h)
	m.dropCollected(n)
	n.outcome = whole
	m.addOpen(record.OutcomeSize(whole))
	m.expireAt(h, e, until)
	e.clear(outcomeStored)
	e.set(changed)
	m.touch(h, e)
	return true
}

// noteAsked remembers how long a finished job asks to be kept, while its queue keeps it longer.
func (m *Machine) noteAsked(h uint32, e *entry, until core.Instant) {
	linked := e.has(hasOptional)
	x := m.ensureOptional(h)
	x.askedUntil = until
	x.isClosed = x.isClosed || !linked // nothing waits for it
}

// askedUntil is how long a job that has finished at an instant asks to be kept; zero: not at all.
func (m *Machine) askedUntil(h uint32, e *entry, finished core.Instant) core.Instant {
	if !e.has(keepsOutcome) {
		return 0
	}
	if x := m.optionalState(h); x != nil {
		switch {
		case x.retainUntil != 0:
			return x.retainUntil
		case x.retainFor != 0:
			return finished.Add(x.retainFor)
		}
	}
	return e.expiresAt
}

// expireAt sets the expiry of a job.
func (m *Machine) expireAt(h uint32, e *entry, until core.Instant) {
	m.timers.Remove(&e.expiryTimer)
	e.expiresAt = until
	if until != 0 {
		e.expiryTimer = m.timers.Add(until, timer.Owner{Kind: timerExpiry, Handle: h})
	}
}

// fail handles a failure reported by a worker; the job's policy decides what follows.
func (m *Machine) fail(c *client, op *core.Fail) {
	h, e, err := m.authorizeEnd(c, op.Ref, &op.If, op.Authority)
	if m.rejected(c, op.Tag, e, err) {
		return
	}
	m.accepted(c, op.Tag, e)
	m.countLostLease(e, op.Authority)
	failure := op.Failure
	if failure == nil {
		failure = &core.Failure{}
	}
	m.detach(h, e)
	e.lostLeases = 0
	m.failJob(h, c.protocol, failure, afterFail{retryAt: op.RetryAt, final: op.Final})
}

// afterFail is what the worker requested after a failure; zero: the job's policy.
type afterFail struct {
	retryAt core.Instant
	final   bool
	bury    bool // with final: to the dead set, whatever the job's policy
}

// failJob counts a failure of a detached job and decides between another try, the dead set and the end.
func (m *Machine) failJob(h uint32, by core.Protocol, failure *core.Failure, then afterFail) {
	e := m.jobs.at(h)
	if e.has(stopping) {
		m.endStopped(h, by)
		return
	}
	m.count(e.origin, by, func(t *core.Totals) { t.Failed++ })
	m.queues[e.queue].counts.Failed[by]++
	m.watchFinish(by, e, true)
	e.fails++
	if m.firstFail(h, e) == 0 {
		m.setFirstFail(h, e, m.now)
	}
	f := *failure
	f.Count, f.FailedAt, f.NextAt = e.fails, m.firstFail(h, e), 0
	e.set(changed)
	m.executed(h)
	final := then.final || e.fails >= m.maxFails(e) || e.has(ephemeral) || m.usedUp(e)
	end := m.atEnd(e)
	m.noteFailed(h, e, &f, final && (end.exhausted != core.ExhaustedBury && end.moveTo == "" || e.has(ephemeral)))
	switch {
	case final && end.moveTo != "" && !then.bury && !e.has(rerun):
		m.moveAway(h, e, end.moveTo, failureText(&f))
	case final && (then.bury || end.exhausted == core.ExhaustedBury) && !e.has(ephemeral|rerun):
		m.noteFailure(h, e, &f)
		m.buryJob(h, by, &core.Outcome{Failure: &f, Result: f.Data})
	case final:
		m.finishFailed(h, &core.Outcome{Failure: &f, Result: f.Data})
	default:
		f.NextAt = m.nextTry(e, then.retryAt)
		m.noteFailure(h, e, &f)
		if f.NextAt == 0 {
			m.tryAgain(h, e)
		} else {
			m.retryAt(h, e, f.NextAt)
		}
	}
}

// firstFail is when a job failed first, zero if it has not. Few jobs fail: the instant is not in their entries.
func (m *Machine) firstFail(h uint32, e *entry) core.Instant {
	if e.fails == 0 {
		return 0
	}
	return m.firstFails[h]
}

// setFirstFail sets when a job failed first, before its number of failures becomes zero.
func (m *Machine) setFirstFail(h uint32, e *entry, at core.Instant) {
	switch {
	case e.fails == 0:
	case at == 0:
		delete(m.firstFails, h)
	default:
		m.firstFails[h] = at
	}
}

// noteFailed tells of a failure; over: the job is not tried again and not buried.
func (m *Machine) noteFailed(h uint32, e *entry, f *core.Failure, over bool) {
	if !e.has(ephemeral) && (!over || e.entries > 0 || e.has(keepsOutcome)) {
		m.addEntry(m.actor, h, e, core.TimelineEntry{
			Kind: core.EventFailed, Detail: f.Type, Group: f.Group, Text: core.CutText(f.Message, core.MaxTimelineText),
		})
	}
	if over && !e.has(rerun) {
		m.emitFinal(h, e, core.EventFailed, f.Type)
	} else {
		m.emit(h, e, core.EventFailed, f.Type)
	}
}

// nextTry is the time of the next try of a failed job; zero: at once, or when it is no longer blocked.
func (m *Machine) nextTry(e *entry, chosen core.Instant) core.Instant {
	switch {
	case e.state == core.Blocked:
		return 0
	case chosen > m.now:
		return chosen
	case chosen != 0:
		return 0
	}
	if p := m.policyOn(e, core.PolicyBackoff); p != nil && !e.own(core.PolicyBackoff) {
		if after := p.Backoff.After(e.fails, m.opts.Random.Float64()); after > 0 {
			return m.now.Add(after)
		}
		return 0
	}
	if e.backoff == core.BackoffNone {
		return 0
	}
	return m.now.Add(m.backoffAfter(e.fails - 1))
}

// tryAgain returns a failed, detached job to its list, or to its queue if it was leased.
func (m *Machine) tryAgain(h uint32, e *entry) {
	e.set(requeued)
	m.touch(h, e)
	switch e.state {
	case core.Scheduled:
		m.queues[e.queue].scheduled.Push(h, m.before)
		m.enlist(h, e)
		e.stateTimer = m.timers.Add(e.readyAt, timer.Owner{Kind: timerState, Handle: h})
	case core.Ready:
		m.pushReady(m.queues[e.queue], h)
		m.offer(e.queue)
	case core.Leased, core.Retrying:
		m.makeReady(h, e)
	case core.Blocked:
		m.enlist(h, e)
	case core.Gone, core.Done, core.Dead:
	}
}

func (m *Machine) noteFailure(h uint32, e *entry, f *core.Failure) {
	m.ensureTransient(h).failure = f
	m.addOpen(record.FailureSize(f))
	e.clear(failureStored)
}

// retryAt schedules the next try of a detached job.
func (m *Machine) retryAt(h uint32, e *entry, at core.Instant) {
	m.move(e, core.Retrying)
	e.readyAt, e.leasedAt = at, m.now
	e.clear(scheduledOrder) // the retry determines its position
	m.enlist(h, e)
	e.stateTimer = m.timers.Add(at, timer.Owner{Kind: timerState, Handle: h})
	m.touch(h, e)
	m.record(h, e, core.EventRetrying, "")
}

// backoffAfter is Faktory's delay before the next try; count is the number of retries so far.
func (m *Machine) backoffAfter(count uint32) time.Duration {
	c := float64(count)
	jitter := float64(m.opts.Random.IntN(30)) * (c + 1)
	seconds := math.Min(c*c*c*c+15+jitter, 10*365*24*3600)
	return time.Duration(seconds) * time.Second
}

// buryJob moves a detached job to the dead set.
func (m *Machine) buryJob(h uint32, by core.Protocol, outcome *core.Outcome) {
	e := m.jobs.at(h)
	m.unlink(h)
	m.leaveOrder(h, e)
	m.move(e, core.Dead)
	if e.expiresAt != 0 {
		m.ensureOptional(h).ttl = e.expiresAt
	}
	m.count(e.origin, by, func(t *core.Totals) { t.Dead++ })
	m.queues[e.queue].counts.Dead++
	m.tallied(h, e, tallyMoves, func(t *core.Tally) { t.Burials++ })
	m.freeUnique(h, e)
	e.set(unlocked)
	m.rebury(h, e)
	m.record(h, e, core.EventDead, "")
	if e.watchers != 0 {
		m.notifyEnd(h, outcome, outcome, m.promise())
	}
	m.breakDependents(h)
}

// rebury restarts the stay of a dead job.
func (m *Machine) rebury(h uint32, e *entry) {
	group := m.groupName(e)
	m.unlist(h, e)
	e.readyAt = m.now
	m.enlist(h, e)
	m.joinGroupNamed(h, e, group)
	m.expireAt(h, e, m.deadUntil(h, e))
	e.set(changed)
	m.touch(h, e)
}

// deadUntil is when a dead job is removed, or zero.
func (m *Machine) deadUntil(h uint32, e *entry) (until core.Instant) {
	if e.deadHours > 0 {
		until = e.readyAt.Add(time.Duration(e.deadHours) * time.Hour)
	}
	if x := m.optionalState(h); x != nil && x.ttl != 0 && (until == 0 || x.ttl < until) {
		until = x.ttl
	}
	return until
}

// finishFailed ends a detached job as failed.
func (m *Machine) finishFailed(h uint32, outcome *core.Outcome) { m.finish(h, outcome, outcome) }

// report records progress and notifies watching clients.
func (m *Machine) report(c *client, op *core.Report) {
	h, e, err := m.authorize(c, op.Ref, &op.If, op.Authority)
	if errors.Is(err, core.ErrFinished) {
		err = nil // late progress is kept with the outcome
	}
	if m.rejected(c, op.Tag, e, err) {
		return
	}
	p := op.Progress
	if !op.Heartbeat {
		p.UpdatedAt = m.now
		m.ensureTransient(h).progress = p
		if e.has(changed) {
			m.addOpen(len(p.Text) + len(p.Verbatim))
		}
	}
	m.moveLeaseEnd(h, e, op)
	if e.has(changed) {
		m.touch(h, e)
	}
	if !op.Heartbeat {
		m.record(h, e, core.EventProgress, "")
	}
	if e.watchers != 0 && !op.Heartbeat {
		shared := p // allocated if somebody watches
		m.eachWatcher(e, func(_ uint32, w *watcher) {
			if w.kind == core.WatchStream {
				m.reply(m.clients[w.client], core.Reply{
					Kind: core.Progressed, Tag: w.tag, Seq: e.seq, Progress: &shared, Commit: m.jobCommit(e),
				})
			}
		})
	}
	m.reply(c, core.Reply{Kind: core.Accepted, Tag: op.Tag, Seq: e.seq, CancelRequested: e.has(stopping)})
}

// moveLeaseEnd gives a lease the end that a report asks for.
func (m *Machine) moveLeaseEnd(h uint32, e *entry, op *core.Report) {
	until := op.LeaseUntil
	if until == 0 && op.ExtendUntil != 0 && e.stateTimer != 0 && op.ExtendUntil > m.timers.At(e.stateTimer) {
		until = op.ExtendUntil
	}
	if e.state != core.Leased || until == 0 {
		return
	}
	m.timers.Remove(&e.stateTimer)
	e.stateTimer = m.timers.Add(until, timer.Owner{Kind: timerState, Handle: h})
	e.granted = millis(max(until.Sub(m.now), time.Millisecond)) // what a restart grants again: not the time that has passed
}

// sendData sends bytes of a running job to its watching clients.
func (m *Machine) sendData(c *client, op *core.SendData) {
	h, e, err := m.authorize(c, op.Ref, &core.Condition{}, op.Authority)
	if err != nil {
		m.refused(c, op.Tag, e, err)
		return
	}
	kind := core.DataSent
	if op.Warning {
		kind = core.Warned
	} else if e.has(keepsOutcome) || m.hasOutcomeWatcher(e) {
		m.collect(m.ensureTransient(h), op.Data)
	}
	m.eachWatcher(e, func(_ uint32, w *watcher) {
		if w.kind == core.WatchStream {
			m.reply(m.clients[w.client], core.Reply{Kind: kind, Tag: w.tag, Seq: e.seq, Data: op.Data})
		}
	})
	m.reply(c, core.Reply{Kind: core.Accepted, Tag: op.Tag, Seq: e.seq})
}
