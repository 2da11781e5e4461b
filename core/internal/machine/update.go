package machine

import (
	"slices"

	"broker/core"
	"broker/core/internal/queue"
	"broker/core/internal/timer"
)

// update changes fields of a job.
func (m *Machine) update(c *client, op *core.Update) {
	h, e, err := m.findIf(op.Ref, &op.If)
	if err == nil {
		err = m.updateRefusal(e, &op.Set)
	}
	j, wanted, err := m.wholeJob(c, h, err)
	if wanted || m.rejected(c, op.Tag, e, err) {
		return
	}
	e.epoch++
	m.acceptedChange(c, op.Tag, e)
	m.setFields(h, e, j, &op.Set)
	m.touchPayload(h, e)
	m.record(h, e, core.EventChanged, op.Set.String())
}

// acceptedChange is the reply to a change that increased the epoch.
func (m *Machine) acceptedChange(c *client, tag uint64, e *entry) {
	r := core.Reply{Kind: core.Accepted, Tag: tag, Seq: e.seq, Lease: core.Grant{Epoch: e.epoch}}
	r.Commit = m.changeCommit(e)
	m.reply(c, r)
}

// updateRefusal is why a job cannot be changed in this way.
func (m *Machine) updateRefusal(e *entry, set *core.JobChange) error {
	if e.state == core.Done {
		return core.ErrFinished
	}
	if set.ReadyAt != nil && (e.state == core.Leased || e.state == core.Dead) || set.Attempts != nil && e.state == core.Leased {
		return core.ErrInvalid
	}
	return m.changeRefusal(e, set)
}

// changeRefusal is why no job may have these values.
func (m *Machine) changeRefusal(e *entry, set *core.JobChange) error {
	switch {
	case set.Type != nil && len(*set.Type) > core.MaxQueueName,
		set.Tags != nil && !validTags(*set.Tags),
		set.Body != nil && (len(set.Body.Bytes) > core.MaxBodyBytes || set.Body.Format > core.Args),
		set.Priority != nil && !validPriority(*set.Priority),
		set.LeaseFor != nil && *set.LeaseFor < 0,
		set.Backoff != nil && *set.Backoff > core.BackoffFaktory,
		set.Exhausted != nil && *set.Exhausted > core.ExhaustedBury:
		return core.ErrInvalid
	case set.Body != nil && !e.unstored() && (m.refuse != nil || m.unstored() > m.maxUnstored()):
		return core.ErrDiskFull
	}
	return nil
}

// validPriority reports whether a job may have this priority.
func validPriority(p int64) bool { return p >= core.MinPriority && p <= core.MaxPriority }

// validTags reports whether a job may have these tags.
func validTags(tags []string) bool {
	return len(tags) <= core.MaxTags &&
		!slices.ContainsFunc(tags, func(t string) bool { return t == "" || len(t) > core.MaxTagBytes })
}

// setFields changes values of a job; j is its payload, which others may be reading and is not modified.
func (m *Machine) setFields(h uint32, e *entry, j *core.Job, set *core.JobChange) {
	n := *j
	setPayload(&n, set)
	if set.Type != nil {
		m.countFailure(e, -1)
		m.dropType(e)
		m.setType(e, n.Type)
		m.countFailure(e, 1)
	}
	if set.Tags != nil {
		m.setTags(h, n.Tags)
	}
	if (set.Type != nil || set.Tags != nil) && e.state != core.Done {
		m.relane(h, e, &n)
	}
	m.setEntry(h, e, &n, set)
	if set.ExpiresAt != nil {
		m.changeExpiry(h, e, &n, *set.ExpiresAt)
	}
	if set.Body != nil {
		m.setBody(e, &n)
	}
	m.setPayload(h, &n)
}

// setBody records a new body for the store. The size of the stored one must be known until it is replaced.
func (m *Machine) setBody(e *entry, n *core.Job) {
	switch {
	case e.unstored():
	case e.has(stored):
		e.set(newBody)
		m.addOpen(payloadBytes(n))
		return
	default:
		m.addOpen(payloadBytes(n))
	}
	e.bodyBytes = uint32(len(n.Body))
}

// setPayload sets what only the payload has.
func setPayload(n *core.Job, set *core.JobChange) {
	if set.Type != nil {
		n.Type = *set.Type
		if n.Type == "" {
			n.Type = n.Queue
		}
	}
	if set.Tags != nil {
		n.Tags = *set.Tags
	}
	if set.Body != nil {
		n.Body, n.Format = set.Body.Bytes, set.Body.Format
	}
	if set.Attributes != nil {
		n.Attributes = *set.Attributes
	}
}

