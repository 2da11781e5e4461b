package machine

import (
	"broker/core"
	"broker/core/internal/table"
)

// A reply leaves once the commit that it depends on is durable. A reply to a change depends on the open batch, which
// holds that change. A reply that shows a job, a batch, a queue's settings or a meta entry depends on the commit with
// the last change of it, even if another client made that change: everything that a client has learned must survive a
// crash.
//
//	open batch ── Seal ──▶ in flight ── Committed ──▶ durable
//	dirty                  inflight                   neither flag
//
// At most one batch is in flight, so two flags are enough to tell which commit holds the last change of a job. Jobs,
// batches and settings that are gone have no flags. So a reply that does not find something depends on the last
// removal of anything.

// failed refuses an operation for a reason that reveals nothing about stored data.
func (m *Machine) failed(c *client, tag uint64, err error) { m.refusedAt(c, tag, err, 0) }

// refusedAt refuses an operation for a reason that depends on a commit.
func (m *Machine) refusedAt(c *client, tag uint64, err error, commit core.Commit) {
	m.reply(c, core.Reply{Kind: core.Failed, Tag: tag, Err: err, Commit: commit})
}

// settingChanged replies to a change of a limit, a policy or a schedule, which has failed if err is not nil.
func (m *Machine) settingChanged(c *client, tag uint64, commit core.Commit, err error) {
	if err != nil {
		m.refusedAt(c, tag, err, m.table.MetaCommit())
		return
	}
	m.reply(c, core.Reply{Kind: core.Accepted, Tag: tag, Commit: commit})
}

// refused refuses an operation because of its job; nil: there is no such job.
func (m *Machine) refused(c *client, tag uint64, e *table.Entry, err error) {
	r := core.Reply{Kind: core.Failed, Tag: tag, Err: err}
	if e != nil {
		r.Seq, r.Commit = e.Seq, m.table.JobCommit(e)
	} else {
		r.Commit = m.table.JobGone()
	}
	m.reply(c, r)
}

// rejected reports whether an operation on a job ends here: either it was refused and the client has its reply, or it
// belongs to a list that is being checked.
func (m *Machine) rejected(c *client, tag uint64, e *table.Entry, err error) bool {
	return (m.list != nil || err != nil) && m.reject(c, tag, e, err)
}

func (m *Machine) reject(c *client, tag uint64, e *table.Entry, err error) bool {
	if m.list != nil {
		return m.rejectedInList(c, tag, e, err)
	}
	m.refused(c, tag, e, err)
	return true
}

// refusedBy refuses an operation because of its job, if there is one, and other jobs.
func (m *Machine) refusedBy(c *client, tag uint64, e *table.Entry, err error) {
	r := core.Reply{Kind: core.Failed, Tag: tag, Err: err, Commit: m.newest()}
	if e != nil {
		r.Seq = e.Seq
	}
	m.reply(c, r)
}

// newest is the commit of the last change of anything.
func (m *Machine) newest() core.Commit {
	if m.Changed() {
		return m.table.Promise()
	}
	return m.table.Pending(m.table.Open - 1)
}

// rejectedBy is rejected for a refusal that other jobs may have caused.
func (m *Machine) rejectedBy(c *client, tag uint64, e *table.Entry, err error) bool {
	if m.list != nil {
		return m.rejectedInList(c, tag, e, err)
	}
	if err != nil {
		m.refusedBy(c, tag, e, err)
	}
	return err != nil
}

// noQueue refuses an operation on an unknown queue. The last job of the queue may have been removed in a commit that is
// not durable yet.
func (m *Machine) noQueue(c *client, tag uint64) {
	m.refusedAt(c, tag, core.ErrNoQueue, max(m.table.MetaCommit(), m.table.JobGone()))
}
