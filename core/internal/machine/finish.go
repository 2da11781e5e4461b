package machine

import (
	"errors"
	"math"
	"strings"
	"time"

	"broker/core"
	"broker/core/internal/record"
	"broker/core/internal/table"
	"broker/core/internal/timer"
	"broker/core/internal/watch"
)

// accepted replies to a change. For a job that is not stored, the reply depends on no commit.
func (m *Machine) accepted(c *client, tag uint64, e *table.Entry) { m.acceptedN(c, tag, e, 0) }

func (m *Machine) acceptedN(c *client, tag uint64, e *table.Entry, n int) {
	r := m.newReply(c, core.Accepted, tag, m.table.ChangeCommit(e))
	r.Seq, r.N = e.Seq, n
}

// succeeded is the outcome of the many completed jobs without a result.
var succeeded = &core.Outcome{Success: true}

func (m *Machine) complete(c *client, op *core.Complete) {
	h, e, err := m.authorizeEnd(c, op.Ref, &op.If, op.Authority)
	if m.stopsHere(c, op.Tag, e, err) {
		return
	}
	m.accepted(c, op.Tag, e)
	m.countLostLease(e, op.Authority)
	m.detach(h, e)
	m.count(e.Origin, c.protocol, func(t *core.Totals) { t.Done++ })
	m.queues[e.Queue].counts.of(c.protocol).done++
	m.measureFinish(c.protocol, e, false)
	m.recordRunEnd(h, e, core.EventDone, "")
	if m.endsUnseen(e) {
		m.remove(h)
		return
	}
	streamed := succeeded
	if len(op.Result) > 0 {
		streamed = &core.Outcome{Success: true, Result: op.Result}
	}
	whole := streamed
	if op.Authority != core.ByAnyone && e.Has(table.HasTransient) && len(m.table.Transient(h).Data) > 0 {
		whole = &core.Outcome{Success: true, Result: append(m.table.Transient(h).Data, op.Result...)}
	}
	m.finish(h, streamed, whole)
}

// endsUnseen reports whether a job can be removed at once when it ends: no client gets its outcome, and no job waits
// for it.
func (m *Machine) endsUnseen(e *table.Entry) bool {
	return e.Watchers == 0 && !e.Has(table.HasOptional|table.HasTransient|table.KeepsOutcome|table.Rerun) &&
		m.queues[e.Queue].retention == (core.Retention{})
}

// detach removes an unfinished job from its list or holder.
func (m *Machine) detach(h uint32, e *table.Entry) {
	m.table.Unlist(h, e)
	e.Clear(table.Untouched)
	q := m.queues[e.Queue]
	switch e.State {
	case core.Ready:
		m.limits.RemoveReady(&q.Queue, h)
	case core.Scheduled:
		q.Scheduled.Remove(h, m.table.Before)
		m.table.Timers.Remove(&e.StateTimer)
	case core.Retrying:
		m.table.Timers.Remove(&e.StateTimer)
	case core.Leased:
		m.unhold(h, e)
	case core.Gone, core.Blocked, core.Done, core.Dead:
	}
}

// finish ends a detached job: it notifies watching clients, updates links, and keeps the outcome if the job says so.
func (m *Machine) finish(h uint32, streamed, whole *core.Outcome) {
	e := m.table.At(h)
	if e.Has(table.Rerun) {
		m.runAgain(h, e, streamed, whole)
		return
	}
	if e.Has(table.HasOptional) {
		m.links.Unlink(h)
		m.limits.LeaveLane(h)
	}
	m.limits.LeaveOrder(h, e)
	m.move(e, core.Done)
	e.ReadyAt = m.table.Now
	if !whole.Success {
		e.Set(table.DoneFailed)
	}
	m.table.FreeUnique(h, e)
	if e.Watchers != 0 {
		m.notifyEnd(h, streamed, whole, m.table.ChangeCommit(e))
	}
	open := false
	if e.Has(table.HasOptional) {
		m.batches.MemberDone(h, whole.Success)
		open = m.links.End(h, whole.Success)
	}
	switch {
	case m.retain(h, e, whole):
		m.table.Enlist(h, e)
		m.trim(e.Queue, 2)
	case open:
		m.retainForChildren(h, e)
		m.table.Enlist(h, e)
	default:
		m.remove(h)
	}
}

