package machine

import (
	"fmt"

	"broker/core"
	"broker/core/internal/table"
)

// rerun makes a leased job run again when its lease ends.
func (m *Machine) rerun(c *client, op *core.Rerun) {
	h, e, err := m.findIf(op.Ref, &op.If)
	if err == nil {
		err = m.rerunRefusal(h, e)
	}
	if m.stopsHere(c, op.Tag, e, err) {
		return
	}
	if x := m.table.Optional(h); x != nil && x.StartKey != (table.Digest{}) {
		m.table.LockUnique(h, x.StartKey)
		x.StartKey = table.Digest{}
		e.Clear(table.Unlocked)
	}
	m.count(e.Origin, c.protocol, func(t *core.Totals) { t.Submitted++ })
	m.queues[e.Queue].counts.of(e.Origin).submitted++
	e.Set(table.Rerun | table.Changed)
	m.table.Touch(h, e)
	m.record(h, e, core.EventChanged, "rerun")
	m.accepted(c, op.Tag, e)
}

func (m *Machine) rerunRefusal(h uint32, e *table.Entry) error {
	switch x := m.table.Optional(h); {
	case e.Has(table.Ephemeral):
		return core.ErrInvalid
	case e.State != core.Leased:
		return core.ErrNotLeased
	case x != nil && x.StartKey != (table.Digest{}) && m.table.FindHolder(e.Queue, x.StartKey) != 0:
		return core.ErrNotUnique
	}
	return nil
}

// runAgain ends a run of a detached job that runs again: watching clients get the outcome, and the job starts like a
// new one.
func (m *Machine) runAgain(h uint32, e *table.Entry, streamed, whole *core.Outcome) {
	if e.Watchers != 0 {
		m.notifyEnd(h, streamed, whole, m.table.Promise())
	}
	if e.Has(table.HasTransient) {
		m.table.Transient(h).Failure = nil
		m.table.DropCollected(m.table.Transient(h))
	}
	m.table.SetFirstFail(h, e, 0)
	m.table.ForgetPriorFailure(h)
	m.setAttempts(h, e, 0)
	e.Fails, e.LostLeases = 0, 0
	e.ReadyAt = m.table.Now
	e.Clear(table.Requeued | table.ScheduledOrder)
	e.Set(table.Changed)
	m.table.Touch(h, e)
	m.makeReady(h, e)
	e.LeasedAt = 0
}

// errNotEnded refuses to resubmit a job that has not ended.
var errNotEnded = fmt.Errorf("%w: the job has not ended", core.ErrInvalid)

// resubmit submits a copy of a job that has ended.
func (m *Machine) resubmit(c *client, op *core.Resubmit) {
	h, e, err := m.findIf(op.Ref, &op.If)
	if err == nil && e.State != core.Done {
		err = errNotEnded
	}
	j, wanted, err := m.wholeJob(c, h, err)
	if wanted || m.stopsHere(c, op.Tag, e, err) {
		return
	}
	m.submit(c, &core.Submit{Tag: op.Tag, Job: m.copyOf(e, j)})
}

// copyOf returns a copy of a job for a new submission.
func (m *Machine) copyOf(e *table.Entry, old *core.Job) *core.Job {
	j := *old
	j.ID, j.Seq = "", 0
	j.Queue, j.Type = m.queues[e.Queue].Name, m.table.TypeOf(e)
	j.CreatedAt, j.ReadyAt, j.PriorFails, j.Failure = 0, 0, 0, nil
	j.Parent, j.After, j.Batch, j.OnBroken = 0, nil, 0, core.BrokenWaits
	j.Schedule, j.CallbackFor = "", 0
	j.Later(func(at core.Instant) core.Instant { return m.table.Now.Add(max(at.Sub(old.CreatedAt), 1)) })
	rare := j.Rares()
	rare.RerunOf = old.Seq
	j.SetRares(rare)
	return &j
}
