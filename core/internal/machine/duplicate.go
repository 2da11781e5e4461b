package machine

import (
	"broker/core"
	"broker/core/internal/table"
)

// A submission whose unique key belongs to another job joins that job, changes it, or is refused.

// replaceable decides about a submission whose key belongs to a job. If the job waits, the admission has replaces
// set.
func (m *Machine) replaceable(h uint32) (a admission) {
	e := m.table.At(h)
	a.there, a.commit, a.err = h, m.table.JobCommit(e), core.ErrNotUnique
	if e.State != core.Leased && !m.list.Settles(e.Seq) {
		a.replaces = h
	}
	return a
}

// replace changes a waiting job to the values of a submission. The job keeps its identity, and is due at the latest when the
// submission says.
func (m *Machine) replace(c *client, op *core.Submit, h uint32) {
	e, set := m.table.At(h), m.replacement(h, op)
	old, wanted, err := m.wholeJob(c, h, m.updateRefusal(e, &set))
	if wanted || m.rejected(c, op.Tag, e, err) {
		return
	}
	if e.Has(table.Ephemeral) {
		m.makeDurable(h, e)
		old = m.table.Payload(h)
	}
	e.Epoch++
	r := core.Reply{Kind: core.Submitted, Tag: op.Tag, Seq: e.Seq, Existing: true}
	if !e.Unstored() || len(op.Meta) > 0 {
		r.Commit = m.table.Promise()
	}
	m.table.WriteMeta(op.Meta)
	m.reply(c, r)
	m.setFields(h, e, old, &set)
	m.touchPayload(h, e)
	m.record(h, e, core.EventChanged, set.String())
	if op.Watch != core.WatchNone {
		m.watch(c, h, op.Watch, op.Tag, op.Deadline)
	}
}

// replacement returns the values that a job takes from a submission.
func (m *Machine) replacement(h uint32, op *core.Submit) core.JobChange {
	j := op.Job
	at := max(op.Due(m.table.At(h).CreatedAt, m.table.Now), m.table.Now)
	tags := j.Tags
	if tags == nil {
		tags = []string{}
	}
	return core.JobChange{
		Body: &core.Body{Bytes: j.Body, Format: j.Format}, Attributes: &j.Attributes, Tags: &tags, Priority: &j.Priority, ReadyAt: &at,
	}
}

// coalesce replies with the job that a submission joins.
func (m *Machine) coalesce(c *client, op *core.Submit, h uint32) {
	j, e := op.Job, m.table.At(h)
	r := core.Reply{Kind: core.Submitted, Tag: op.Tag, Seq: e.Seq, Existing: true}
	if !j.Ephemeral {
		m.makeDurable(h, e)
	}
	if r.Commit = m.table.JobCommit(e); len(op.Meta) > 0 {
		m.table.WriteMeta(op.Meta)
		r.Commit = m.table.Promise()
	}
	m.reply(c, r)
	if op.Watch != core.WatchNone {
		m.watch(c, h, op.Watch, op.Tag, op.Deadline)
	}
}

// holder returns the job that holds a key in a queue, or zero; it frees an expired key.
func (m *Machine) holder(n uint32, key string) uint32 { return m.holderOf(n, table.DigestOf(key)) }

func (m *Machine) holderOf(n uint32, key table.Digest) uint32 {
	h := m.table.FindHolder(n, key)
	if h == 0 {
		return 0
	}
	if x := m.table.Optional(h); x != nil && x.UniqueUntil != 0 && x.UniqueUntil <= m.table.Now {
		m.unlock(h)
		return 0
	}
	return h
}

// coalesceWithEnded replies to a submission that joins an ended job.
func (m *Machine) coalesceWithEnded(c *client, op *core.Submit, w *table.Window) {
	r := core.Reply{
		Kind: core.Submitted, Tag: op.Tag, Seq: w.Seq, Existing: true, Commit: m.table.WindowPending(w),
		Job: &core.Job{Seq: w.Seq, ID: w.ID, Queue: op.Job.Queue, CreatedAt: w.CreatedAt},
	}
	if len(op.Meta) > 0 {
		m.table.WriteMeta(op.Meta)
		r.Commit = m.table.Promise()
	}
	m.reply(c, r)
}