// retainForChildren reduces a finished job to what its children and successors need.
func (m *Machine) retainForChildren(h uint32, e *table.Entry) {
	was := e.Has(table.Listed)
	m.table.Unlist(h, e)
	e.Clear(table.KeepsOutcome | table.KeptByQueue)
	if was {
		m.table.Enlist(h, e)
	}
	if e.Has(table.HasTransient) {
		m.table.Transient(h).Outcome = nil
	}
	m.table.ExpireAt(h, e, 0)
	e.Set(table.Changed)
	m.table.Touch(h, e)
}

// retain keeps a finished job while its outcome is retained; false: the outcome is not retained, or its time has
// passed.
func (m *Machine) retain(h uint32, e *table.Entry, whole *core.Outcome) bool {
	q := m.queues[e.Queue]
	if !e.Has(table.KeepsOutcome) && q.retention == (core.Retention{}) {
		return false
	}
	until := m.askedUntil(h, e, m.table.Now)
	if kept := m.keptUntil(q); kept > until && !e.Has(table.Ephemeral) {
		if until > m.table.Now {
			m.noteAsked(h, e, until)
		}
		until = kept
		e.Set(table.KeepsOutcome | table.KeptByQueue)
	}
	if until <= m.table.Now {
		return false
	}
	n := m.table.EnsureTransient(h)
	m.table.DropCollected(n)
	n.Outcome = whole
	m.table.AddOpen(record.OutcomeSize(whole))
	m.table.ExpireAt(h, e, until)
	e.Clear(table.OutcomeStored)
	e.Set(table.Changed)
	m.table.Touch(h, e)
	return true
}

// noteAsked stores how long a finished job itself asks to be kept if its queue keeps it longer.
func (m *Machine) noteAsked(h uint32, e *table.Entry, until core.Instant) {
	linked := e.Has(table.HasOptional)
	x := m.table.EnsureOptional(h)
	x.AskedUntil = until
	x.IsClosed = x.IsClosed || !linked // no job waits for it
}

// askedUntil returns until when a finished job asks to be kept; zero: not at all.
func (m *Machine) askedUntil(h uint32, e *table.Entry, finished core.Instant) core.Instant {
	if !e.Has(table.KeepsOutcome) {
		return 0
	}
	if x := m.table.Optional(h); x != nil {
		switch {
		case x.RetainUntil != 0:
			return x.RetainUntil
		case x.RetainFor != 0:
			return finished.Add(x.RetainFor)
		}
	}
	return e.ExpiresAt
}

// fail handles a failure reported by a worker; the job's policy decides what follows.
func (m *Machine) fail(c *client, op *core.Fail) {
	h, e, err := m.authorizeEnd(c, op.Ref, &op.If, op.Authority)
	if m.stopsHere(c, op.Tag, e, err) {
		return
	}
	m.accepted(c, op.Tag, e)
	m.countLostLease(e, op.Authority)
	failure := op.Failure
	if failure == nil {
		failure = &core.Failure{}
	}
	m.detach(h, e)
	e.LostLeases = 0
	m.failJob(h, c.protocol, failure, afterFail{retryAt: op.RetryAt, final: op.Final})
}

// afterFail is what the worker requests after a failure; zero: the job's policy decides.
type afterFail struct {
	retryAt core.Instant
	final   bool
	bury    bool // with final: to the dead set, whatever the job's policy
}

// failJob counts a failure of a detached job and decides between another try, the dead set and the end.
func (m *Machine) failJob(h uint32, by core.Protocol, failure *core.Failure, then afterFail) {
	e := m.table.At(h)
	if e.Has(table.Stopping) {
		m.endStopped(h, by, failure)
		return
	}
	m.count(e.Origin, by, func(t *core.Totals) { t.Failed++ })
	m.queues[e.Queue].counts.of(by).failed++
	m.measureFinish(by, e, true)
	e.Fails++
	if m.table.FirstFail(h, e) == 0 {
		m.table.SetFirstFail(h, e, m.table.Now)
	}
	f := *failure
	f.Count, f.FailedAt, f.NextAt = e.Fails, m.table.FirstFail(h, e), 0
	e.Set(table.Changed)
	m.batches.Executed(h)
	final := then.final || e.Fails >= m.maxFails(e) || e.Has(table.Ephemeral) || m.usedUp(h, e)
	end := m.atEnd(e)
	m.recordFailed(h, e, &f,
		final && (!then.bury && end.exhausted != core.ExhaustedBury && end.moveTo == "" || e.Has(table.Ephemeral)))
	switch {
	case final && end.moveTo != "" && !then.bury && !e.Has(table.Rerun):
		m.moveExhausted(h, e, end.moveTo, failureText(&f))
	case final && (then.bury || end.exhausted == core.ExhaustedBury) && !e.Has(table.Ephemeral|table.Rerun):
		m.keepFailure(h, e, &f)
		m.buryJob(h, by, &core.Outcome{Failure: &f, Result: f.Data})
	case final:
		m.finishFailed(h, &core.Outcome{Failure: &f, Result: f.Data})
	default:
		f.NextAt = m.nextTry(e, then.retryAt)
		m.keepFailure(h, e, &f)
		if f.NextAt == 0 {
			m.tryAgain(h, e)
		} else {
			m.retryAt(h, e, f.NextAt)
		}
	}
}

