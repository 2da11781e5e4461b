package machine

import (
	"fmt"

	"broker/core"
	"broker/core/internal/policy"
	"broker/core/internal/table"
	"broker/core/internal/timer"
)

// policyOn returns the policy that sets a member for a job; nil: none does.
func (m *Machine) policyOn(e *table.Entry, member core.PolicyFields) *core.JobPolicy {
	if m.policies.None() {
		return nil
	}
	return m.findPolicy(e, member)
}

func (m *Machine) findPolicy(e *table.Entry, member core.PolicyFields) *core.JobPolicy {
	if e.Has(table.Ephemeral) {
		return nil
	}
	return m.policies.For(m.table.TypeOf(e), m.queues[e.Queue].policy, member)
}

// ownLimits: if the job itself sets one of these members, no policy limits its attempts
// or failures.
const ownLimits = core.PolicyMaxAttempts | core.PolicyMaxFails

// maxAttempts returns how many leases a job may have; zero: no limit.
func (m *Machine) maxAttempts(e *table.Entry) uint32 {
	if m.limitedByPolicy(e) {
		return m.policyOn(e, core.PolicyMaxAttempts).MaxAttempts
	}
	return e.MaxAttempts
}

// maxFails returns how many failures a job may have, at least one.
func (m *Machine) maxFails(e *table.Entry) uint32 {
	if p := m.policyOn(e, core.PolicyMaxFails); p != nil && !e.Own(ownLimits) {
		return max(p.MaxFails, 1)
	}
	return max(e.MaxFails, 1)
}

// leaseFor returns the length of a job's leases in milliseconds; zero: neither the job nor a policy sets it.
func (m *Machine) leaseFor(e *table.Entry) uint32 {
	if p := m.policyOn(e, core.PolicyLeaseFor); p != nil && !e.Own(core.PolicyLeaseFor) {
		return table.Millis(p.LeaseFor)
	}
	return e.LeaseFor
}

// atEnd is what happens to a job that has used up its leases or failures.
type atEnd struct {
	exhausted core.Exhausted
	moveTo    string // not empty: the job moves to this queue
	byPolicy  bool
}

func (m *Machine) atEnd(e *table.Entry) atEnd {
	p := m.policyOn(e, core.PolicyExhausted)
	if p == nil || e.Own(core.PolicyExhausted) {
		return atEnd{exhausted: e.Exhausted}
	}
	if p.MoveTo != "" && !m.stores(movesFormat) {
		return atEnd{exhausted: core.ExhaustedBury, byPolicy: true}
	}
	if p.MoveTo == m.queues[e.Queue].Name { // the policy of a type: the job has already moved there
		return atEnd{exhausted: core.ExhaustedBury, byPolicy: true}
	}
	return atEnd{exhausted: p.Exhausted, moveTo: p.MoveTo, byPolicy: true}
}

// usedUp reports whether a job has used up its leases.
func (m *Machine) usedUp(h uint32, e *table.Entry) bool {
	if e.Attempts == 0 {
		return false
	}
	most := m.maxAttempts(e)
	return most > 0 && m.leasesHere(h, e) >= most
}

// endUsedUp ends a detached job that has used up its leases.
func (m *Machine) endUsedUp(h uint32, e *table.Entry) {
	end := m.atEnd(e)
	why := fmt.Sprintf(core.AttemptsUsedUpMessage, e.Attempts)
	switch {
	case e.Has(table.Rerun) || !end.byPolicy && !m.limitedByPolicy(e) ||
		end.exhausted == core.ExhaustedFinish && end.moveTo == "":
		m.recordRunEnd(h, e, core.EventFailed, "no attempts left")
		m.finishFailed(h, &core.Outcome{Cause: core.LeaseRanOut})
	case end.moveTo != "":
		m.moveExhausted(h, e, end.moveTo, why)
	default:
		m.failJob(h, e.HolderFrom, &core.Failure{Type: core.AttemptsUsedUp, Message: why},
			afterFail{final: true, bury: true})
	}
}

// usedUpByPolicy reports whether a policy that was set in the meantime allows a ready job no further lease.
func (m *Machine) usedUpByPolicy(h uint32, e *table.Entry) bool {
	return m.limitedByPolicy(e) && m.usedUp(h, e)
}

// limitedByPolicy reports whether a policy sets the number of leases of a job.
func (m *Machine) limitedByPolicy(e *table.Entry) bool {
	return !e.Own(ownLimits) && m.policyOn(e, core.PolicyMaxAttempts) != nil
}

// unfit reports whether a ready job must not be handed out.
func (m *Machine) unfit(h uint32) bool {
	e := m.table.At(h)
	return (e.Has(table.HasOptional) || e.Attempts > 0) && m.isUnfit(h, e)
}

func (m *Machine) isUnfit(h uint32, e *table.Entry) bool {
	return e.Has(table.HasOptional) && m.stale(h) || e.Attempts > 0 && (m.usedUpByPolicy(h, e) || m.isSpent(h, e))
}

