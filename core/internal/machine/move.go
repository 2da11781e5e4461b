package machine

import "broker/core"

// moveJob moves a job to a queue, from any state.
func (m *Machine) moveJob(c *client, op *core.Move) {
	h, e, after, err := m.moveRefusal(c, op)
	j, wanted, err := m.wholeJob(c, h, err)
	if wanted || m.rejectedBy(c, op.Tag, e, err) {
		return
	}
	e.epoch++
	if op.Queue != "" {
		typ := m.typeOf(e)
		if op.Set.Type != nil {
			typ = *op.Set.Type
		} else if typ == m.queues[e.queue].name {
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
	from := e.queue
	m.move(e, core.Gone) // it leaves the counters of one queue and enters those of another
	m.enter(h, e, op)
	if op.After != nil {
		m.unlinkAfter(h, e)
		m.waitFor(h, e, after)
	}
	e.readyAt, e.lostLeases = max(op.ReadyAt, m.now), 0
	e.clear(scheduledOrder | requeued)
	m.record(h, e, core.EventMoved, m.queues[from].name)
	if x := m.optionalState(h); x != nil && len(x.waiting) > 0 || e.has(broken) {
		m.move(e, core.Blocked)
		m.enlist(h, e)
	} else {
		m.schedule(h, e)
	}
	m.dropIdle(from)
}

// moveRefusal finds the job and the dependencies of a move, or says why it is refused.
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

// enterRefusal is why the new queue refuses a job.
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
	priority := e.priority()
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

// takeOut removes a job from its list or holder, to move it to a queue. False: it was ephemeral and no client waits for it, or its
// worker was asked to stop and gives it back, so it is gone.
func (m *Machine) takeOut(h uint32, e *entry, to string) bool {
	was := e.state
	m.detach(h, e)
	if was != core.Blocked {
		e.clear(broken) // from before it was buried
	}
	switch was {
	case core.Leased:
		m.tallied(h, e, tallyMoves, func(t *core.Tally) { t.Releases++ })
		m.timeOutRuns(e)
		m.forgetProgress(h, e)
		if m.abandoned(e) {
			m.end(h, &core.Outcome{Cause: core.Cancelled})
			return false
		}
		if e.has(stopping) && (to == "" || to == m.queues[e.queue].name) {
			m.endStopped(h, e.holderFrom)
			return false
		}
	case core.Dead:
		m.leaveDeadSet(h, e)
	case core.Gone, core.Scheduled, core.Blocked, core.Ready, core.Retrying, core.Done:
	}
	return true
}

// enter puts a job into its new queue. If its type was the name of the queue, it follows.
func (m *Machine) enter(h uint32, e *entry, op *core.Move) {
	if op.Queue == "" {
		return
	}
	m.leaveLane(h)
	m.leaveOrder(h, e)
	n, q := m.enterQueue(op.Queue, e.origin, e.has(ephemeral))
	j := m.jobs.payload(h) // a copy made by setFields that no one has seen yet
	typ := j.Type
	if j.InQueue(q.name); op.Set.Type != nil {
		j.Type = typ
	}
	e.queue = n
	m.dropType(e)
	m.setType(e, j.Type)
	m.joinLaneOf(h, j)
}
