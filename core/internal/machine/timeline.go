package machine

import (
	"slices"

	"broker/core"
	"broker/core/internal/record"
)

// A job's timeline is stored entry by entry; memory has the number of its entries, and those that are not on disk yet. An
// entry that is no longer kept gives its place on disk to a newer one.

// kinds are sets of events. Those of beginTimeline start one, the other ones of timelineKinds go on with it.
const (
	beginTimeline uint32 = 1<<core.EventReleased | 1<<core.EventLeaseExpired | 1<<core.EventFailed | 1<<core.EventDead |
		1<<core.EventMoved | 1<<core.EventChanged | 1<<core.EventNoted | 1<<core.EventCancelRequested
	timelineKinds = beginTimeline | 1<<core.EventSubmitted | 1<<core.EventLeased | 1<<core.EventDone
)

// entrySize is about what an entry takes in memory and on disk beside its texts.
const entrySize = 160

// hasTimeline reports whether an event of this kind may belong in the timeline of a job.
func (e *entry) hasTimeline(kind core.EventKind) bool {
	return e.entries != 0 || beginTimeline&bit(kind) != 0 || e.has(hasOptional)
}

// follows notes an event in a job's timeline, if it belongs there.
func (m *Machine) follows(by *client, h uint32, e *entry, kind core.EventKind, detail string) {
	if timelineKinds&bit(kind) == 0 || e.entries == 0 && beginTimeline&bit(kind) == 0 && !m.submittedToFollow(h, kind) || e.has(ephemeral) {
		return
	}
	t := core.TimelineEntry{Kind: kind, Detail: detail}
	if kind == core.EventMoved || kind == core.EventSubmitted {
		t.Queue = m.queues[e.queue].name
	}
	m.addEntry(by, h, e, t)
}

// submittedToFollow reports whether this is the submission of a job that asks for a timeline.
func (m *Machine) submittedToFollow(h uint32, kind core.EventKind) bool {
	if kind != core.EventSubmitted {
		return false
	}
	x := m.optionalState(h)
	return x != nil && x.timeline != 0
}

// addEntry completes an entry and appends it to a job's timeline, which it begins if need be.
func (m *Machine) addEntry(by *client, h uint32, e *entry, t core.TimelineEntry) {
	if e.entries == 0 && t.Kind != core.EventSubmitted {
		m.reconstruct(h, e, &t)
	}
	t.At = m.now
	t.Protocol, t.Worker, t.Address = m.causer(by, e, t.Kind)
	m.appendEntry(h, e, t)
}

// reconstruct writes the beginning of a timeline: the submission and the present lease, as far as they are known still.
func (m *Machine) reconstruct(h uint32, e *entry, next *core.TimelineEntry) {
	first := core.TimelineEntry{Kind: core.EventSubmitted, At: e.createdAt, Protocol: e.origin, Queue: m.queues[e.queue].name}
	if next.Kind == core.EventMoved {
		first.Queue = next.Detail
	}
	m.appendEntry(h, e, first)
	if e.state != core.Leased || next.Kind == core.EventLeased {
		return
	}
	leased := core.TimelineEntry{Kind: core.EventLeased, At: e.leasedAt}
	leased.Protocol, leased.Worker, leased.Address = m.causer(nil, e, core.EventLeased)
	m.appendEntry(h, e, leased)
}

// causer is who has caused something: the worker that has the job, or had it just now, or the client.
func (m *Machine) causer(by *client, e *entry, kind core.EventKind) (p core.Protocol, worker, address string) {
	if by != nil {
		p, worker, address = by.protocol, workerName(by), by.address
	}
	switch {
	case kind == core.EventNoted, kind == core.EventChanged, kind == core.EventCancelRequested:
	case e.has(held):
		return e.holderFrom, m.holderName(e), m.holderAddress(by, e)
	case m.left.seq == e.seq && e.state == core.Leased: // just now
		if m.left.address != "" {
			address = m.left.address
		}
		return e.holderFrom, m.left.name, address
	}
	return p, worker, address
}

