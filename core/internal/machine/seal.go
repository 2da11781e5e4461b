package machine

import (
	"encoding/binary"

	"broker/core"
	"broker/core/internal/record"
)

// seqBlock is how many numbers are reserved in advance in the store, so that none is reused after a crash.
const seqBlock = 1 << 24

// reserve adds a reservation of further numbers to the open batch, long before they are needed.
func (m *Machine) reserve() {
	if m.nextSeq+seqBlock/2 < m.reserved || !m.opts.Persist {
		return
	}
	m.reserved = m.nextSeq + seqBlock
	m.metaLog = append(m.metaLog, core.MetaEntry{Name: seqMeta, Value: binary.BigEndian.AppendUint64(nil, m.reserved)})
}

// Finish returns the reserved numbers that were not assigned, and stores measurements; nothing may be admitted after it.
func (m *Machine) Finish() {
	if !m.opts.Persist {
		return
	}
	m.metaLog = m.meters.SaveAll(m.metaLog)
	if m.reserved != m.nextSeq {
		m.reserved = m.nextSeq
		m.metaLog = append(m.metaLog, core.MetaEntry{Name: seqMeta, Value: binary.BigEndian.AppendUint64(nil, m.reserved)})
	}
}

// Sealed is a batch in flight.
type Sealed struct {
	Commit  core.Commit
	Batch   record.CommitBatch
	Waiters []uint32 // slots of clients with replies that wait for it
	handles []sealedJob
}

// sealedJob is the job of a change, to evict its payload once it is on disk.
type sealedJob struct {
	handle uint32
	seq    uint64
}

// Seal closes the open batch: everything that has changed since the last one, each job once, in its present state. The caller
// makes it durable, then calls Committed. into is emptied and reused.
func (m *Machine) Seal(into *Sealed) {
	b := &into.Batch
	b.Changes, b.Meta = b.Changes[:0], b.Meta[:0]
	into.handles = into.handles[:0]
	m.inflightBytes, m.openBytes = m.openBytes, 0
	into.Commit = m.open
	m.open++
	into.Waiters, m.waitsOpen = append(into.Waiters[:0], m.waitsOpen...), m.waitsOpen[:0]
	b.Changes = append(b.Changes, m.removed...)
	m.removed = reusable(m.removed)
	for _, h := range m.changed {
		if h > m.jobs.next {
			continue // removed, and the slab has shrunk
		}
		e := m.jobs.at(h)
		if !e.has(dirty) {
			continue // removed, or listed twice because its handle was reused
		}
		e.clear(dirty)
		e.set(inflight)
		b.Changes = append(b.Changes, m.change(h, e))
		into.handles = append(into.handles, sealedJob{h, e.seq})
	}
	m.changed = reusable(m.changed)
	b.Meta = append(b.Meta, m.metaLog...)
	m.metaLog = reusable(m.metaLog)
	b.Documents = m.sealDocuments(b.Documents)
	b.Meta = m.sealRates(m.sealSchedules(m.sealBatches(b.Meta)))
	if m.statsDirty && (len(b.Changes) > 0 || len(b.Meta) > 0 || m.open%64 == 0) {
		b.Meta = m.sealStats(b.Meta)
	}
	if len(b.Changes) > 0 || len(b.Meta) > 0 {
		b.Meta = m.meters.Seal(m.now, b.Meta)
	}
}

// change is the present record of a job.
func (m *Machine) change(h uint32, e *entry) record.Change {
	c := record.Change{Seq: e.seq}
	if !e.has(stored) {
		c.Job = m.jobs.payload(h)
		e.set(stored)
	} else if e.has(rewrite) {
		m.rewriteJob(h, e, &c)
	}
	if e.has(changed) {
		c.Status = m.status(h, e)
		e.stored |= record.HasStatus
	}
	if e.has(hasTransient) {
		n := m.transients[h]
		if n.failure != nil && !e.has(failureStored) {
			c.Failure = n.failure
			e.set(failureStored)
			e.stored |= record.HasFailure
		}
		if n.outcome != nil && !e.has(outcomeStored) {
			c.Outcome = n.outcome
			e.set(outcomeStored)
			e.stored |= record.HasOutcome
		}
		c.Timeline = m.sealEntries(h, n)
	}
	return c
}

// rewriteJob adds the changed payload of a stored job to its record.
func (m *Machine) rewriteJob(h uint32, e *entry, c *record.Change) {
	e.stored |= record.Rewritten
	c.Job, c.KeepBody = m.jobs.payload(h), !e.has(newBody)
	c.Stored, c.BodyBytes = e.stored, int(e.bodyBytes)
	if e.has(newBody) {
		e.bodyBytes = uint32(len(c.Job.Body))
		e.stored &^= record.HasBody // its size says so
	}
	e.clear(rewrite | newBody)
}

