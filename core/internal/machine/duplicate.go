package machine

import "broker/core"

// A submission whose unique key another job holds: it joins that job, or changes it, or is refused.

// replaceable decides about a submission whose key a job holds: an admission with replaces, if the job waits.
func (m *Machine) replaceable(h uint32) (a admission) {
	e := m.jobs.at(h)
	a.there, a.commit, a.err = h, m.jobCommit(e), core.ErrNotUnique
	if e.state != core.Leased && (m.run == nil || !m.run.settled[e.seq]) {
		a.replaces = h
	}
	return a
}

// replace gives a waiting job what a submission brings. The job keeps its identity, and is due no later than the submission says.
func (m *Machine) replace(c *client, op *core.Submit, h uint32) {
	e, set := m.jobs.at(h), m.replacement(h, op)
	old, wanted, err := m.wholeJob(c, h, m.updateRefusal(e, &set))
	if wanted || m.rejected(c, op.Tag, e, err) {
		return
	}
	if e.has(ephemeral) {
		m.makeDurable(h, e)
		old = m.jobs.payload(h)
	}
	e.epoch++
	r := core.Reply{Kind: core.Submitted, Tag: op.Tag, Seq: e.seq, Existing: true}
	if !e.unstored() || len(op.Meta) > 0 {
		r.Commit = m.promise()
	}
	m.writeMeta(op.Meta)
	m.reply(c, r)
	m.setFields(h, e, old, &set)
	m.touchPayload(h, e)
	m.record(h, e, core.EventChanged, set.String())
	if op.Watch != core.WatchNone {
		m.watch(c, h, op.Watch, op.Tag, op.Deadline)
	}
}

// replacement is what a job takes from a submission.
func (m *Machine) replacement(h uint32, op *core.Submit) core.JobChange {
	j := op.Job
	at := max(op.Due(m.jobs.at(h).createdAt, m.now), m.now)
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
	j, e := op.Job, m.jobs.at(h)
	r := core.Reply{Kind: core.Submitted, Tag: op.Tag, Seq: e.seq, Existing: true}
	if !j.Ephemeral {
		m.makeDurable(h, e)
	}
	if r.Commit = m.jobCommit(e); len(op.Meta) > 0 {
		m.writeMeta(op.Meta)
		r.Commit = m.promise()
	}
	m.reply(c, r)
	if op.Watch != core.WatchNone {
		m.watch(c, h, op.Watch, op.Tag, op.Deadline)
	}
}

// holder is the job that holds a key in a queue, or zero; it frees an expired key.
func (m *Machine) holder(n uint32, key string) uint32 { return m.holderOf(n, m.hash.text(key)) }

func (m *Machine) holderOf(n uint32, key digest) uint32 {
	h := m.findLock(n, key)
	if h == 0 {
		return 0
	}
	if x := m.optionalState(h); x != nil && x.uniqueUntil != 0 && x.uniqueUntil <= m.now {
		m.unlock(h)
		return 0
	}
	return h
}
