package machine

import "broker/core"

// A reply leaves once the commit that it rests on is durable. A reply to a change rests on the open batch, which holds that
// change. A reply that tells of a job, a batch, a queue's settings or a meta entry rests on the commit that holds the last
// change of it, whoever made that change: what one client has learned must survive a crash, even if another client caused it.
//
//	open batch ── Seal ──▶ in flight ── Committed ──▶ durable
//	dirty                  inflight                   neither flag
//
// At most one batch is in flight, so that two flags say which commit holds the last change of a job. Jobs, batches and
// settings that are gone have no place for a flag: a reply that does not find something rests on the last removal of
// anything.

// promise is the commit on which a reply to a change depends.
func (m *Machine) promise() core.Commit {
	if !m.opts.Await {
		return 0
	}
	return m.open
}

// changeCommit is the commit on which a reply to a change of a job depends; none if the job is not stored.
func (m *Machine) changeCommit(e *entry) core.Commit {
	if e.unstored() {
		return 0
	}
	return m.promise()
}

// pending is c, or zero once c is durable.
func (m *Machine) pending(c core.Commit) core.Commit {
	if c <= m.durable || !m.opts.Await {
		return 0
	}
	return c
}

// jobCommit is the commit on which a reply about a job depends.
func (m *Machine) jobCommit(e *entry) core.Commit {
	if e.has(dirty) {
		return m.promise()
	}
	var commit core.Commit
	if e.has(inflight) {
		commit = m.pending(m.open - 1)
	}
	if e.state == core.Blocked && e.has(hasOptional) { // that it waits for fewer jobs is in the records of the others
		commit = max(commit, m.pending(m.optionals[m.bySeq.get(e.seq)].shortened))
	}
	return commit
}

// jobGone is the commit on which a reply depends that says that a job does not exist.
func (m *Machine) jobGone() core.Commit { return m.pending(m.lastRemoval) }

// batchCommit is the commit on which a reply about a batch depends; nil: one that does not exist.
func (m *Machine) batchCommit(g *batch) core.Commit {
	if g == nil {
		return m.pending(m.lastBatchRemoval)
	}
	return m.pending(g.changedIn)
}

// metaCommit is the commit on which a reply about meta entries or settings of queues depends.
func (m *Machine) metaCommit() core.Commit { return m.pending(m.lastMeta) }

// failed refuses an operation for a reason that reveals nothing about stored data.
func (m *Machine) failed(c *client, tag uint64, err error) { m.refusedAt(c, tag, err, 0) }

// refusedAt refuses an operation for a reason that depends on a commit.
func (m *Machine) refusedAt(c *client, tag uint64, err error, commit core.Commit) {
	m.reply(c, core.Reply{Kind: core.Failed, Tag: tag, Err: err, Commit: commit})
}

// refused refuses an operation because of its job; nil: there is no such job.
func (m *Machine) refused(c *client, tag uint64, e *entry, err error) {
	r := core.Reply{Kind: core.Failed, Tag: tag, Err: err}
	if e != nil {
		r.Seq, r.Commit = e.seq, m.jobCommit(e)
	} else {
		r.Commit = m.jobGone()
	}
	m.reply(c, r)
}

// rejected reports whether an operation on a job ends here: it was refused and the client has its reply, or it belongs to a list that is
// being checked.
func (m *Machine) rejected(c *client, tag uint64, e *entry, err error) bool {
	if m.run != nil {
		return m.run.rejected(m, c, tag, e, err)
	}
	if err != nil {
		m.refused(c, tag, e, err)
	}
	return err != nil
}

// refusedBy refuses an operation because of its job, if there is one, and others.
func (m *Machine) refusedBy(c *client, tag uint64, e *entry, err error) {
	r := core.Reply{Kind: core.Failed, Tag: tag, Err: err, Commit: m.newest()}
	if e != nil {
		r.Seq = e.seq
	}
	m.reply(c, r)
}

// newest is the commit of the last change of anything.
func (m *Machine) newest() core.Commit {
	if m.Changed() {
		return m.promise()
	}
	return m.pending(m.open - 1)
}

// rejectedBy is rejected for a refusal that may be because of other jobs.
func (m *Machine) rejectedBy(c *client, tag uint64, e *entry, err error) bool {
	if m.run != nil {
		return m.run.rejected(m, c, tag, e, err)
	}
	if err != nil {
		m.refusedBy(c, tag, e, err)
	}
	return err != nil
}

// noQueue refuses an operation on an unknown queue; the last job of it may have been removed in a commit that is not durable yet.
func (m *Machine) noQueue(c *client, tag uint64) {
	m.refusedAt(c, tag, core.ErrNoQueue, max(m.metaCommit(), m.jobGone()))
}