// status is the variable part of a record.
func (m *Machine) status(h uint32, e *entry) *record.Status {
	s := &record.Status{
		State: e.state, Requeued: e.has(requeued), Unlocked: e.has(unlocked), Broken: e.has(broken),
		Attempts: e.attempts, Fails: e.fails, ReadyAt: e.readyAt, ExpiresAt: e.expiresAt, FailedAt: m.firstFail(h, e),
		EpochAhead: e.epoch - e.attempts, Entries: e.entries, Rerun: e.has(rerun), LostLeases: e.lostLeases,
	}
	s.Group = m.groupName(e)
	if e.state == core.Retrying {
		s.LeasedAt = e.leasedAt
	}
	if e.state == core.Leased {
		s.LeasedAt, s.LeaseFor, s.StopAfter = e.leasedAt, e.leaseSpan(), m.stops[e.seq]
		s.Holder, s.HolderFrom = e.holderKind, e.holderFrom
		if e.holderKind == core.HeldByWorker {
			s.Worker = m.workers.names[e.holder]
		}
	}
	if x := m.optionalState(h); x != nil {
		s.Waiting, s.Unstored = append(s.Waiting, x.waiting...), m.unstoredDependencies(x)
		s.Children, s.LogChunks = uint32(x.openChildren), x.logChunks
		s.Tried = x.tried
		s.Closed = x.isClosed
		s.ChildrenBroken = x.childrenBroken
	}
	if t := m.tally(h, e); t != (core.Tally{}) {
		s.Tally = &t
	}
	if e.words&rehomed != 0 {
		s.Queue = m.queues[e.queue].name
	}
	s.DoneFailed, s.KeptByQueue = e.has(doneFailed), e.has(keptByQueue)
	s.Placed = !e.has(scheduledOrder)
	if e.has(hasTransient) {
		if n := m.transients[h]; n.progress.UpdatedAt != 0 {
			p := n.progress
			s.Progress = &p
		}
	}
	return s
}

// gone is the change that removes a job from the store. A large body has its own key, which the store knows by the size it was
// given.
func (m *Machine) gone(h uint32, e *entry) record.Change {
	return record.Change{
		Seq: e.seq, Gone: true, Stored: e.stored, BodyBytes: int(e.bodyBytes), TimelineSlots: m.timelineSlots(h, e),
	}
}

// Committed records that a batch is durable and evicts what the store now has, as far as the cache is full. It adds the clients
// that have since asked about the batch to s.Waiters.
func (m *Machine) Committed(s *Sealed) {
	m.inflightBytes = 0
	m.durable = s.Commit
	for _, slot := range m.waitsInflight {
		if c := m.clients[slot]; c != nil && c.waitsOpen != s.Commit {
			s.Waiters = append(s.Waiters, slot)
		}
	}
	m.waitsInflight = m.waitsInflight[:0]
	if len(m.leftLogs) > 0 {
		m.forgetLogs()
	}
	for _, j := range s.handles {
		if j.handle > m.jobs.next {
			continue
		}
		e := m.jobs.at(j.handle)
		if e.seq != j.seq {
			continue
		}
		e.clear(inflight)
		if e.has(dirty) {
			continue
		}
		m.evictStored(j.handle, e)
	}
	s.release()
	m.shrinkMaps()
}

// evictStored drops from memory what the store has of a job whose record is current: its payload if the cache is full, its failure and
// outcome always.
func (m *Machine) evictStored(h uint32, e *entry) {
	e.set(payloadStored)
	room := m.opts.CacheBytes
	if e.state != core.Ready && e.state != core.Leased {
		room /= 2 // jobs that are not taken soon must not displace those taken next
	}
	if m.cached > room && m.jobs.payload(h) != nil {
		m.setPayload(h, nil)
	}
	if !e.has(hasTransient) {
		return
	}
	n := m.transients[h]
	if e.has(failureStored) {
		n.failure = nil
	}
	if e.has(outcomeStored) {
		n.outcome = nil
	}
	n.dropWritten()
	if n.failure == nil && n.outcome == nil && len(n.entries) == 0 && len(n.data) == 0 && n.progress.UpdatedAt == 0 {
		delete(m.transients, h)
		e.clear(hasTransient)
	}
}

// evictLeased drops the payload of a leased job if the store has it and the cache is more than half full: waiting jobs need the
// room.
func (m *Machine) evictLeased(h uint32, e *entry) {
	if e.has(payloadStored) && !e.unstored() && m.cached > m.opts.CacheBytes/2 {
		m.setPayload(h, nil)
	}
}
