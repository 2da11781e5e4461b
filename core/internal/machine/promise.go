package machine

import (
	"cmp"

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

// stopsHere reports whether an operation on a job ends here: either it was refused and the client has its reply, or it
// belongs to a list that is being checked.
func (m *Machine) stopsHere(c *client, tag uint64, e *table.Entry, err error) bool {
	return (m.list != nil || err != nil) && m.stopHere(c, tag, e, err)
}

func (m *Machine) stopHere(c *client, tag uint64, e *table.Entry, err error) bool {
	if m.list != nil {
		return m.stopsInList(c, tag, e, err)
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

// stopsHereBy is stopsHere for a refusal that other jobs may have caused.
func (m *Machine) stopsHereBy(c *client, tag uint64, e *table.Entry, err error) bool {
	if m.list != nil {
		return m.stopsInList(c, tag, e, err)
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

// Jobs that are in memory only: ephemeral jobs, for which a client waits, and jobs that a policy keeps in memory.

// inMemory reports whether a new job is kept in memory only. Stored jobs must not wait for such a job.
func (m *Machine) inMemory(op *core.Submit) bool {
	if m.policies.None() {
		return false
	}
	j := op.Job
	if m.list != nil || op.Window != 0 || len(op.Meta) > 0 || j.Ephemeral || j.Batch != 0 || j.Parent != 0 ||
		len(j.After) > 0 {
		return false
	}
	return m.policies.Unstored(j.Queue, j.Type)
}

// storeFor stores a job that was kept in memory before it enters a queue without that policy.
func (m *Machine) storeFor(h uint32, e *table.Entry, queue, typ string) {
	if e.Extra&table.MemoryOnly != 0 && !m.policies.Unstored(queue, typ) {
		e.Extra &^= table.MemoryOnly
		m.storeNow(h, e)
	}
}

// makeDurable turns an ephemeral job into a stored job, because a client was promised that it runs.
func (m *Machine) makeDurable(h uint32, e *table.Entry) {
	if !e.Has(table.Ephemeral) {
		return
	}
	e.Clear(table.Ephemeral)
	kept := *m.table.Payload(h)
	kept.Ephemeral = false
	m.table.SetPayload(h, &kept)
	m.storeNow(h, e)
}

// storeNow stores a job that was not stored so far.
func (m *Machine) storeNow(h uint32, e *table.Entry) {
	m.table.AddOpen(table.PayloadBytes(m.table.Payload(h)))
	m.table.RewriteStatus(h, e)
	m.links.NowStored(h)
}

// usualUnstored is the default limit of bytes that are admitted and not on disk yet. With a slow disk, jobs of clients
// that do not wait for replies must not fill the memory.
const usualUnstored = 1 << 30

// withDefaults replaces zero by the default.
func (o Options) withDefaults() Options {
	o.MaxUnstored = cmp.Or(o.MaxUnstored, usualUnstored)
	return o
}

// lacksRoom reports whether the data of stored jobs must not grow.
func (m *Machine) lacksRoom() bool { return m.refuse != nil || m.unstored() > m.opts.MaxUnstored }

// maxOpen is the size limit of the open batch. Beyond it, every change is refused until the batch is sealed. It is far
// below the maximum size of a commit.
func (m *Machine) maxOpen() int { return 3 * m.opts.MaxUnstored }

// Finish returns the reserved numbers that were not assigned, and stores measurements. No job may be admitted after it.
func (m *Machine) Finish() {
	if m.opts.Persist {
		m.table.AddMeta(m.meters.SaveAll)
		m.table.ReturnNumbers()
	}
}

// Sealed is a batch in flight.
type Sealed struct {
	table.Sealed
	Waiters []uint32 // slots of clients with replies that wait for it
}

// Seal closes the open batch: all changes since the last batch, with each job once, in its current state. The caller
// makes it durable, then calls Committed. into is emptied and reused.
func (m *Machine) Seal(into *Sealed) {
	b := &into.Batch
	m.table.StoreLeaseEnds, m.table.StoreVersions = m.stores(leaseEndFormat), m.stores(versionFormat)
	m.table.Seal(&into.Sealed)
	into.Waiters, m.waitsOpen = append(into.Waiters[:0], m.waitsOpen...), m.waitsOpen[:0]
	b.Meta = m.schedules.Seal(m.batches.Seal(b.Meta))
	if rates := m.limits.SealRates(b.Meta); m.stores(ratesFormat) {
		b.Meta = rates
	}
	if m.statsDirty && (len(b.Changes) > 0 || len(b.Meta) > 0 || m.table.Open%64 == 0) {
		b.Meta = m.sealStats(b.Meta)
	}
	if len(b.Changes) > 0 || len(b.Meta) > 0 {
		b.Meta = m.meters.Seal(m.table.Now, b.Meta)
	}
}

// Committed records that a batch is durable. If the cache is full, it evicts payloads that are now in the store. It
// adds the clients whose later replies depend on the batch to s.Waiters.
func (m *Machine) Committed(s *Sealed) {
	for _, slot := range m.waitsInflight {
		if c := m.clients[slot]; c != nil && c.waitsOpen != s.Commit {
			s.Waiters = append(s.Waiters, slot)
		}
	}
	m.waitsInflight = m.waitsInflight[:0]
	m.table.Committed(&s.Sealed)
	m.logs.Committed()
}