// recordFailed records the event of a failure; over: the job is neither tried again nor buried.
func (m *Machine) recordFailed(h uint32, e *table.Entry, f *core.Failure, over bool) {
	if !e.Has(table.Ephemeral) && (!over || e.Entries > 0 || e.Has(table.KeepsOutcome)) {
		m.addEntry(m.actor, h, e, core.TimelineEntry{
			Kind: core.EventFailed, Detail: f.Type, Group: f.Group, Text: core.CutText(f.Message, core.MaxTimelineText),
		})
	}
	if over && !e.Has(table.Rerun) {
		m.emitFinal(h, e, core.EventFailed, f.Type)
	} else {
		m.emit(h, e, core.EventFailed, f.Type)
	}
}

// nextTry returns the time of the next try of a failed job; zero: at once, or when the job is no longer blocked.
func (m *Machine) nextTry(e *table.Entry, chosen core.Instant) core.Instant {
	switch {
	case e.State == core.Blocked:
		return 0
	case chosen > m.table.Now:
		return chosen
	case chosen != 0:
		return 0
	}
	if p := m.policyOn(e, core.PolicyBackoff); p != nil && !e.Own(core.PolicyBackoff) {
		if after := p.Backoff.After(e.Fails, m.opts.Random.Float64()); after > 0 {
			return m.table.Now.Add(after)
		}
		return 0
	}
	if e.Backoff == core.BackoffNone {
		return 0
	}
	return m.table.Now.Add(m.backoffAfter(e.Fails - 1))
}

// tryAgain returns a failed, detached job to its list, or to its queue if it was leased.
func (m *Machine) tryAgain(h uint32, e *table.Entry) {
	e.Set(table.Requeued)
	m.table.Touch(h, e)
	switch e.State {
	case core.Scheduled:
		m.queues[e.Queue].Scheduled.Push(h, m.table.Before)
		m.table.Enlist(h, e)
		e.StateTimer = m.table.Timers.Add(e.ReadyAt, timer.Owner{Kind: table.TimerState, Handle: h})
	case core.Ready:
		m.limits.PushReady(&m.queues[e.Queue].Queue, h)
		m.offer(e.Queue)
	case core.Leased, core.Retrying:
		m.putBehind(h, e)
		m.makeReady(h, e)
	case core.Blocked:
		m.table.Enlist(h, e)
	case core.Gone, core.Done, core.Dead:
	}
}

// keepFailure keeps the last failure of a job until it is stored.
func (m *Machine) keepFailure(h uint32, e *table.Entry, f *core.Failure) {
	m.table.EnsureTransient(h).Failure = f
	m.table.ForgetPriorFailure(h)
	m.table.AddOpen(record.FailureSize(f))
	e.Clear(table.FailureStored)
}

// retryAt schedules the next try of a detached job.
func (m *Machine) retryAt(h uint32, e *table.Entry, at core.Instant) {
	m.move(e, core.Retrying)
	e.ReadyAt, e.LeasedAt = at, m.table.Now
	e.Clear(table.ScheduledOrder) // the retry determines its position
	m.table.Enlist(h, e)
	e.StateTimer = m.table.Timers.Add(at, timer.Owner{Kind: table.TimerState, Handle: h})
	m.table.Touch(h, e)
	m.record(h, e, core.EventRetrying, "")
}

// backoffAfter returns Faktory's delay before the next try; count is the number of retries so far.
func (m *Machine) backoffAfter(count uint32) time.Duration {
	c := float64(count)
	jitter := float64(m.opts.Random.IntN(30)) * (c + 1)
	seconds := math.Min(c*c*c*c+15+jitter, 10*365*24*3600)
	return time.Duration(seconds) * time.Second
}