// dropUnfit removes a job that is unfit from its queue.
func (m *Machine) dropUnfit(h uint32) {
	if m.stale(h) {
		m.expire(h)
		return
	}
	e := m.table.At(h)
	m.detach(h, e)
	if m.usedUpByPolicy(h, e) {
		m.endUsedUp(h, e)
	} else {
		m.moveSpentJob(h, e)
	}
}

// dropRest sets a timer that drops the unfit jobs which a search has left in a queue.
func (m *Machine) dropRest(q *jobQueue) {
	if q.unfitTimer == 0 {
		q.unfitTimer = m.table.Timers.Add(m.table.Now,
			timer.Owner{Kind: table.TimerUnfit, Handle: m.table.QueueNumber(q.Name)})
	}
}

// unfitTimeout drops more unfit jobs of a queue, and then serves the clients that wait for its other jobs.
func (m *Machine) unfitTimeout(n uint32) {
	q := m.queues[n]
	q.unfitTimer = 0
	if m.runnable(q) != 0 {
		m.offer(n)
	}
	m.dropIdle(n)
}

// failureText describes a failure in one line.
func failureText(f *core.Failure) string {
	if f.Type == "" || f.Message == "" {
		return f.Type + f.Message
	}
	return f.Type + ": " + f.Message
}

// moveExhausted moves a detached job to the queue for jobs that have used up their leases or failures. There it starts
// like a new job.
func (m *Machine) moveExhausted(h uint32, e *table.Entry, to, why string) {
	m.table.SetFirstFail(h, e, 0)
	m.table.ForgetPriorFailure(h)
	m.setAttempts(h, e, 0)
	e.Fails = 0
	if e.Has(table.HasTransient) {
		m.table.Transient(h).Failure = nil
	}
	e.Clear(table.FailureStored)
	m.forgetMove(h, e)
	m.rehome(h, e, to, why)
}

// rehome moves a detached job to a queue by a rule. Its payload may be only on disk, so the status names the queue.
func (m *Machine) rehome(h uint32, e *table.Entry, to, why string) {
	from, typ, blocked := e.Queue, m.table.TypeOf(e), e.State == core.Blocked
	if typ == m.queues[from].Name {
		typ = to
	}
	if !blocked { // otherwise it has failed without a lease, and still waits for other jobs
		m.links.Unlink(h)
	}
	m.table.ForgetProgress(h, e)
	m.limits.LeaveLane(h)
	m.limits.LeaveOrder(h, e)
	m.move(e, core.Gone) // it leaves the counters of one queue and enters those of another
	if n := m.table.QueueNumber(to); n != 0 && e.Unique != (table.Digest{}) && m.holderOf(n, e.Unique) != 0 {
		m.table.FreeUnique(h, e) // another job has the key there
		e.Set(table.Unlocked)
	}
	n, q := m.enterQueue(to, e.Origin, false)
	e.Queue = n
	m.dropType(e)
	m.table.SetType(e, typ)
	if j := m.table.Payload(h); j != nil { // others may be reading it
		moved := *j
		moved.InQueue(q.Name)
		m.table.SetPayload(h, &moved)
	}
	m.limits.JoinQueue(h, e, typ)
	e.Extra |= table.Rehomed
	m.storeFor(h, e, q.Name, typ)
	if e.Has(table.HasTransient) {
		m.table.DropCollected(m.table.Transient(h))
	}
	m.raiseEpoch(e)
	e.ReadyAt, e.LeasedAt, e.LostLeases = m.table.Now, 0, 0
	e.Clear(table.ScheduledOrder | table.Requeued)
	e.Set(table.Changed)
	m.addEntry(m.actor, h, e, core.TimelineEntry{
		Kind: core.EventMoved, Detail: m.queues[from].Name, Queue: q.Name,
		Text: core.CutText(why, core.MaxTimelineText),
	})
	m.emit(h, e, core.EventMoved, m.queues[from].Name)
	m.table.Touch(h, e)
	if blocked {
		m.move(e, core.Blocked)
		m.table.Enlist(h, e)
	} else {
		m.schedule(h, e)
	}
	m.dropIdle(from)
}

// putPolicy is PutPolicy.
func (m *Machine) putPolicy(c *client, op *core.PutPolicy) {
	if op.Scope > core.PolicyOfType {
		m.failed(c, op.Tag, fmt.Errorf("%w: unknown scope", core.ErrInvalid))
		return
	}
	commit, err := m.policies.Put(op)
	m.settingChanged(c, op.Tag, commit, err)
}

// policyChanged applies a changed policy to a queue.
func (m *Machine) policyChanged(queue string, p *policy.Policy) {
	if n := m.table.QueueNumber(queue); n != 0 {
		m.queues[n].policy = p
	}
}

// listPolicies is ListPolicies.
func (m *Machine) listPolicies(c *client, op *core.ListPolicies) {
	m.reply(c, core.Reply{
		Kind: core.Answered, Tag: op.Tag, Commit: m.table.MetaCommit(),
		Answer: &core.Answer{Policies: m.policies.List(op)},
	})
}
