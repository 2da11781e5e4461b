package table

import (
	"encoding/binary"
	"fmt"

	"broker/core"
)

// ReserveAnew reserves numbers again, regardless of former reservations.
func (t *Table) ReserveAnew() {
	t.reserved = 0
	t.Reserve()
}

// RestoreNumbers restores the reservation of numbers.
func (t *Table) RestoreNumbers(value []byte) error {
	if len(value) != 8 {
		return fmt.Errorf("%d bytes, want 8", len(value))
	}
	t.NextSeq = max(t.NextSeq, binary.BigEndian.Uint64(value))
	return nil
}

// SeqMeta is the name of the meta entry with the reserved numbers. It is on disk and never changes.
const SeqMeta = "core/seq"

// seqBlock is how many numbers are reserved in advance in the store, so that no number is reused after a crash.
const seqBlock = 1 << 24

// Reserve adds a reservation of further numbers to the open batch, long before they are needed.
func (t *Table) Reserve() {
	if t.NextSeq+seqBlock/2 < t.reserved || !t.opts.Persist {
		return
	}
	t.reserved = t.NextSeq + seqBlock
	t.metaLog = append(t.metaLog, core.MetaEntry{Name: SeqMeta, Value: binary.BigEndian.AppendUint64(nil, t.reserved)})
}

// ReturnNumbers returns the reserved numbers that were not assigned.
func (t *Table) ReturnNumbers() {
	if t.reserved != t.NextSeq {
		t.reserved = t.NextSeq
		t.metaLog = append(t.metaLog,
			core.MetaEntry{Name: SeqMeta, Value: binary.BigEndian.AppendUint64(nil, t.reserved)})
	}
}
