package record

import (
	"encoding/binary"

	"broker/core"
)

// Fields of an entry of a timeline, after number, kind and instant. On disk.
const (
	entryProtocol = 1 << iota
	entryWorker
	entryAddress
	entryQueue
	entryDetail
	entryGroup
	entryText
	_ // was data of a client's note, which no release wrote
	entryVersion

	entryKnown = entryText<<1 - 1 | entryVersion
)

// AppendTimelineEntry encodes e, and returns the first format that can carry it.
func AppendTimelineEntry(dst []byte, e *core.TimelineEntry) (_ []byte, format int) {
	format = 1
	if e.Version != "" {
		format = versionFormat
	}
	f := flag(e.Protocol != 0,
		entryProtocol) | flag(e.Worker != "", entryWorker) | flag(e.Address != "", entryAddress) |
		flag(e.Queue != "", entryQueue) | flag(e.Detail != "", entryDetail) | flag(e.Group != "", entryGroup) |
		flag(e.Text != "", entryText) |
		flag(e.Version != "", entryVersion)
	dst = append(dst, Version)
	dst = binary.AppendUvarint(dst, f)
	dst = binary.AppendUvarint(dst, uint64(e.Number))
	dst = binary.AppendUvarint(dst, uint64(e.Kind))
	dst = binary.AppendVarint(dst, int64(e.At))
	if f&entryProtocol != 0 {
		dst = binary.AppendUvarint(dst, uint64(e.Protocol))
	}
	for i, s := range [...]string{e.Worker, e.Address, e.Queue, e.Detail, e.Group, e.Text} {
		if f&(entryWorker<<i) != 0 {
			dst = appendText(dst, s)
		}
	}
	if f&entryVersion != 0 {
		dst = appendText(dst, e.Version)
	}
	return dst, format
}

// DecodeTimelineEntry fills e from a record, with views of b.
func DecodeTimelineEntry(b []byte, e *core.TimelineEntry) error {
	d := decoder{b: b}
	*e = core.TimelineEntry{}
	f := d.open(entryKnown)
	e.Number, e.Kind, e.At = d.uint32(), core.EventKind(d.byte()), core.Instant(d.varint())
	if f&entryProtocol != 0 {
		e.Protocol = core.Protocol(d.byte())
	}
	for i, s := range [...]*string{&e.Worker, &e.Address, &e.Queue, &e.Detail, &e.Group, &e.Text} {
		if f&(entryWorker<<i) != 0 {
			*s = d.text()
		}
	}
	if f&entryVersion != 0 {
		e.Version = d.text()
	}
	return d.close()
}
