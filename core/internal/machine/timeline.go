package machine

import (
	"broker/core"
	"broker/core/internal/event"
	"broker/core/internal/table"
)

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
