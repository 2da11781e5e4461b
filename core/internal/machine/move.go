package machine

import (
	"fmt"
	"math"
	"strings"

	"broker/core"
	"broker/core/internal/record"
	"broker/core/internal/table"
)

// moveJob moves a job to a queue, from any state.
func (m *Machine) moveJob(c *client, op *core.Move) {
	h, e, after, err := m.moveRefusal(c, op)
	j, wanted, err := m.wholeJob(c, h, err)
	if wanted || m.stopsHereBy(c, op.Tag, e, err) {
		return
	}
	m.raiseEpoch(e)
	if op.Queue != "" {
		typ := m.table.TypeOf(e)
		if op.Set.Type != nil {
			typ = *op.Set.Type
		} else if typ == m.queues[e.Queue].Name {
			typ = op.Queue
		}
		m.storeFor(h, e, op.Queue, typ)
	}
	m.acceptedChange(c, op.Tag, e)
	m.setFields(h, e, j, &op.Set)
	m.touchPayload(h, e)
	if !m.takeOut(h, e, op.Queue) {
		return
	}
	from := e.Queue
	m.move(e, core.Gone) // it leaves the counters of one queue and enters those of another
	if m.enter(h, e, op); e.Queue != from {
		m.forgetMove(h, e)
	}
	if op.After != nil {
		m.links.UnlinkAfter(h, e)
		m.links.WaitFor(h, e, after)
	}
	e.ReadyAt, e.LostLeases = max(op.ReadyAt, m.table.Now), 0
	e.Clear(table.ScheduledOrder | table.Requeued)
	m.record(h, e, core.EventMoved, m.queues[from].Name)
	if x := m.table.Optional(h); x != nil && len(x.Waiting) > 0 || e.Has(table.Broken) {
		m.move(e, core.Blocked)
		m.table.Enlist(h, e)
	} else {
		m.schedule(h, e)
	}
	m.dropIdle(from)
}

// moveRefusal returns the job and the dependencies of a move, or why it is refused.
func (m *Machine) moveRefusal(c *client, op *core.Move) (h uint32, e *table.Entry, after []uint64, err error) {
	h, e, err = m.findIf(op.Ref, &op.If)
	if err != nil {
		return h, e, nil, err
	}
	switch {
	case e.State == core.Done:
		return h, e, nil, core.ErrFinished
	case len(op.Queue) > core.MaxQueueName, op.Set.ReadyAt != nil, len(op.After) > 0 && e.Has(table.Ephemeral),
		m.heldByBatch(h, e):
		return h, e, nil, core.ErrInvalid
	case e.State == core.Leased:
		err = m.authorityRefusal(c, e, op.Authority)
	}
	if err == nil {
		err = m.changeRefusal(e, &op.Set)
	}
	if err == nil {
		err = m.enterRefusal(e, op)
	}
	if err == nil {
		after, err = m.links.Resolve(e, op.After)
	}
	return h, e, after, err
}

// enterRefusal returns why the new queue refuses a job.
func (m *Machine) enterRefusal(e *table.Entry, op *core.Move) error {
	n := m.table.QueueNumber(op.Queue)
	if op.Queue == "" || n == e.Queue {
		return nil
	}
	if e.Unique != (table.Digest{}) && m.list.Locks(op.Queue, e.Unique) {
		return core.ErrNotUnique
	}
	if n == 0 {
		return nil
	}
	priority := e.Priority()
	if op.Set.Priority != nil {
		priority = *op.Set.Priority
	}
	if m.full(n, priority) {
		return core.ErrFull
	}
	if e.Unique != (table.Digest{}) {
		if h := m.holderOf(n, e.Unique); h != 0 && !m.list.Cancels(m.table.At(h).Seq) {
			return core.ErrNotUnique
		}
	}
	return nil
}

// takeOut removes a job from its list or holder, to move it to a queue. It returns false if the job is gone: either it
// was ephemeral and no client waits for it, or its worker was asked to stop and gives it back.
func (m *Machine) takeOut(h uint32, e *table.Entry, to string) bool {
	was := e.State
	m.detach(h, e)
	if was != core.Blocked {
		e.Clear(table.Broken) // left from before the job was buried
	}
	switch was {
	case core.Leased:
		m.table.Tallied(h, e, table.TallyMoves, func(t *core.Tally) { t.Releases++ })
		m.timeOutRuns(e)
		m.table.ForgetProgress(h, e)
		if m.watchers.Abandoned(e) {
			m.end(h, &core.Outcome{Cause: core.Cancelled})
			return false
		}
		if e.Has(table.Stopping) && (to == "" || to == m.queues[e.Queue].Name) {
			m.endStopped(h, e.HolderFrom, nil)
			return false
		}
	case core.Dead:
		m.leaveDeadSet(h, e)
		m.links.Rejoin(h)
	case core.Gone, core.Scheduled, core.Blocked, core.Ready, core.Retrying, core.Done:
	}
	return true
}

