package machine

import (
	"broker/core"
	"broker/core/internal/event"
	"broker/core/internal/table"
)

// subscribe adds a subscription of a client.
func (m *Machine) subscribe(c *client, op *core.Subscribe) {
	if c.subscriptions == core.MaxSubscriptions || !m.hub.Subscribe(c.slot, op) {
		m.failed(c, op.Tag, core.ErrInvalid)
		return
	}
	c.subscriptions++
	m.reply(c, core.Reply{Kind: core.Accepted, Tag: op.Tag})
}

// record adds an event to the job's timeline and publishes it, after the decision that caused it. Without a timeline
// and subscriptions, it costs two comparisons.
func (m *Machine) record(h uint32, e *table.Entry, kind core.EventKind, detail string) {
	if hasTimeline(e, kind) || m.hub.Wanted(kind) {
		m.recordWanted(h, e, kind, detail)
	}
}

func (m *Machine) recordWanted(h uint32, e *table.Entry, kind core.EventKind, detail string) {
	if hasTimeline(e, kind) {
		m.addToTimeline(m.actor, h, e, kind, detail)
	}
	m.emit(h, e, kind, detail)
}

// emit publishes an event of a job.
func (m *Machine) emit(h uint32, e *table.Entry, kind core.EventKind, detail string) {
	if m.hub.Wanted(kind) {
		m.emitWanted(h, e, kind, detail)
	}
}

func (m *Machine) emitWanted(h uint32, e *table.Entry, kind core.EventKind, detail string) {
	m.publishJob(h, e, core.Event{Kind: kind, Detail: detail})
}

// recordRunEnd records the end of a run, and of the job unless it runs again.
func (m *Machine) recordRunEnd(h uint32, e *table.Entry, kind core.EventKind, detail string) {
	if e.Has(table.Rerun) {
		m.record(h, e, kind, detail)
	} else {
		m.recordFinal(h, e, kind, detail)
	}
}

// recordFinal adds the last event of a job to its timeline and publishes it.
func (m *Machine) recordFinal(h uint32, e *table.Entry, kind core.EventKind, detail string) {
	if hasTimeline(e, kind) {
		m.addToTimeline(m.actor, h, e, kind, detail)
	}
	m.emitFinal(h, e, kind, detail)
}

// emitFinal publishes the last event of a job.
func (m *Machine) emitFinal(h uint32, e *table.Entry, kind core.EventKind, detail string) {
	m.noteFinished(h, e, kind, detail)
	if m.hub.Wanted(kind) {
		m.publishJob(h, e, core.Event{Kind: kind, Detail: detail, Over: true})
	}
}

// publishJob sends an event of a job to its subscribers.
func (m *Machine) publishJob(h uint32, e *table.Entry, ev core.Event) {
	ev.Seq, ev.Queue, ev.Type, ev.ID = e.Seq, m.queues[e.Queue].Name, m.table.TypeOf(e), m.identity(h, e)
	if m.actor != nil {
		ev.Protocol = m.actor.protocol
	}
	if e.Has(table.Traced) {
		ev.Trace = m.table.TraceOf(h)
	}
	switch {
	case e.Has(table.Held):
		ev.Protocol, ev.Worker = e.HolderFrom, m.holderName(e)
		if ev.Kind == core.EventLeased {
			ev.Since = m.waited
		}
	case m.lastHolder.seq == e.Seq:
		if e.State == core.Leased { // just now
			ev.Protocol, ev.Worker = e.HolderFrom, m.lastHolder.name
		}
		ev.Since, m.lastHolder.leasedAt = m.lastHolder.leasedAt, 0
	}
	m.publish(&ev, m.eventCommit(e, ev.Kind))
}

// eventCommit returns the commit that an event of a job depends on.
func (m *Machine) eventCommit(e *table.Entry, kind core.EventKind) core.Commit {
	switch {
	case e.Unstored():
		return 0
	case kind == core.EventReady, kind == core.EventLeased, kind == core.EventProgress, kind == core.EventReleased,
		kind == core.EventLeaseExpired: // possibly not stored at all
		return m.table.JobCommit(e)
	}
	return m.table.Promise()
}

// lastHolder is the holder of a job while a decision ends its lease.
type lastHolder struct {
	seq           uint64
	name, address string
	leasedAt      core.Instant // zero once an event has reported it
}

// identity returns the job's Identity; empty if it is only in the store.
func (m *Machine) identity(h uint32, e *table.Entry) string {
	if e.ID == (table.Digest{}) {
		return core.MintedID(e.Seq, e.CreatedAt)
	}
	if j := m.table.Payload(h); j != nil {
		return j.ID
	}
	return ""
}

// holderName returns the worker of a leased job: its id, or the name of its connection.
func (m *Machine) holderName(e *table.Entry) string {
	switch e.HolderKind {
	case core.HeldByWorker:
		return m.table.Workers.NameOf(e.Holder)
	case core.HeldByConn:
		return m.clients[e.Holder].name
	case core.HeldByNobody:
	}
	return ""
}

// queueEvent publishes an event of a queue.
func (m *Machine) queueEvent(q *jobQueue, kind core.EventKind) {
	if !m.hub.Wanted(kind) {
		return
	}
	ev := core.Event{Kind: kind, Queue: q.Name}
	if m.actor != nil {
		ev.Protocol = m.actor.protocol
	}
	m.publish(&ev, m.table.Promise())
}

// worksNow records that a client requests jobs.
func (m *Machine) worksNow(c *client) {
	if !c.works {
		c.works = true
		m.workerEvent(c, core.EventWorkerCame)
	}
}

func (m *Machine) workerEvent(c *client, kind core.EventKind) {
	if m.hub.Wanted(kind) {
		m.publish(&core.Event{Kind: kind, Protocol: c.protocol, Worker: workerName(c), Detail: c.address}, 0)
	}
}