// setEntry sets what payload and entry both have.
func (m *Machine) setEntry(h uint32, e *entry, n *core.Job, set *core.JobChange) {
	if set.Priority != nil || set.ReadyAt != nil {
		m.reposition(h, e, n, set)
	}
	if set.LeaseFor != nil {
		m.chosen(e, n, core.PolicyLeaseFor)
		n.LeaseFor, e.leaseFor = *set.LeaseFor, millis(*set.LeaseFor)
	}
	if set.MaxAttempts != nil {
		m.chosen(e, n, core.PolicyMaxAttempts)
		n.MaxAttempts, e.maxAttempts = *set.MaxAttempts, *set.MaxAttempts
	}
	if set.MaxFails != nil {
		m.chosen(e, n, core.PolicyMaxFails)
		n.MaxFails, e.maxFails = *set.MaxFails, *set.MaxFails
	}
	if set.Backoff != nil {
		m.chosen(e, n, core.PolicyBackoff)
		n.Backoff, e.backoff = *set.Backoff, *set.Backoff
	}
	if set.Exhausted != nil {
		m.chosen(e, n, core.PolicyExhausted)
		n.Exhausted, e.exhausted = *set.Exhausted, *set.Exhausted
	}
	if set.Attempts != nil {
		e.attempts = *set.Attempts
	}
	if set.Fails != nil {
		m.setFails(h, e, n, *set.Fails)
	}
}

// chosen records that a client has chosen a value, so that no policy replaces it.
func (m *Machine) chosen(e *entry, n *core.Job, member core.PolicyFields) {
	n.Own |= member
	e.words |= words(member)
}

// setFails sets the number of failures and forgets the last one.
func (m *Machine) setFails(h uint32, e *entry, n *core.Job, fails uint32) {
	m.setFirstFail(h, e, 0)
	n.PriorFails, e.fails = fails, fails
	e.clear(failureStored)
	if e.state == core.Retrying || e.state == core.Dead {
		m.leaveGroup(h, e)
	}
	if e.has(hasTransient) {
		m.transients[h].failure = nil
	}
}

// changeExpiry changes the expiry of a job; a dead one leaves then at the latest.
func (m *Machine) changeExpiry(h uint32, e *entry, n *core.Job, until core.Instant) {
	if n.RetainUntil != 0 && n.RetainUntil == n.ExpiresAt {
		n.RetainUntil = until
		if x := m.optionalState(h); x != nil && x.retainUntil != 0 {
			x.retainUntil = until
		}
		if !n.Kept() {
			e.clear(keepsOutcome)
		}
	}
	n.ExpiresAt = until
	if e.state != core.Dead {
		m.expireAt(h, e, until)
		return
	}
	m.ensureOptional(h).ttl = until
	m.expireAt(h, e, m.deadUntil(h, e))
}

// reposition changes the priority or instant of a job, and so its position.
func (m *Machine) reposition(h uint32, e *entry, n *core.Job, set *core.JobChange) {
	q := m.queues[e.queue]
	switch e.state {
	case core.Ready:
		m.removeReady(q, h)
	case core.Scheduled:
		q.scheduled.Remove(h, m.before)
	case core.Gone, core.Blocked, core.Leased, core.Retrying, core.Done, core.Dead:
	}
	if set.Priority != nil {
		n.Priority = *set.Priority
		m.setPriority(e, q, *set.Priority)
	}
	if set.ReadyAt != nil && m.reschedule(h, e, *set.ReadyAt) {
		return
	}
	switch e.state {
	case core.Ready:
		m.pushReady(q, h)
		m.offer(e.queue)
	case core.Scheduled:
		q.scheduled.Push(h, m.before)
	case core.Gone, core.Blocked, core.Leased, core.Retrying, core.Done, core.Dead:
	}
}

// list is the ordered list of the jobs in a state, or nil.
func (q *jobQueue) list(s core.State) *queue.List {
	switch s {
	case core.Ready:
		return &q.ready
	case core.Scheduled:
		return &q.scheduled
	case core.Gone, core.Blocked, core.Leased, core.Retrying, core.Done, core.Dead:
	}
	return nil
}

// reschedule gives a waiting job that was removed from its list the position of an instant, regardless of ScheduledOrder. It
// returns true if the job changed its state and is in its list.
func (m *Machine) reschedule(h uint32, e *entry, at core.Instant) bool {
	if at == 0 {
		at = m.now
	}
	group := m.groupName(e)
	m.unlist(h, e)
	e.readyAt = at
	e.clear(scheduledOrder)
	m.timers.Remove(&e.stateTimer)
	due := at <= m.now
	switch e.state {
	case core.Ready:
		if !due {
			m.schedule(h, e)
			return true
		}
	case core.Scheduled, core.Retrying:
		if due {
			m.makeReady(h, e)
			return true
		}
		e.stateTimer = m.timers.Add(at, timer.Owner{Kind: timerState, Handle: h})
	case core.Gone, core.Blocked, core.Leased, core.Done, core.Dead:
	}
	m.enlist(h, e)
	m.joinGroupNamed(h, e, group)
	return false
}

// setPriority moves a ready job to the class of its new priority.
func (m *Machine) setPriority(e *entry, q *jobQueue, priority int64) {
	if e.state == core.Ready {
		q.class[classOf(e.priority())]--
		m.class[classOf(e.priority())]--
		q.class[classOf(priority)]++
		m.class[classOf(priority)]++
	}
	e.setPriority(priority)
}

// touchPayload records that a job's payload differs from the stored one.
func (m *Machine) touchPayload(h uint32, e *entry) {
	if e.has(stored) {
		e.set(rewrite)
		e.clear(payloadStored | untouched)
	}
	e.set(changed)
	m.touch(h, e)
}
