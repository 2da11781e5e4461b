package table

import (
	"broker/core"
	"broker/core/internal/record"
)

// release drops the references of a batch that is on disk.
func (s *Sealed) release() {
	b := &s.Batch
	b.Changes, b.Meta, b.Documents = reusable(b.Changes), reusable(b.Meta), reusable(b.Documents)
	s.handles = reusable(s.handles)
}

// Sealed is a batch in flight: the jobs that have changed, and other data stored with them.
type Sealed struct {
	Commit  core.Commit
	Batch   record.CommitBatch
	handles []sealedJob
}

// sealedJob is the job of a change, to evict its payload once it is on disk.
type sealedJob struct {
	handle uint32
	seq    uint64
}

// Seal closes the open batch. into is emptied and reused.
func (t *Table) Seal(into *Sealed) {
	b := &into.Batch
	b.Changes, b.Meta = b.Changes[:0], b.Meta[:0]
	into.handles = into.handles[:0]
	t.inflightBytes, t.OpenBytes = t.OpenBytes, 0
	into.Commit = t.Open
	t.Open++
	b.Changes = append(b.Changes, t.removed...)
	t.removed = reusable(t.removed)
	for _, h := range t.changed {
		if h > t.LastHandle {
			continue // removed, and the slab has shrunk
		}
		e := t.At(h)
		if !e.Has(Dirty) {
			continue // removed, or listed twice because its handle was reused
		}
		e.Clear(Dirty)
		e.Set(inflight)
		b.Changes = append(b.Changes, t.change(h, e))
		into.handles = append(into.handles, sealedJob{h, e.Seq})
	}
	t.changed = reusable(t.changed)
	b.Meta = append(b.Meta, t.metaLog...)
	t.metaLog = reusable(t.metaLog)
	b.Documents = t.sealDocuments(b.Documents)
}

// change returns the current record of a job.
func (t *Table) change(h uint32, e *Entry) record.Change {
	c := record.Change{Seq: e.Seq}
	if !e.Has(Stored) {
		c.Job = t.Payload(h)
		e.Set(Stored)
	} else if e.Has(Rewrite) {
		t.rewriteJob(h, e, &c)
	}
	if e.Has(Changed) {
		c.Status = t.status(h, e)
		e.Stored |= record.HasStatus
	}
	if e.Has(HasTransient) {
		n := t.transients[h]
		if n.Failure != nil && !e.Has(FailureStored) {
			c.Failure = n.Failure
			e.Set(FailureStored)
			e.Stored |= record.HasFailure
		}
		if n.Outcome != nil && !e.Has(OutcomeStored) {
			c.Outcome = n.Outcome
			e.Set(OutcomeStored)
			e.Stored |= record.HasOutcome
		}
		c.Timeline = t.sealEntries(h, n)
	}
	return c
}

// rewriteJob adds the changed payload of a stored job to its record.
func (t *Table) rewriteJob(h uint32, e *Entry, c *record.Change) {
	e.Stored |= record.Rewritten
	c.Job, c.KeepBody = t.Payload(h), !e.Has(NewBody)
	c.Stored, c.BodyBytes = e.Stored, int(e.BodyBytes)
	if e.Has(NewBody) {
		e.BodyBytes = uint32(len(c.Job.Body))
		e.Stored &^= record.HasBody // the size of the body tells
	}
	e.Clear(Rewrite | NewBody)
}