// workerName returns the id of a client's worker, or the name of the client.
func workerName(c *client) string {
	if c.worker != "" {
		return c.worker
	}
	return c.name
}

// publish sends an event to its subscribers.
func (m *Machine) publish(ev *core.Event, commit core.Commit) {
	ev.At = m.table.Now
	m.hub.Publish(ev, func(slot uint32, tag uint64, own core.Event) {
		m.reply(m.clients[slot],
			core.Reply{Kind: core.EventReply, Tag: tag, Seq: own.Seq, Commit: commit, Answer: &core.Answer{Event: own}})
	})
}

// A job's timeline is stored entry by entry. Only the number of entries, and entries that are not on disk yet, are in
// memory. A newer entry replaces an entry on disk that is no longer kept.

// Sets of event kinds. Events in beginTimeline start a timeline; the other events in timelineKinds only continue one.
const (
	beginTimeline uint32 = 1<<core.EventReleased | 1<<core.EventLeaseExpired | 1<<core.EventFailed | 1<<core.EventDead |
		1<<core.EventMoved | 1<<core.EventChanged | 1<<core.EventCancelRequested
	timelineKinds = beginTimeline | 1<<core.EventSubmitted | 1<<core.EventLeased | 1<<core.EventDone |
		1<<core.EventCancelled | 1<<core.EventExpired
)

// addToTimeline adds an event to a job's timeline, if it belongs there.
func (m *Machine) addToTimeline(by *client, h uint32, e *table.Entry, kind core.EventKind, detail string) {
	if timelineKinds&event.Bit(kind) == 0 ||
		e.Entries == 0 && beginTimeline&event.Bit(kind) == 0 && !m.requestsTimeline(h, kind) || e.Has(table.Ephemeral) {
		return
	}
	t := core.TimelineEntry{Kind: kind, Detail: detail}
	if kind == core.EventMoved || kind == core.EventSubmitted {
		t.Queue = m.queues[e.Queue].Name
	}
	m.addEntry(by, h, e, t)
}

// requestsTimeline reports whether this is the submission of a job that asks for a timeline.
func (m *Machine) requestsTimeline(h uint32, kind core.EventKind) bool {
	if kind != core.EventSubmitted {
		return false
	}
	x := m.table.Optional(h)
	return x != nil && x.Timeline != 0
}

// addEntry completes an entry and appends it to a job's timeline. It begins the timeline if necessary.
func (m *Machine) addEntry(by *client, h uint32, e *table.Entry, t core.TimelineEntry) {
	if e.Entries == 0 && t.Kind != core.EventSubmitted {
		m.reconstruct(h, e, &t)
	}
	t.At = m.table.Now
	t.Protocol, t.Worker, t.Address = m.causer(by, e, t.Kind)
	t.Version = m.versionIn(h, e, t.Kind)
	m.table.AppendEntry(h, e, t)
}

// reconstruct writes the beginning of a timeline: the submission and the current lease, as far as they are still known.
func (m *Machine) reconstruct(h uint32, e *table.Entry, next *core.TimelineEntry) {
	first := core.TimelineEntry{
		Kind: core.EventSubmitted, At: e.CreatedAt, Protocol: e.Origin, Queue: m.queues[e.Queue].Name,
	}
	if next.Kind == core.EventMoved {
		first.Queue = next.Detail
	}
	m.table.AppendEntry(h, e, first)
	if e.State != core.Leased || next.Kind == core.EventLeased {
		return
	}
	leased := core.TimelineEntry{Kind: core.EventLeased, At: e.LeasedAt}
	leased.Protocol, leased.Worker, leased.Address = m.causer(nil, e, core.EventLeased)
	leased.Version = m.versionIn(h, e, core.EventLeased)
	m.table.AppendEntry(h, e, leased)
}

// causer returns who has caused an event: the worker that has the job or had it until now, or the client.
func (m *Machine) causer(by *client, e *table.Entry, kind core.EventKind) (p core.Protocol, worker, address string) {
	if by != nil {
		p, worker, address = by.protocol, workerName(by), by.address
	}
	switch {
	case kind == core.EventChanged, kind == core.EventCancelRequested:
	case e.Has(table.Held):
		return e.HolderFrom, m.holderName(e), m.holderAddress(by, e)
	case m.lastHolder.seq == e.Seq && e.State == core.Leased: // just now
		if m.lastHolder.address != "" {
			address = m.lastHolder.address
		}
		return e.HolderFrom, m.lastHolder.name, address
	}
	return p, worker, address
}

// endOfLease are the events that end a lease, and the lease itself.
const endOfLease = 1<<core.EventLeased | 1<<core.EventReleased | 1<<core.EventLeaseExpired | 1<<core.EventFailed |
	1<<core.EventDone

// versionIn returns the version of the worker's program for an entry of a timeline.
func (m *Machine) versionIn(h uint32, e *table.Entry, kind core.EventKind) string {
	if endOfLease&event.Bit(kind) == 0 || e.State != core.Leased || !m.stores(versionFormat) {
		return ""
	}
	return m.table.LastVersion(h)
}

// holderAddress returns the address of the connection that has a leased job. The address of a worker with an id is
// known only during the lease operation.
func (m *Machine) holderAddress(by *client, e *table.Entry) string {
	switch {
	case e.HolderKind == core.HeldByConn:
		return m.clients[e.Holder].address
	case by != nil:
		return by.address
	}
	return ""
}

// hasTimeline reports whether an event of this kind may belong in the timeline of a job.
func hasTimeline(e *table.Entry, kind core.EventKind) bool {
	return e.Entries != 0 || beginTimeline&event.Bit(kind) != 0 || e.Has(table.HasOptional)
}