// buryJob moves a detached job to the dead set.
func (m *Machine) buryJob(h uint32, by core.Protocol, outcome *core.Outcome) {
	e := m.table.At(h)
	m.links.Unlink(h)
	m.limits.LeaveOrder(h, e)
	m.move(e, core.Dead)
	if e.ExpiresAt != 0 {
		m.table.EnsureOptional(h).TTL = e.ExpiresAt
	}
	m.count(e.Origin, by, func(t *core.Totals) { t.Dead++ })
	m.queues[e.Queue].counts.dead++
	m.table.Tallied(h, e, table.TallyMoves, func(t *core.Tally) { t.Burials++ })
	m.table.FreeUnique(h, e)
	e.Set(table.Unlocked)
	m.rebury(h, e)
	m.record(h, e, core.EventDead, "")
	m.schedules.RunEnded(e.Seq, core.EventDead, leasedAt(e))
	if e.Watchers != 0 {
		m.notifyEnd(h, outcome, outcome, m.table.Promise())
	}
	m.links.Died(h)
}

// rebury restarts DeadFor of a dead job.
func (m *Machine) rebury(h uint32, e *table.Entry) { m.reburyAt(h, e, m.table.Now) }

// reburyAt is rebury for a job that died at another time.
func (m *Machine) reburyAt(h uint32, e *table.Entry, at core.Instant) {
	group := m.table.GroupName(e)
	m.table.Unlist(h, e)
	e.ReadyAt = at
	m.table.Enlist(h, e)
	m.table.JoinGroupNamed(h, e, group)
	m.table.ExpireAt(h, e, m.deadUntil(h, e))
	e.Set(table.Changed)
	m.table.Touch(h, e)
}

// deadUntil returns when a dead job is removed, or zero.
func (m *Machine) deadUntil(h uint32, e *table.Entry) (until core.Instant) {
	if e.DeadHours > 0 {
		until = e.ReadyAt.Add(time.Duration(e.DeadHours) * time.Hour)
	}
	if x := m.table.Optional(h); x != nil && x.TTL != 0 && (until == 0 || x.TTL < until) {
		until = x.TTL
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
	if m.stopsHere(c, op.Tag, e, err) {
		return
	}
	var p *core.Progress
	if !op.Heartbeat {
		p = &core.Progress{}
		*p = op.Progress
		p.UpdatedAt = m.table.Now
		m.table.EnsureTransient(h).Progress = p
		m.stats.Reports++
		if e.Has(table.Changed) {
			m.table.AddOpen(len(p.Text) + len(p.Verbatim))
		}
	}
	m.moveLeaseEnd(h, e, op)
	if e.Has(table.Changed) {
		m.table.Touch(h, e)
	}
	if !op.Heartbeat {
		m.record(h, e, core.EventProgress, "")
	}
	if e.Watchers != 0 && !op.Heartbeat {
		m.watchers.Each(e, func(_ uint32, w *watch.Watcher) {
			m.looked++
			if w.Kind == core.WatchStream {
				m.reply(m.clients[w.Client], core.Reply{
					Kind: core.Progressed, Tag: w.Tag, Seq: e.Seq, Progress: p, Commit: m.table.JobCommit(e),
				})
			}
		})
	}
	m.reply(c, core.Reply{Kind: core.Accepted, Tag: op.Tag, Seq: e.Seq, CancelRequested: e.Has(table.Stopping)})
	if e.State == core.Leased && op.LeaseUntil != 0 && op.LeaseUntil <= m.table.Now {
		m.table.Timers.Remove(&e.StateTimer)
		m.stateDue(h) // at once: the next operation may want the job
	}
}

// moveLeaseEnd changes the end of a lease as a report requests.
func (m *Machine) moveLeaseEnd(h uint32, e *table.Entry, op *core.Report) {
	until := op.LeaseUntil
	if until == 0 && op.ExtendUntil != 0 && e.StateTimer != 0 && op.ExtendUntil > m.table.Timers.At(e.StateTimer) {
		until = op.ExtendUntil
	}
	if e.State != core.Leased || until == 0 {
		return
	}
	m.table.Timers.Remove(&e.StateTimer)
	e.StateTimer = m.table.Timers.Add(until, timer.Owner{Kind: table.TimerState, Handle: h})
	e.Granted = table.Millis(max(until.Sub(m.table.Now), time.Millisecond))
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
	} else if e.Has(table.KeepsOutcome) || m.watchers.WantsOutcome(e) {
		m.table.Collect(m.table.EnsureTransient(h), op.Data)
	}
	m.watchers.Each(e, func(_ uint32, w *watch.Watcher) {
		m.looked++
		if w.Kind == core.WatchStream {
			m.reply(m.clients[w.Client], core.Reply{Kind: kind, Tag: w.Tag, Seq: e.Seq, Data: op.Data})
		}
	})
	m.reply(c, core.Reply{Kind: core.Accepted, Tag: op.Tag, Seq: e.Seq})
}

