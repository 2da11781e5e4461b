package table

import (
	"slices"

	"broker/core"
	"broker/core/internal/record"
)

// entrySize is the approximate size of an entry in memory and on disk, without its texts.
const entrySize = 160

// AppendEntry appends an entry to the timeline of a job, and numbers it.
func (t *Table) AppendEntry(h uint32, e *Entry, entry core.TimelineEntry) {
	n := t.EnsureTransient(h)
	entry.Number = e.Entries
	e.Entries++
	n.entries = append(n.entries, entry)
	if shape := t.timeline(h); len(n.entries) > 2*shape.Length {
		n.trimEntries(&shape)
	}
	e.Set(Changed)
	t.Touch(h, e)
	if !e.Unstored() {
		t.AddOpen(entrySize + len(entry.Text))
	}
}

// trimEntries drops entries that are not kept, so that they need not be written.
func (n *Transient) trimEntries(t *core.Timeline) {
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

// timeline returns a job's timeline without its entries.
func (t *Table) timeline(h uint32) core.Timeline {
	shape := core.Timeline{Count: int(t.At(h).Entries)}
	asked := uint16(0)
	if x := t.Optional(h); x != nil {
		asked = x.Timeline
	}
	shape.First, shape.Length = core.TimelineShape(asked)
	return shape
}

// timelineSlots returns how many slots on disk the timeline of a job uses.
func (t *Table) timelineSlots(h uint32, e *Entry) uint16 {
	if e.Entries == 0 {
		return 0
	}
	shape := t.timeline(h)
	return uint16(min(shape.Count, shape.Length))
}

// sealEntries returns the entries that are not written yet, with their slots.
func (t *Table) sealEntries(h uint32, n *Transient) (all []record.TimelineSlot) {
	if n.written == len(n.entries) {
		return nil
	}
	shape := t.timeline(h)
	n.trimEntries(&shape)
	for _, e := range n.entries[n.written:] {
		slot := int(e.Number)
		if slot >= shape.First {
			slot = shape.First + (slot-shape.First)%(shape.Length-shape.First)
		}
		all = append(all, record.TimelineSlot{Slot: uint16(slot), Entry: e})
	}
	n.written = len(n.entries)
	return all
}

// dropWritten forgets the entries that are on disk.
func (n *Transient) dropWritten() {
	if n.written == len(n.entries) {
		n.entries, n.written = nil, 0
	}
}

// TimelineOf returns the part of a job's timeline that is in memory; the rest is on disk.
func (t *Table) TimelineOf(h uint32) *core.Timeline {
	e := t.At(h)
	if e.Entries == 0 {
		return nil
	}
	shape := t.timeline(h)
	if e.Has(HasTransient) {
		shape.Entries = slices.Clone(t.Transient(h).entries)
	}
	shape.Trim()
	return &shape
}
