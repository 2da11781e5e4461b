package machine

import (
	"broker/core"
	"broker/core/internal/table"
	"broker/core/internal/timer"
)

// update changes fields of a job.
func (m *Machine) update(c *client, op *core.Update) {
	h, e, err := m.findIf(op.Ref, &op.If)
	if err == nil {
		err = m.updateRefusal(e, &op.Set)
	}
	j, wanted, err := m.wholeJob(c, h, err)
	if wanted || m.stopsHere(c, op.Tag, e, err) {
		return
	}
	m.raiseEpoch(e)
	m.acceptedChange(c, op.Tag, e)
	m.setFields(h, e, j, &op.Set)
	m.touchPayload(h, e)
	m.record(h, e, core.EventChanged, op.Set.String())
}

// acceptedChange replies to a change that increased the epoch.
func (m *Machine) acceptedChange(c *client, tag uint64, e *table.Entry) {
	m.reply(c, core.Reply{
		Kind: core.Accepted, Tag: tag, Seq: e.Seq, Lease: core.Grant{Epoch: e.Epoch}, Commit: m.table.ChangeCommit(e),
	})
}

// updateRefusal returns why a job cannot be changed in this way.
func (m *Machine) updateRefusal(e *table.Entry, set *core.JobChange) error {
	if e.State == core.Done {
		return core.ErrFinished
	}
	if set.ReadyAt != nil && (e.State == core.Leased || e.State == core.Dead) ||
		set.Attempts != nil && e.State == core.Leased {
		return core.ErrInvalid
	}
	return m.changeRefusal(e, set)
}

// changeRefusal returns why a job must not get these values, whatever its state.
func (m *Machine) changeRefusal(e *table.Entry, set *core.JobChange) error {
	switch {
	case !set.IsValid():
		return core.ErrInvalid
	case set.Body != nil && !e.Unstored() && m.lacksRoom():
		return core.ErrDiskFull
	}
	return nil
}

// setFields changes values of a job. j is its payload; it is not modified, because other goroutines may be reading
// it.
func (m *Machine) setFields(h uint32, e *table.Entry, j *core.Job, set *core.JobChange) {
	n := *j
	setPayload(&n, set)
	if set.Type != nil {
		m.table.CountFailure(h, e, -1)
		m.dropType(e)
		m.table.SetType(e, n.Type)
		m.table.CountFailure(h, e, 1)
	}
	if set.Tags != nil {
		m.table.SetTags(h, n.Tags)
	}
	if (set.Type != nil || set.Tags != nil) && e.State != core.Done {
		m.limits.Relane(h, e, &n)
	}
	m.setEntry(h, e, &n, set)
	if set.ExpiresAt != nil {
		m.changeExpiry(h, e, &n, *set.ExpiresAt)
	}
	if set.Body != nil {
		m.setBody(e, &n)
	}
	m.table.SetPayload(h, &n)
}

// dropType ends a job's use of the name of its type.
func (m *Machine) dropType(e *table.Entry) {
	if e.Kind != 0 && m.table.ReleaseType(e) {
		m.meters.ForgetKind(e.Kind)
	}
	e.Kind = 0
}

// setBody records a new body for the store. The size of the stored body must be known until it is replaced.
func (m *Machine) setBody(e *table.Entry, n *core.Job) {
	switch {
	case e.Unstored():
	case e.Has(table.Stored):
		e.Set(table.NewBody)
		m.table.AddOpen(table.PayloadBytes(n))
		return
	default:
		m.table.AddOpen(table.PayloadBytes(n))
	}
	e.BodyBytes = uint32(len(n.Body))
}

// setPayload sets the fields that only the payload has.
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

// setEntry sets the fields that both payload and entry have.
func (m *Machine) setEntry(h uint32, e *table.Entry, n *core.Job, set *core.JobChange) {
	if set.Priority != nil || set.ReadyAt != nil {
		m.reposition(h, e, n, set)
	}
	if set.LeaseFor != nil {
		m.chosen(e, n, core.PolicyLeaseFor)
		n.LeaseFor, e.LeaseFor = *set.LeaseFor, table.Millis(*set.LeaseFor)
	}
	if set.MaxAttempts != nil {
		m.chosen(e, n, core.PolicyMaxAttempts)
		n.MaxAttempts, e.MaxAttempts = *set.MaxAttempts, *set.MaxAttempts
	}
	if set.MaxFails != nil {
		m.chosen(e, n, core.PolicyMaxFails)
		n.MaxFails, e.MaxFails = *set.MaxFails, *set.MaxFails
	}
	if set.Backoff != nil {
		m.chosen(e, n, core.PolicyBackoff)
		n.Backoff, e.Backoff = *set.Backoff, *set.Backoff
	}
	if set.Exhausted != nil {
		m.chosen(e, n, core.PolicyExhausted)
		n.Exhausted, e.Exhausted = *set.Exhausted, *set.Exhausted
	}
	if set.Attempts != nil {
		m.setAttempts(h, e, *set.Attempts)
	}
	if set.Fails != nil {
		m.setFails(h, e, n, *set.Fails)
	}
}