// status is the variable part of a record.
func (t *Table) status(h uint32, e *Entry) *record.Status {
	s := &record.Status{
		State: e.State, Requeued: e.Has(Requeued), Unlocked: e.Has(Unlocked), Broken: e.Has(Broken),
		Attempts: e.Attempts, Fails: e.Fails, ReadyAt: e.ReadyAt, ExpiresAt: e.ExpiresAt, FailedAt: t.FirstFail(h, e),
		EpochAhead: e.Epoch - e.Attempts, Entries: e.Entries, Rerun: e.Has(Rerun), LostLeases: e.LostLeases,
	}
	s.Group = t.GroupName(e)
	if t.StoreVersions {
		s.Version = t.VersionOf(h, e)
	}
	if e.State == core.Retrying {
		s.LeasedAt = e.LeasedAt
	}
	if e.State == core.Leased {
		s.LeasedAt, s.LeaseFor, s.StopAfter = e.LeasedAt, e.LeaseSpan(), t.stops[e.Seq]
		until := t.Timers.At(e.StateTimer)
		if t.StoreLeaseEnds && e.HolderKind != core.HeldByConn && until != s.LeasedAt.Add(s.LeaseFor) {
			s.LeaseUntil = until
		}
		s.Holder, s.HolderFrom = e.HolderKind, e.HolderFrom
		if e.HolderKind == core.HeldByWorker {
			s.Worker = t.Workers.NameOf(e.Holder)
		}
	}
	if x := t.Optional(h); x != nil {
		s.Waiting, s.Unstored = append(s.Waiting, x.Waiting...), t.unstoredDependencies(x)
		s.Children, s.LogChunks = uint32(x.OpenChildren), x.LogChunks
		if x.MovedFrom != "" || x.MovedAfter != 0 {
			s.Moved = &record.Moved{From: x.MovedFrom, After: x.MovedAfter}
		}
		s.Tried = x.Tried
		s.Closed = x.IsClosed
		s.ChildrenBroken = x.ChildrenBroken
	}
	if tally := t.Tally(h, e); tally != (core.Tally{}) {
		s.Tally = &tally
	}
	if e.Extra&Rehomed != 0 {
		if s.Moved == nil {
			s.Moved = &record.Moved{}
		}
		s.Moved.Queue = t.queues[e.Queue].Name
	}
	s.DoneFailed, s.KeptByQueue = e.Has(DoneFailed), e.Has(KeptByQueue)
	s.Placed = !e.Has(ScheduledOrder)
	if e.Has(HasTransient) {
		s.Progress = t.transients[h].Progress
	}
	return s
}

// gone returns the change that removes a job from the store. A large body has a key of its own, which the store
// recognizes by the size.
func (t *Table) gone(h uint32, e *Entry) record.Change {
	return record.Change{
		Seq: e.Seq, Gone: true, Stored: e.Stored, BodyBytes: int(e.BodyBytes), TimelineSlots: t.timelineSlots(h, e),
	}
}

// Committed records that a batch is durable.
func (t *Table) Committed(s *Sealed) {
	t.inflightBytes = 0
	t.Durable = s.Commit
	for _, j := range s.handles {
		if j.handle > t.LastHandle {
			continue
		}
		e := t.At(j.handle)
		if e.Seq != j.seq {
			continue
		}
		e.Clear(inflight)
		if e.Has(Dirty) {
			continue
		}
		t.evictStored(j.handle, e)
	}
	s.release()
	t.shrinkMaps()
}

// shortQueue is the number of ready jobs up to which the new jobs of a queue count as leased soon.
const shortQueue = 10_000

// evictStored drops parts of a job from memory if its record in the store is current: the payload if the cache is full,
// the failure and outcome always.
func (t *Table) evictStored(h uint32, e *Entry) {
	e.Set(PayloadStored)
	room := t.opts.CacheBytes // jobs that are not leased soon must not displace jobs that are leased next
	switch {
	case e.State != core.Ready && e.State != core.Leased:
		room /= 2
	case t.queues[e.Queue].Count[core.Ready] > shortQueue:
		room -= room / 4
	}
	if t.cached > room && t.Payload(h) != nil {
		t.SetPayload(h, nil)
	}
	if !e.Has(HasTransient) {
		return
	}
	n := t.transients[h]
	if e.Has(FailureStored) {
		n.Failure = nil
	}
	if e.Has(OutcomeStored) {
		n.Outcome = nil
	}
	n.dropWritten()
	if n.Failure == nil && n.Outcome == nil && len(n.entries) == 0 && len(n.Data) == 0 && n.Progress == nil {
		delete(t.transients, h)
		e.Clear(HasTransient)
	}
}

// EvictLeased drops the payload of a leased job if the store has it and the cache is more than half full: waiting jobs
// need the room.
func (t *Table) EvictLeased(h uint32, e *Entry) {
	if e.Has(PayloadStored) && !e.Unstored() && t.cached > t.opts.CacheBytes/2 {
		t.SetPayload(h, nil)
	}
}
