package machine

import (
	"broker/core"
	"broker/core/internal/table"
)

// addDependencies adds dependencies to a blocked, scheduled or ready job.
func (m *Machine) addDependencies(c *client, op *core.AddDependencies) {
	h, e, err := m.findIf(op.Ref, &op.If)
	var after []uint64
	if err == nil {
		after, err = m.dependenciesRefusal(h, e, op.After)
	}
	if m.rejectedBy(c, op.Tag, e, err) {
		return
	}
	m.links.WaitFor(h, e, after)
	x := m.table.EnsureOptional(h)
	if e.State != core.Blocked && (len(x.Waiting) > 0 || e.Has(table.Broken)) {
		m.detach(h, e)
		m.move(e, core.Blocked)
		m.table.Enlist(h, e)
	}
	m.dependenciesChanged(c, op.Tag, h, e)
}

// removeDependencies removes dependencies of a blocked job.
func (m *Machine) removeDependencies(c *client, op *core.RemoveDependencies) {
	h, e, err := m.findIf(op.Ref, &op.If)
	if err == nil {
		err = m.waitingRefusal(h, e)
	}
	if m.rejected(c, op.Tag, e, err) {
		return
	}
	if e.State == core.Blocked {
		m.dropDependencies(h, e, op)
	}
	m.dependenciesChanged(c, op.Tag, h, e)
}

// dropDependencies removes dependencies from the list of a blocked job.
func (m *Machine) dropDependencies(h uint32, e *table.Entry, op *core.RemoveDependencies) {
	x := m.table.EnsureOptional(h)
	if op.All {
		e.Clear(table.Broken)
		m.links.StopWaiting(e, x, func(uint64) bool { return true })
		return
	}
	drop := make(map[uint64]bool, len(op.After))
	for _, ref := range op.After {
		if p := m.table.Find(ref); p != 0 {
			drop[m.table.At(p).Seq] = true
		}
	}
	m.links.StopWaiting(e, x, func(seq uint64) bool { return drop[seq] })
}

// dependenciesChanged releases the job if it has no dependencies left, and replies.
func (m *Machine) dependenciesChanged(c *client, tag uint64, h uint32, e *table.Entry) {
	x := m.table.EnsureOptional(h)
	e.Epoch++
	e.Set(table.Changed)
	m.table.Touch(h, e)
	m.record(h, e, core.EventChanged, "dependencies")
	r := core.Reply{Kind: core.Accepted, Tag: tag, Seq: e.Seq, N: len(x.Waiting), Lease: core.Grant{Epoch: e.Epoch}}
	r.Commit = m.table.ChangeCommit(e)
	m.reply(c, r)
	if e.State == core.Blocked && len(x.Waiting) == 0 && !e.Has(table.Broken) {
		m.unblock(h, e)
	}
}

// waitingRefusal returns why the dependencies of a job cannot change.
func (m *Machine) waitingRefusal(h uint32, e *table.Entry) error {
	switch e.State {
	case core.Blocked, core.Scheduled, core.Ready:
	case core.Done:
		return core.ErrFinished
	case core.Gone, core.Leased, core.Retrying, core.Dead:
		return core.ErrInvalid
	}
	if e.Has(table.Ephemeral) || m.heldByBatch(h, e) {
		return core.ErrInvalid
	}
	return nil
}

// dependenciesRefusal returns the new dependencies of a job, or why they are not allowed.
func (m *Machine) dependenciesRefusal(h uint32, e *table.Entry, after []core.Ref) ([]uint64, error) {
	if err := m.waitingRefusal(h, e); err != nil {
		return nil, err
	}
	if x := m.table.Optional(h); x != nil && len(x.Waiting)+len(after) > core.MaxAfter {
		return nil, core.ErrInvalid
	}
	return m.links.Resolve(e, after)
}

// heldByBatch reports whether a job is a callback that its batch has not released.
func (m *Machine) heldByBatch(h uint32, e *table.Entry) bool {
	x := m.table.Optional(h)
	return e.State == core.Blocked && x != nil && x.CallbackFor != 0
}

// unblock makes a job scheduled or ready.
func (m *Machine) unblock(h uint32, e *table.Entry) {
	m.table.Unlist(h, e)
	if e.ReadyAt < m.table.Now {
		e.ReadyAt = m.table.Now
		e.Clear(table.ScheduledOrder)
	}
	m.schedule(h, e)
}