// chosen records that a client has chosen a value, so that no policy replaces it.
func (m *Machine) chosen(e *table.Entry, n *core.Job, member core.PolicyFields) {
	if m.stores(ownFormat) {
		n.Own |= member
	}
	e.Extra |= table.ExtraFlags(member)
}

// setFails sets the number of failures and forgets the last failure.
func (m *Machine) setFails(h uint32, e *table.Entry, n *core.Job, fails uint32) {
	m.table.SetFirstFail(h, e, 0)
	n.PriorFails, n.Failure, e.Fails = fails, nil, fails
	m.table.ForgetPriorFailure(h)
	e.Clear(table.FailureStored)
	if e.State == core.Retrying || e.State == core.Dead {
		m.table.LeaveGroup(h, e)
	}
	if e.Has(table.HasTransient) {
		m.table.Transient(h).Failure = nil
	}
}

// changeExpiry changes the expiry of a job; a dead job is removed then at the latest.
func (m *Machine) changeExpiry(h uint32, e *table.Entry, n *core.Job, until core.Instant) {
	if n.RetainUntil != 0 && n.RetainUntil == n.ExpiresAt {
		n.RetainUntil = until
		if x := m.table.Optional(h); x != nil && x.RetainUntil != 0 {
			x.RetainUntil = until
		}
		if !n.Kept() {
			e.Clear(table.KeepsOutcome)
		}
	}
	n.ExpiresAt = until
	if e.State != core.Dead {
		m.table.ExpireAt(h, e, until)
		return
	}
	m.table.EnsureOptional(h).TTL = until
	m.table.ExpireAt(h, e, m.deadUntil(h, e))
}

// reposition changes the priority or ReadyAt of a job, and so its position.
func (m *Machine) reposition(h uint32, e *table.Entry, n *core.Job, set *core.JobChange) {
	q := m.queues[e.Queue]
	switch e.State {
	case core.Ready:
		m.limits.RemoveReady(&q.Queue, h)
	case core.Scheduled:
		q.Scheduled.Remove(h, m.table.Before)
	case core.Gone, core.Blocked, core.Leased, core.Retrying, core.Done, core.Dead:
	}
	if set.Priority != nil {
		n.Priority = *set.Priority
		m.table.SetPriority(e, *set.Priority)
	}
	if set.ReadyAt != nil && m.reschedule(h, e, *set.ReadyAt) {
		return
	}
	switch e.State {
	case core.Ready:
		m.limits.PushReady(&q.Queue, h)
		m.offer(e.Queue)
	case core.Scheduled:
		q.Scheduled.Push(h, m.table.Before)
	case core.Gone, core.Blocked, core.Leased, core.Retrying, core.Done, core.Dead:
	}
}

// reschedule moves a waiting job, which was removed from its list, to the position of an instant, regardless of
// ScheduledOrder. It returns true if the job has changed its state and is in its list again.
func (m *Machine) reschedule(h uint32, e *table.Entry, at core.Instant) bool {
	if at == 0 {
		at = m.table.Now
	}
	group := m.table.GroupName(e)
	m.table.Unlist(h, e)
	e.ReadyAt = at
	e.Clear(table.ScheduledOrder)
	m.table.Timers.Remove(&e.StateTimer)
	due := at <= m.table.Now
	switch e.State {
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
		e.StateTimer = m.table.Timers.Add(at, timer.Owner{Kind: table.TimerState, Handle: h})
	case core.Gone, core.Blocked, core.Leased, core.Done, core.Dead:
	}
	m.table.Enlist(h, e)
	m.table.JoinGroupNamed(h, e, group)
	return false
}

// touchPayload records that a job's payload differs from the stored payload.
func (m *Machine) touchPayload(h uint32, e *table.Entry) {
	if e.Has(table.Stored) {
		e.Set(table.Rewrite)
		e.Clear(table.PayloadStored | table.Untouched)
	}
	e.Set(table.Changed)
	m.table.Touch(h, e)
}
