package archive

import (
	"context"
	"errors"
	"slices"

	"broker/core/internal/record"
)

// end returns the position of the last entry of a timeline: the last entry in its segments, or that of the newest base
// copy, which has no Chain.
func (t *timeline) end() (record.Position, error) {
	b := t.bases[len(t.bases)-1]
	last := record.Position{Number: b.number, At: b.at}
	for _, g := range slices.Backward(t.segs) {
		w := walk{t: t, until: endOfTime, last: record.Position{Number: g.first - 1}, anywhere: true}
		if _, err := w.segment(context.Background(), g, func(*record.Entry) error { return nil }); err != nil {
			return last, err
		}
		if w.entries == 0 {
			continue
		}
		if w.last.Number > last.Number {
			last = w.last
		}
		break
	}
	return last, nil
}

// continues reports whether the next entry of the engine follows the timeline. In a cluster, entries that the previous
// leader has not shipped are still in the replicated log; continues ships them.
func (s *shipper) continues(t *timeline) (bool, error) {
	last, err := t.end()
	if err != nil {
		return false, err
	}
	if last.Number == s.from.Number {
		return last.At == s.from.At, nil
	}
	if s.recent == nil || last.Chain == 0 || last.Number > s.from.Number {
		return false, nil
	}
	f := filler{s: s, last: last}
	s.dir = t.dir
	err = s.recent(last.Number, f.add)
	if errors.Is(err, errForked) {
		err = nil
	}
	if err == nil && f.last.Number >= s.from.Number {
		err = f.flush()
	}
	s.closeSegment()
	s.dir, s.sent = "", queue{}
	return err == nil && f.last.Number >= s.from.Number, err
}

// errForked means that a timeline belongs to another cluster, or that the log begins after its end.
var errForked = errors.New("the timeline is a different one")

// filler ships entries of a replicated log.
type filler struct {
	s       *shipper
	last    record.Position
	entries int
}

// add takes an entry. It skips entries that no store has applied.
func (f *filler) add(entry []byte) error {
	e, err := record.DecodeEntry(entry)
	if err != nil {
		return err
	}
	if f.entries == 0 && e.Prev > f.last.Number {
		return errForked
	}
	if !e.Follows(f.last) {
		return nil
	}
	if e.Chain != f.last.Chain {
		return errForked
	}
	f.last = e.Position
	f.last.Chain = record.ChainOf(entry)
	q := &f.s.sent
	if len(q.buf) == 0 {
		q.first, q.firstAt = e.Number, e.At
	}
	q.buf = appendRaw(q.buf, entry)
	q.entries++
	if f.entries++; len(q.buf) > shipFrom {
		return f.flush()
	}
	return nil
}

func (f *filler) flush() error {
	if len(f.s.sent.buf) == 0 {
		return nil
	}
	err := f.s.write()
	f.s.sent = queue{buf: idle(f.s.sent.buf)}
	return err
}
