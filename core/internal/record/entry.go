package record

import (
	"encoding/binary"
	"fmt"

	"github.com/cespare/xxhash/v2"

	"broker/core"
)

// Entry is a commit batch with its position. It is what a journal makes durable, and what is replicated.
//
//	format │ epoch │ number │ at │ number - prev │ chain, 8 bytes │ n, changes │ n, metadata and documents
//	change:   seq │ fields │ stored │ body bytes │ job, body │ status │ failure │ outcome     each with its length in front
//	          │ n, entries of the timeline, each behind its slot │ slots of the timeline
type Entry struct {
	Position

	Prev  uint64 // number of the previous entry; entries without changes are left out
	Batch *CommitBatch

	// In an Entry, Position.Chain is the Chain of the store that the entry may be applied to. Position.Index is not
	// encoded: it is the index in the replicated log, which is known only once the entry is committed.
}

// Position identifies the last entry of a store.
type Position struct {
	Format int          // of the entry; zero: the first. Earlier entries in the same log have no newer format
	Epoch  uint64       // increases when another engine takes over; zero: there is only one
	Number uint64       // of the commit
	At     core.Instant // when the batch was sealed
	Index  uint64       // in the replicated log; zero: the store is not replicated
	// hash of the last replicated entry, which contains the previous Chain: equal Chains mean equal histories
	Chain uint64
}

// Follows reports whether e may be applied to a store whose last entry is at p: nothing is missing between them, and no
// newer engine has taken over.
func (e *Entry) Follows(p Position) bool {
	return e.Prev == p.Number && e.Number > e.Prev && e.Epoch >= p.Epoch
}

// ChainOf returns the Chain of a store after the entry with this encoding.
func ChainOf(entry []byte) uint64 { return xxhash.Sum64(entry) }

// AppendPosition encodes p.
func AppendPosition(dst []byte, p Position) []byte {
	dst = binary.AppendUvarint(appendPlace(dst, p), p.Index)
	return binary.BigEndian.AppendUint64(dst, p.Chain)
}

// DecodePosition is the inverse of AppendPosition.
func DecodePosition(b []byte) (Position, error) {
	d := decoder{b: b}
	p := d.place()
	p.Index, p.Chain = d.uvarint(), d.fixed64()
	return p, d.close()
}

// appendPlace encodes the common fields of a position and an entry.
func appendPlace(dst []byte, p Position) []byte {
	dst = binary.AppendUvarint(append(dst, byte(max(p.Format, 1))), p.Epoch)
	dst = binary.AppendUvarint(dst, p.Number)
	return binary.AppendVarint(dst, int64(p.At))
}

func (d *decoder) place() Position {
	p := Position{Format: d.format()}
	p.Epoch, p.Number, p.At = d.uvarint(), d.uvarint(), core.Instant(d.varint())
	return p
}

// format reads the first byte of an entry or a position.
func (d *decoder) format() int {
	first := d.take(1)
	switch {
	case len(first) == 0, first[0] == 1:
		return 0
	case first[0] > NewestFormat:
		d.fail(fmt.Errorf("entry of format %d: %w", first[0], ErrNewerFormat))
	case first[0] == 0:
		d.fail(fmt.Errorf("entry of format 0: %w", ErrRange))
	}
	if d.err != nil {
		return 0
	}
	return int(first[0])
}

func (d *decoder) fixed64() uint64 {
	b := d.take(8)
	if len(b) < 8 {
		return 0
	}
	return binary.BigEndian.Uint64(b)
}

// Fields of a change. On disk.
const (
	changeGone = 1 << iota
	changeJob
	changeKeepBody
	changeStatus
	changeFailure
	changeOutcome
	changeTimeline
	changeSlots

	changeKnown = 1<<iota - 1
)

// AppendEntry encodes e. If the format of the entry cannot carry all of it, the error is an ErrOldFormat.
func AppendEntry(dst []byte, e *Entry) ([]byte, error) {
	format := max(e.Format, 1)
	dst = appendPlace(dst, e.Position)
	dst = binary.AppendUvarint(dst, e.Number-e.Prev)
	dst = binary.BigEndian.AppendUint64(dst, e.Chain)
	dst = binary.AppendUvarint(dst, uint64(len(e.Batch.Changes)))
	var buf []byte
	for i := range e.Batch.Changes {
		needs := 0
		if dst, buf, needs = appendChange(dst, &e.Batch.Changes[i], buf); needs > format {
			return nil, tooNew(fmt.Sprintf("job %d", e.Batch.Changes[i].Seq), needs, format)
		}
	}
	for i := range e.Batch.Meta {
		if needs := MetaFormat(&e.Batch.Meta[i]); needs > format {
			return nil, tooNew(fmt.Sprintf("metadata entry %q", e.Batch.Meta[i].Name), needs, format)
		}
	}
	for i := range e.Batch.Documents {
		if needs := DocumentFormat(&e.Batch.Documents[i]); needs > format {
			return nil, tooNew(fmt.Sprintf("document %q", e.Batch.Documents[i].Name), needs, format)
		}
	}
	dst = binary.AppendUvarint(dst, uint64(len(e.Batch.Meta)+len(e.Batch.Documents)))
	return appendNamed(appendNamed(dst, e.Batch.Meta, 0), e.Batch.Documents, namedDocument), nil
}

// Kinds of named values. On disk.
const (
	namedSet      = 1 // there is a value; otherwise it is removed
	namedDocument = 2 // it is a document; otherwise metadata

	namedKnown = 3
)

// appendNamed encodes metadata entries or documents.
func appendNamed(dst []byte, all []core.MetaEntry, kind uint64) []byte {
	for _, m := range all {
		dst = appendText(dst, m.Name)
		dst = binary.AppendUvarint(dst, kind|flag(m.Value != nil, namedSet))
		if m.Value != nil {
			dst = appendBytes(dst, m.Value)
		}
	}
	return dst
}

