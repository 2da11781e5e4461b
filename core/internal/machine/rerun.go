package machine

import "broker/core"

// rerun makes a leased job run again when its lease ends.
func (m *Machine) rerun(c *client, op *core.Rerun) {
	h, e, err := m.findIf(op.Ref, &op.If)
	if err == nil {
		err = m.rerunRefusal(h, e)
	}
	if m.rejected(c, op.Tag, e, err) {
		return
	}
	if x := m.optionalState(h); x != nil && x.startKey != (digest{}) {
		m.lockDigest(h, x.startKey)
		x.startKey = digest{}
		e.clear(unlocked)
	}
	m.count(e.origin, c.protocol, func(t *core.Totals) { t.Submitted++ })
	m.queues[e.queue].counts.Submitted[e.origin]++
	e.set(rerun | changed)
	m.touch(h, e)
	m.record(h, e, core.EventChanged, "rerun")
	m.accepted(c, op.Tag, e)
}

func (m *Machine) rerunRefusal(h uint32, e *entry) error {
	switch x := m.optionalState(h); {
	case e.has(ephemeral):
		return core.ErrInvalid
	case e.state != core.Leased:
		return core.ErrNotLeased
	case x != nil && x.startKey != (digest{}) && m.findLock(e.queue, x.startKey) != 0:
		return core.ErrNotUnique
	}
	return nil
}

// runAgain ends a run of a detached job that runs again: watching clients get the outcome, and the job is as new.
func (m *Machine) runAgain(h uint32, e *entry, streamed, whole *core.Outcome) {
	if e.watchers != 0 {
		m.notifyEnd(h, streamed, whole, m.promise())
	}
	if e.has(hasTransient) {
		m.transients[h].failure = nil
		m.dropCollected(m.transients[h])
	}
	m.setFirstFail(h, e, 0)
	e.attempts, e.fails, e.lostLeases = 0, 0, 0
	e.readyAt = m.now
	e.clear(requeued | scheduledOrder)
	e.set(changed)
	m.touch(h, e)
	m.makeReady(h, e)
	e.leasedAt = 0
}