// holderAddress is the address of the connection that has a leased job. That of a worker is known while it leases only.
func (m *Machine) holderAddress(by *client, e *entry) string {
	switch {
	case e.holderKind == core.HeldByConn:
		return m.clients[e.holder].address
	case by != nil:
		return by.address
	}
	return ""
}

func (m *Machine) appendEntry(h uint32, e *entry, t core.TimelineEntry) {
	n := m.ensureTransient(h)
	t.Number = e.entries
	e.entries++
	n.entries = append(n.entries, t)
	if shape := m.timeline(h); len(n.entries) > 2*shape.Length {
		n.trimEntries(&shape)
	}
	e.set(changed)
	m.touch(h, e)
	if !e.unstored() {
		m.addOpen(entrySize + len(t.Text) + len(t.Fields))
	}
}

// trimEntries drops entries that are not kept, so that they need not be written.
func (n *transient) trimEntries(t *core.Timeline) {
	dropped := 0
	for i := range n.entries[:n.written] {
		if !t.Keeps(n.entries[i].Number) {
			dropped++
		}
	}
	t.Entries = n.entries
	t.Trim()
	n.entries, n.written = t.Entries, n.written-dropped
}

// timeline is the shape of a job's timeline, without entries.
func (m *Machine) timeline(h uint32) core.Timeline {
	t := core.Timeline{Count: int(m.jobs.at(h).entries)}
	asked := uint16(0)
	if x := m.optionalState(h); x != nil {
		asked = x.timeline
	}
	t.First, t.Length = core.TimelineShape(asked)
	return t
}

// timelineSlots is how many places on disk the timeline of a job takes.
func (m *Machine) timelineSlots(h uint32, e *entry) uint16 {
	if e.entries == 0 {
		return 0
	}
	t := m.timeline(h)
	return uint16(min(t.Count, t.Length)) //nolint:gosec // at most MaxTimeline
}

// sealEntries takes the entries that are not written yet, with their places.
func (m *Machine) sealEntries(h uint32, n *transient) (all []record.TimelineSlot) {
	if n.written == len(n.entries) {
		return nil
	}
	t := m.timeline(h)
	n.trimEntries(&t)
	for _, e := range n.entries[n.written:] {
		slot := int(e.Number)
		if slot >= t.First {
			slot = t.First + (slot-t.First)%(t.Length-t.First)
		}
		all = append(all, record.TimelineSlot{Slot: uint16(slot), Entry: e}) //nolint:gosec // less than MaxTimeline
	}
	n.written = len(n.entries)
	return all
}

// dropWritten forgets the entries that are on disk.
func (n *transient) dropWritten() {
	if n.written == len(n.entries) {
		n.entries, n.written = nil, 0
	}
}

// annotate appends a client's note to a job's timeline.
func (m *Machine) annotate(c *client, op *core.Annotate) {
	h, e, err := m.findIf(op.Ref, &op.If)
	switch {
	case err != nil:
	case e.has(ephemeral), len(op.Text)+len(op.Fields) > core.MaxNoteBytes:
		err = core.ErrInvalid
	case m.refuse != nil || m.unstored() > m.maxUnstored():
		err = core.ErrDiskFull
	}
	if m.rejected(c, op.Tag, e, err) {
		return
	}
	m.addEntry(c, h, e, core.TimelineEntry{Kind: core.EventNoted, Text: op.Text, Fields: op.Fields})
	m.emit(h, e, core.EventNoted, op.Text)
	m.accepted(c, op.Tag, e)
}

// timelineOf is what memory has of a job's timeline; the rest is on disk.
func (m *Machine) timelineOf(h uint32) *core.Timeline {
	e := m.jobs.at(h)
	if e.entries == 0 {
		return nil
	}
	t := m.timeline(h)
	if e.has(hasTransient) {
		t.Entries = slices.Clone(m.transients[h].entries)
	}
	t.Trim()
	return &t
}
