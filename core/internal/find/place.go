package find

import (
	"cmp"
	"encoding/base64"
	"encoding/binary"

	"broker/core"
	"broker/core/internal/table"
)

// place is a position in an order of jobs; in OrderQueue, in the order of one queue.
type place struct {
	queue     string // OrderQueue
	priority  int64  // OrderQueue
	scheduled bool   // OrderQueue: after plain jobs; see Table.Before
	at        core.Instant
	seq       uint64
}

// placeOf is the position of a job.
func (s *Search) placeOf(h uint32) place {
	e := s.table.At(h)
	p := place{seq: e.Seq}
	switch s.order {
	case core.OrderCreated:
	case core.OrderQueue:
		p.queue, p.priority, p.scheduled, p.at = s.table.QueueAt(e.Queue).Name, e.Priority(), e.Has(
			table.ScheduledOrder,
		), e.Place()
	case core.OrderDue, core.OrderLeased, core.OrderDied, core.OrderFinished:
		p.at = e.ListedAt()
	}
	return p
}

// compare orders two positions.
func (p place) compare(q place) int {
	order := func(x bool) int {
		if x {
			return 1
		}
		return 0
	}
	return cmp.Or(cmp.Compare(p.queue, q.queue), cmp.Compare(q.priority, p.priority),
		cmp.Compare(order(p.scheduled), order(q.scheduled)), cmp.Compare(p.at, q.at), cmp.Compare(p.seq, q.seq))
}

// cursorVersion is the first byte of a cursor. Clients keep cursors for minutes at most, so the format may change.
const cursorVersion = 1

// Flags of a cursor.
const (
	cursorDesc      = 1 << iota
	cursorBeginning // the list begins; a page has examined no job yet
)

// CursorAt returns the cursor after a job.
func (s *Search) CursorAt(h uint32) string {
	p := s.placeOf(h)
	return s.cursor(&p)
}

// cursor returns the cursor of a position; nil: the beginning. It is base64 of
//
//	version, order, flags, varint begun, varint priority, scheduled, varint at, uvarint seq, queue
func (s *Search) cursor(p *place) string {
	b := []byte{cursorVersion, byte(s.order), 0}
	if s.desc {
		b[2] = cursorDesc
	}
	if p == nil {
		b[2] |= cursorBeginning
		p = &place{}
	}
	b = binary.AppendVarint(b, int64(s.since))
	b = binary.AppendVarint(b, p.priority)
	b = append(b, 0)
	if p.scheduled {
		b[len(b)-1] = 1
	}
	b = binary.AppendUvarint(binary.AppendVarint(b, int64(p.at)), p.seq)
	return base64.RawURLEncoding.EncodeToString(append(b, p.queue...))
}

// resume parses a cursor; an empty cursor is the beginning.
func (s *Search) resume(cursor string) error {
	if cursor == "" {
		return nil
	}
	b, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil || len(b) < 3 || b[0] != cursorVersion || b[1] != byte(s.order) ||
		b[2] > cursorDesc|cursorBeginning || (b[2]&cursorDesc != 0) != s.desc {
		return core.ErrInvalid
	}
	flags, rest := b[2], b[3:]
	var fields [4]int64 // begun, priority, scheduled, at
	for i := range fields {
		v, n := binary.Varint(rest)
		if n <= 0 {
			return core.ErrInvalid
		}
		fields[i], rest = v, rest[n:]
	}
	seq, n := binary.Uvarint(rest)
	if n <= 0 {
		return core.ErrInvalid
	}
	s.since = core.Instant(fields[0])
	if flags&cursorBeginning == 0 {
		s.start = &place{
			priority: fields[1], scheduled: fields[2] != 0, at: core.Instant(fields[3]), seq: seq,
			queue: string(rest[n:]),
		}
	}
	return nil
}