// With KeepDone, finished jobs stay Done for a while. Jobs that are kept only by KeepDone are in the list KeptDone of
// their queue, the oldest first.

// keepDone sets how long finished jobs are kept.
func (m *Machine) keepDone(c *client, op *core.KeepDone) {
	r := op.Retention
	if r.For < 0 || r.Count < 0 {
		m.failed(c, op.Tag, core.ErrInvalid)
		return
	}
	switch {
	case op.Queue == "":
		m.retention = r
	case r == (core.Retention{}):
		delete(m.retentions, op.Queue)
	default:
		m.retentions[strings.Clone(op.Queue)] = r
	}
	if op.Queue == "" {
		next := uint32(0)
		m.inSteps(func() (more bool) {
			next++
			m.retentionChanged(next)
			return int(next) < len(m.queues)
		})
	} else {
		m.retentionChanged(m.table.QueueNumber(op.Queue))
	}
	m.reply(c, core.Reply{Kind: core.Accepted, Tag: op.Tag})
}

// retentionChanged applies a changed Retention to a queue, if there is one of that number.
func (m *Machine) retentionChanged(n uint32) {
	m.table.Touched++
	if int(n) < len(m.queues) && m.queues[n] != nil {
		m.setRetention(n, m.queues[n])
	}
}

// setRetention applies the Retention of a queue, and removes jobs beyond the new limit.
func (m *Machine) setRetention(n uint32, q *jobQueue) {
	r, own := m.retentions[q.Name]
	if !own {
		r = m.retention
	}
	q.retention = r
	m.trimLater(n, q)
}

// trimLater lets the timer remove jobs while there are too many.
func (m *Machine) trimLater(n uint32, q *jobQueue) {
	if q.surplus() > 0 && q.trimTimer == 0 {
		q.trimTimer = m.table.Timers.Add(m.table.Now, timer.Owner{Kind: table.TimerTrim, Handle: n})
	}
}

// surplus returns how many kept jobs a queue has beyond its limit.
func (q *jobQueue) surplus() int {
	switch {
	case q.retention == (core.Retention{}):
		return q.Kept()
	case q.retention.Count == 0:
		return 0
	}
	return q.Kept() - q.retention.Count
}

// trim removes up to most of the jobs beyond the limit, and leaves the rest to the timer.
func (m *Machine) trim(n uint32, most int) {
	q := m.queues[n]
	for range min(most, q.surplus()) {
		m.dropKept(q.KeptDone.Front())
	}
	if m.queues[n] == q {
		m.trimLater(n, q)
	}
}

// dropKept removes a job that its queue no longer keeps, unless the job itself asks to be kept.
func (m *Machine) dropKept(h uint32) {
	e, x := m.table.At(h), m.table.Optional(h)
	if x == nil || x.AskedUntil <= m.table.Now {
		m.expire(h)
		return
	}
	m.table.Unlist(h, e)
	e.Clear(table.KeptByQueue)
	m.table.Enlist(h, e)
	m.table.ExpireAt(h, e, x.AskedUntil)
	e.Set(table.Changed)
	m.table.Touch(h, e)
}

// trimAtOnce is how many jobs the timer removes together.
const trimAtOnce = 16

// trimTimeout removes some of the jobs beyond the limit.
func (m *Machine) trimTimeout(n uint32) {
	m.queues[n].trimTimer = 0
	m.trim(n, trimAtOnce)
}

// unlimited is how long a job is kept if only the number of jobs is limited.
const unlimited = 100 * 365 * 24 * time.Hour

// keptUntil returns until when a queue keeps a job that finishes now; zero: not at all.
func (m *Machine) keptUntil(q *jobQueue) core.Instant {
	switch {
	case q.retention == (core.Retention{}):
		return 0
	case q.retention.For == 0:
		return m.table.Now.Add(unlimited)
	}
	return m.table.Now.Add(q.retention.For)
}
