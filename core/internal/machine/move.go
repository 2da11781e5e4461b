package machine

import "broker/core"

// moveJob puts a job into a queue, out of whatever state it is in.
func (m *Machine) moveJob(c *client, op *core.Move) {
	h, e, after, err := m.moveRefusal(c, op)
	j, wanted := m.wholeJob(c, h, err)
	if wanted || m.stopsBy(c, op.Tag, e, err) {
		return
	}
	e.epoch++
	m.acceptedChange(c, op.Tag, e)
	m.setFields(h, e, j, &op.Set)
	m.touchPayload(h, e)
	if !m.takeOut(h, e) {
		return
	}
	from := e.queue
	m.move(e, core.Gone) // out of the counters of one queue, into those of another
	m.enter(h, e, op)
	if op.After != nil {
		m.unlinkAfter(h, e)
		m.waitFor(h, e, after)
	}
	e.readyAt, e.lostLeases = max(op.ReadyAt, m.now), 0
	e.clear(scheduledOrder | requeued)
	m.happened(h, e, core.EventMoved, m.queues[from].name)
	if x := m.optionalState(h); x != nil && len(x.waiting) > 0 || e.has(broken) {
		m.move(e, core.Blocked)
		m.enlist(h, e)
	} else {
		m.schedule(h, e)
	}
	m.dropIdle(from)
}

// moveRefusal finds the job of a move and the jobs that it is to wait for, or says why it may not be moved so.
func (m *Machine) moveRefusal(c *client, op *core.Move) (h uint32, e *entry, after []uint64, err error) {
	h, e, err = m.findIf(op.Ref, &op.If)
	if err != nil {
		return h, e, nil, err
	}
	switch {
	case e.state == core.Done:
		return h, e, nil, core.ErrFinished
	case len(op.Queue) > core.MaxQueueName, op.Set.ReadyAt != nil, len(op.After) > 0 && e.has(ephemeral), m.heldByBatch(h, e):
		return h, e, nil, core.ErrInvalid
	case e.state == core.Leased:
		err = m.authorityRefusal(c, e, op.Authority)
	}
	if err == nil {
		err = m.changeRefusal(e, &op.Set)
	}
	if err == nil {
		err = m.enterRefusal(e, op)
	}
	if err == nil {
		after, err = m.resolveAfter(e, op.After)
	}
	return h, e, after, err
}

// enterRefusal is why a job may not come to the queue that it is to be moved to.
func (m *Machine) enterRefusal(e *entry, op *core.Move) error {
	n := m.names[op.Queue]
	if op.Queue == "" || n == e.queue {
		return nil
	}
	if e.unique != (digest{}) && m.run.locked(op.Queue, e.unique) {
		return core.ErrNotUnique
	}
	if n == 0 {
		return nil
	}
	priority := e.priority
	if op.Set.Priority != nil {
		priority = *op.Set.Priority
	}
	if m.full(n, priority) {
		return core.ErrFull
	}
	if e.unique != (digest{}) {
		if h := m.holderOf(n, e.unique); h != 0 && !m.run.cancels(m.jobs.at(h).seq) {
			return core.ErrNotUnique
		}
	}
	return nil
}

// takeOut takes a job out of wherever it waits or is held, for another queue. False: it was an ephemeral one that nobody
// waits for any more, and is gone.
func (m *Machine) takeOut(h uint32, e *entry) bool {
	was := e.state
	m.detach(h, e)
	if was != core.Blocked {
		e.clear(broken) // from the time before it was buried
	}
	switch was {
	case core.Leased:
		m.timeOutRuns(e)
		m.forgetProgress(h, e)
		if m.abandoned(e) {
			m.end(h, &core.Outcome{Cause: core.Cancelled})
			return false
		}
	case core.Dead:
		m.leaveDeadSet(h, e)
	case core.Gone, core.Scheduled, core.Blocked, core.Ready, core.Retrying, core.Done:
	}
	return true
}

// enter gives a job, which is in no queue, the one that it is moved to. A type that is the name of the queue follows.
func (m *Machine) enter(h uint32, e *entry, op *core.Move) {
	if op.Queue == "" {
		return
	}
	n, q := m.enterQueue(op.Queue, e.origin, e.has(ephemeral))
	j := m.jobs.payload(h) // made anew by setFields, and nobody has seen it yet
	if op.Set.Type == nil && j.Type == j.Queue {
		j.Type = q.name
	}
	j.Queue, e.queue = q.name, n
	m.dropType(e)
	m.setType(e, j.Type)
}
