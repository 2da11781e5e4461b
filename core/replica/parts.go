package replica

import (
	"encoding/binary"
	"errors"

	"broker/core/internal/record"
)

// partBytes is the size of the parts in which a large entry is sent.
const partBytes = 512 << 10

// The first byte of the data that raft replicates. On the wire and on disk; never changed.
const (
	wholeEntry = 1 // followed by the entry
	partOfMany = 2 // followed by epoch, number of the entry, place of the part from 0 on, parts in all; then its bytes
)

// errParts is returned for a part whose earlier parts were not seen, because its leader was replaced in between.
var errParts = errors.New("part of an entry without the parts before it")

// cut prepares an entry for raft. The result shares no memory with entry.
func cut(entry []byte, at record.Position) [][]byte {
	if len(entry) <= partBytes {
		return [][]byte{append(append(make([]byte, 0, 1+len(entry)), wholeEntry), entry...)}
	}
	total := (len(entry) + partBytes - 1) / partBytes
	all := make([][]byte, 0, total)
	for i := range total {
		piece := entry[i*partBytes : min((i+1)*partBytes, len(entry))]
		b := append(make([]byte, 0, len(piece)+32), partOfMany)
		for _, v := range [...]uint64{at.Epoch, at.Number, uint64(i), uint64(total)} {
			b = binary.AppendUvarint(b, v)
		}
		all = append(all, append(b, piece...))
	}
	return all
}

// assembly joins parts into entries. All members see the same parts in the same order, so they get the same entries.
type assembly struct {
	epoch, number, next, total uint64
	buf                        []byte
}

// add takes committed data. It returns an entry once it is complete; the entry is valid until the next call.
func (a *assembly) add(data []byte) ([]byte, error) {
	if len(data) == 0 {
		return nil, record.ErrTruncated
	}
	kind, rest := data[0], data[1:]
	switch kind {
	case wholeEntry:
		a.drop()
		return rest, nil
	case partOfMany:
	default:
		return nil, record.ErrNewerFormat
	}
	var head [4]uint64
	for i := range head {
		v, n := binary.Uvarint(rest)
		if n <= 0 {
			return nil, record.ErrTruncated
		}
		head[i], rest = v, rest[n:]
	}
	epoch, number, place, total := head[0], head[1], head[2], head[3]
	if place == 0 {
		a.drop()
		a.epoch, a.number, a.total = epoch, number, total
	}
	if epoch != a.epoch || number != a.number || place != a.next || total != a.total || place >= total {
		a.drop()
		return nil, errParts
	}
	a.buf = append(a.buf, rest...)
	if a.next++; a.next < total {
		return nil, nil
	}
	whole := a.buf
	a.drop()
	return whole, nil
}

// open reports that the last part of an entry is still to come.
func (a *assembly) open() bool { return a.next > 0 }

func (a *assembly) drop() { *a = assembly{} }