// appendChange encodes ch; buf is memory for its parts. It returns the first format that can carry ch.
func appendChange(dst []byte, ch *Change, buf []byte) (_, _ []byte, format int) {
	format = 1
	f := flag(ch.Gone, changeGone) | flag(ch.Job != nil, changeJob) | flag(ch.KeepBody, changeKeepBody) |
		flag(ch.Status != nil,
			changeStatus) | flag(ch.Failure != nil, changeFailure) | flag(ch.Outcome != nil, changeOutcome) |
		flag(len(ch.Timeline) > 0, changeTimeline) | flag(ch.TimelineSlots != 0, changeSlots)
	for _, n := range [...]uint64{ch.Seq, f, uint64(ch.Stored), uint64(ch.BodyBytes)} {
		dst = binary.AppendUvarint(dst, n)
	}
	if ch.Job != nil {
		buf, format = AppendJob(buf[:0], ch.Job, ch.Stored)
		if dst = appendBytes(dst, buf); HasOwnBody(ch.Job) {
			dst = append(dst, ch.Job.Body...) // its size is in the record
		}
	}
	if ch.Status != nil {
		needs := 0
		buf, needs = AppendStatus(buf[:0], ch.Seq, ch.Status)
		dst, format = appendBytes(dst, buf), max(format, needs)
	}
	if ch.Failure != nil {
		buf = AppendFailure(buf[:0], ch.Failure)
		dst = appendBytes(dst, buf)
	}
	if ch.Outcome != nil {
		buf = AppendOutcome(buf[:0], ch.Outcome)
		dst = appendBytes(dst, buf)
	}
	if f&changeTimeline != 0 {
		dst = binary.AppendUvarint(dst, uint64(len(ch.Timeline)))
		for i := range ch.Timeline {
			needs := 0
			buf, needs = AppendTimelineEntry(buf[:0], &ch.Timeline[i].Entry)
			format = max(format, needs)
			dst = appendBytes(binary.AppendUvarint(dst, uint64(ch.Timeline[i].Slot)), buf)
		}
	}
	if f&changeSlots != 0 {
		dst = binary.AppendUvarint(dst, uint64(ch.TimelineSlots))
	}
	return dst, buf, format
}

// DecodeEntry is the inverse of AppendEntry. The batch is a view of b, which must not change while it is used.
func DecodeEntry(b []byte) (*Entry, error) {
	d := decoder{b: b}
	e := &Entry{Position: d.place(), Batch: new(CommitBatch)}
	e.Prev = e.Number - d.uvarint()
	e.Chain = d.fixed64()
	e.Batch.Changes = make([]Change, d.count())
	for i := range e.Batch.Changes {
		d.change(&e.Batch.Changes[i])
	}
	d.named(e.Batch)
	if err := d.close(); err != nil {
		return nil, err
	}
	return e, nil
}

// NumberOf returns the number of the entry with this encoding.
func NumberOf(entry []byte) (uint64, error) {
	d := decoder{b: entry}
	p := d.place()
	return p.Number, d.err
}

// named is the inverse of appendNamed.
func (d *decoder) named(b *CommitBatch) {
	n := d.count()
	b.Meta = make([]core.MetaEntry, 0, n)
	for range n {
		m := core.MetaEntry{Name: d.text()}
		f := d.fields(namedKnown)
		if f&namedSet != 0 {
			m.Value = d.bytes()
		}
		if f&namedDocument != 0 {
			b.Documents = append(b.Documents, m)
		} else {
			b.Meta = append(b.Meta, m)
		}
	}
}

// change is the inverse of appendChange.
func (d *decoder) change(ch *Change) {
	ch.Seq = d.uvarint()
	f := d.fields(changeKnown)
	ch.Gone, ch.KeepBody = f&changeGone != 0, f&changeKeepBody != 0
	ch.Stored, ch.BodyBytes = Parts(d.byte()), d.bodyBytes()
	if f&changeJob != 0 {
		ch.Job = new(core.Job)
		size, _, err := DecodeJob(d.bytes(), ch.Seq, ch.Job, nil, nil)
		if d.check(err); size > 0 {
			ch.Job.Body = d.take(uint64(size))
		}
	}
	if f&changeStatus != 0 {
		ch.Status = new(Status)
		d.check(DecodeStatus(d.bytes(), ch.Seq, ch.Status))
	}
	if f&changeFailure != 0 {
		ch.Failure = new(core.Failure)
		_, err := DecodeFailure(d.bytes(), ch.Failure)
		d.check(err)
	}
	if f&changeOutcome != 0 {
		ch.Outcome = new(core.Outcome)
		_, err := DecodeOutcome(d.bytes(), ch.Outcome)
		d.check(err)
	}
	d.timeline(ch, f)
}

// timeline is the rest of change.
func (d *decoder) timeline(ch *Change, f uint64) {
	if f&changeTimeline != 0 {
		ch.Timeline = make([]TimelineSlot, d.count())
		for i := range ch.Timeline {
			ch.Timeline[i].Slot = d.slot()
			d.check(DecodeTimelineEntry(d.bytes(), &ch.Timeline[i].Entry))
		}
	}
	if f&changeSlots != 0 {
		ch.TimelineSlots = d.slot()
	}
}

// slot is a place in a timeline.
func (d *decoder) slot() uint16 {
	v := d.uvarint()
	if v > core.MaxTimeline {
		d.fail(ErrRange)
		return 0
	}
	return uint16(v)
}

// check fails with the error of a part, if there is one.
func (d *decoder) check(err error) {
	if err != nil {
		d.fail(err)
	}
}