// enter puts a job into its new queue. If its type was the name of the old queue, the type becomes the name of the
// new queue.
func (m *Machine) enter(h uint32, e *table.Entry, op *core.Move) {
	if op.Queue == "" {
		return
	}
	m.limits.LeaveLane(h)
	m.limits.LeaveOrder(h, e)
	n, q := m.enterQueue(op.Queue, e.Origin, e.Has(table.Ephemeral))
	j := m.table.Payload(h) // a copy made by setFields that no one has seen yet
	typ := j.Type
	if j.InQueue(q.Name); op.Set.Type != nil {
		j.Type = typ
	}
	e.Queue = n
	m.dropType(e)
	m.table.SetType(e, j.Type)
	m.limits.JoinLaneOf(h, e, j)
}

// moveSpent is MoveSpent.
func (m *Machine) moveSpent(c *client, op *core.MoveSpent) {
	if !op.IsValid() {
		m.failed(c, op.Tag, core.ErrInvalid)
		return
	}
	n := m.table.QueueNumber(op.Queue)
	if n == 0 && op.Rule == (core.SpentRule{}) || n != 0 && m.queues[n].spentRule() == op.Rule {
		m.reply(c, core.Reply{Kind: core.Accepted, Tag: op.Tag, Commit: m.table.MetaCommit()})
		return
	}
	n = m.queueForLimits(op.Queue)
	q := m.queues[n]
	rule := op.Rule
	rule.To = strings.Clone(rule.To)
	q.setSpent(rule)
	m.storeQueue(q)
	m.dropIdle(n)
	m.reply(c, core.Reply{Kind: core.Accepted, Tag: op.Tag, Commit: m.table.Promise()})
}

// leasesHere returns how many leases a job has had since it moved by a SpentRule; without a move, all.
func (m *Machine) leasesHere(h uint32, e *table.Entry) uint32 {
	if x := m.table.Optional(h); x != nil {
		return e.Attempts - x.MovedAfter
	}
	return e.Attempts
}

// setAttempts sets the number of leases of a job; Optional.MovedAfter stays below.
func (m *Machine) setAttempts(h uint32, e *table.Entry, n uint32) {
	e.Attempts = n
	if x := m.table.Optional(h); x != nil {
		x.MovedAfter = min(x.MovedAfter, n)
	}
}

// isSpent reports whether a ready job has had its leases in this queue, so the SpentRule moves it.
func (m *Machine) isSpent(h uint32, e *table.Entry) bool {
	rule := m.queues[e.Queue].spent
	return rule != nil && m.leasesHere(h, e) >= rule.Leases && !e.Has(table.Ephemeral) && e.Extra&table.EndFails == 0 &&
		(e.MaxAttempts == 0 || e.MaxAttempts == math.MaxUint32)
}

// moveSpentJob moves a detached job by the SpentRule of its queue.
func (m *Machine) moveSpentJob(h uint32, e *table.Entry) {
	q, why := m.queues[e.Queue], fmt.Sprintf(core.AttemptsUsedUpMessage, m.leasesHere(h, e))
	if rule := q.spent; rule.ExpiresIn > 0 && e.ExpiresAt != 0 && !e.Has(table.KeepsOutcome) {
		since := e.CreatedAt
		if rule.FromMove {
			since = m.table.Now
		}
		m.table.ExpireAt(h, e, since.Add(rule.ExpiresIn))
	}
	x := m.table.EnsureOptional(h)
	x.MovedFrom, x.MovedAfter = q.Name, e.Attempts
	m.rehome(h, e, q.spent.To, why)
}

// restoreMove restores the changes of moveSpentJob.
func (m *Machine) restoreMove(h uint32, e *table.Entry, s *record.Status) {
	if s.Moved == nil || s.Moved.From == "" && s.Moved.After == 0 {
		return
	}
	x := m.table.EnsureOptional(h)
	x.MovedFrom, x.MovedAfter = s.Moved.From, min(s.Moved.After, e.Attempts)
	if x.TTL != 0 && e.DeadHours == 0 {
		x.TTL = s.ExpiresAt
	}
}

// forgetMove forgets the queue from which a job has moved by a SpentRule, because it moves again. Its leases so far do
// not count in its new queue.
func (m *Machine) forgetMove(h uint32, e *table.Entry) {
	if x := m.table.Optional(h); x != nil && x.MovedFrom != "" {
		x.MovedFrom, x.MovedAfter = "", e.Attempts
	}
}
