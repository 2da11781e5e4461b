package record

import (
	"encoding/binary"
	"time"
	"unsafe"

	"broker/core"
)

// statusTable has the fields of a status, which follow the state. Those of an ordinary lease come first, and have code.
var statusTable = newTable[Status]([]row{
	{name: "Attempts", format: 1, kind: byCode},
	{name: "ReadyAt", format: 1, kind: byCode},
	{name: "LeasedAt", format: 1, kind: byCode}, // after ReadyAt
	{name: "LeaseFor", format: 1, kind: byCode},
	{name: "Holder", format: 1, kind: byCode},
	{name: "HolderFrom", format: 1, kind: byCode},
	{name: "Placed", format: 1, kind: byCode},
	{name: "Worker", format: 1, kind: byCode},
	{name: "Requeued", format: 1},
	{name: "Fails", format: 1},
	{name: "FailedAt", format: 1},
	{name: "Unlocked", format: 1},
	{name: "Broken", format: 1},
	{name: "ExpiresAt", format: 1},
	{name: "Waiting", format: 1},
	{name: "Children", format: 1},
	{name: "ChildrenBroken", format: 1},
	{name: "Closed", format: 1},
	{name: "Tried", format: 1},
	{name: "DoneFailed", format: 1},
	{name: "Progress.Num", format: 1},
	{name: "Progress.Den", format: 1},
	{name: "Progress.Verbatim", format: 1, kind: isPresentBytes},
	{name: "Progress.Text", format: 1},
	{name: "Progress.UpdatedAt", format: 1},
	{name: "EpochAhead", format: 1},
	{name: "LostLeases", format: 1},
	{name: "Rerun", format: 1},
	{name: "Entries", format: 1},
	{name: "KeptByQueue", format: 1},
	{name: "Group", format: 1},
	{name: "Unstored", format: 1},
	{name: "Tally.Releases", format: 4, feature: featureTallies},
	{name: "Tally.Timeouts", format: 4, feature: featureTallies},
	{name: "Tally.Burials", format: 4, feature: featureTallies},
	{name: "Tally.Kicks", format: 4, feature: featureTallies},
	{name: "Tally.FirstLeasedAt", format: 4, feature: featureTallies},
	{name: "Moved.Queue", format: 4, feature: featureMoved},
	{name: "StopAfter", format: 4, feature: "requests to stop a running job"},
	{name: "LogChunks", format: 4, feature: featureLogs, high: core.LogChunks},
	{name: "Moved.From", format: 4, feature: featureMoved, kind: isMovedFrom, also: "After"},
	{name: "LeaseUntil", format: 5, feature: "ends of extended leases", after: "LeasedAt"},
	{name: "Version", format: versionFormat, feature: "versions of workers"},
})

var statusProgress, statusTally, statusMoved = statusTable.within("Progress"), statusTable.within("Tally"),
	statusTable.within("Moved")

// The fields by code.
const (
	statusAttempts = 1 << iota
	statusReadyAt
	statusLeasedAt
	statusLeaseFor
	statusHolder
	statusHolderFrom
	statusPlaced
	statusWorker

	statusFirst = 8 // fields of an ordinary lease
)

// AppendStatus encodes s, and returns the first format that can carry it; seq is the number of its job.
func AppendStatus(dst []byte, seq uint64, s *Status) ([]byte, int) {
	f := statusFields(s)
	dst = append(dst, Version)
	dst = binary.AppendUvarint(dst, f)
	dst = binary.AppendUvarint(dst, uint64(s.State))
	if dst = appendLease(dst, s, f); f>>statusFirst != 0 {
		dst = statusTable.append(dst, unsafe.Pointer(s), f>>statusFirst<<statusFirst, seq)
	}
	return dst, statusTable.formatOf(f, 1)
}

// statusFields returns the fields of a status that are set.
func statusFields(s *Status) uint64 {
	return statusTable.fields(unsafe.Pointer(s)) | flag(s.Attempts != 0, statusAttempts) |
		flag(s.ReadyAt != 0, statusReadyAt) | flag(s.LeasedAt != 0, statusLeasedAt) |
		flag(s.LeaseFor != 0, statusLeaseFor) | flag(s.Holder != 0, statusHolder) |
		flag(s.HolderFrom != 0, statusHolderFrom) | flag(s.Placed, statusPlaced) | flag(s.Worker != "", statusWorker)
}

// appendLease writes the fields of an ordinary lease.
func appendLease(dst []byte, s *Status, f uint64) []byte {
	if f&statusAttempts != 0 {
		dst = binary.AppendUvarint(dst, uint64(s.Attempts))
	}
	if f&statusReadyAt != 0 {
		dst = binary.AppendVarint(dst, int64(s.ReadyAt))
	}
	if f&statusLeasedAt != 0 {
		dst = binary.AppendVarint(dst, int64(s.LeasedAt-s.ReadyAt))
	}
	if f&statusLeaseFor != 0 {
		dst = binary.AppendVarint(dst, int64(s.LeaseFor))
	}
	if f&statusHolder != 0 {
		dst = binary.AppendUvarint(dst, uint64(s.Holder))
	}
	if f&statusHolderFrom != 0 {
		dst = binary.AppendUvarint(dst, uint64(s.HolderFrom))
	}
	if f&statusWorker != 0 {
		dst = appendText(dst, s.Worker)
	}
	return dst
}

// DecodeStatus fills s from a record, with views of b. It reuses the memory that s refers to.
func DecodeStatus(b []byte, seq uint64, s *Status) error {
	d := decoder{b: b}
	waiting, unstored, progress, tally, moved := s.Waiting[:0], s.Unstored[:0], s.Progress, s.Tally, s.Moved
	*s = Status{}
	f := d.open(statusTable.known)
	s.State = core.State(d.byte())
	d.lease(s, f)
	if f>>statusFirst == 0 {
		return d.close()
	}
	s.Progress = emptied(progress, f&statusProgress != 0)
	s.Tally = emptied(tally, f&statusTally != 0)
	s.Moved = emptied(moved, f&statusMoved != 0)
	s.Waiting, s.Unstored = waiting, unstored
	d.table(statusTable, unsafe.Pointer(s), f>>statusFirst<<statusFirst, seq)
	if len(s.Waiting) == 0 {
		s.Waiting = nil
	}
	if len(s.Unstored) == 0 {
		s.Unstored = nil
	}
	return d.close()
}

// lease is the inverse of appendLease.
func (d *decoder) lease(s *Status, f uint64) {
	if f&statusAttempts != 0 {
		s.Attempts = d.uint32()
	}
	if f&statusReadyAt != 0 {
		s.ReadyAt = core.Instant(d.varint())
	}
	if f&statusLeasedAt != 0 {
		s.LeasedAt = s.ReadyAt + core.Instant(d.varint())
	}
	if f&statusLeaseFor != 0 {
		s.LeaseFor = time.Duration(d.varint())
	}
	if f&statusHolder != 0 {
		s.Holder = core.Holder(d.byte())
	}
	if f&statusHolderFrom != 0 {
		s.HolderFrom = core.Protocol(d.byte())
	}
	s.Placed = f&statusPlaced != 0
	if f&statusWorker != 0 {
		s.Worker = d.text()
	}
}

// emptied returns a zero value in the memory of an old one, if there is an old one; nil if it is not needed.
func emptied[T any](old *T, needed bool) *T {
	if !needed {
		return nil
	}
	if old == nil {
		return new(T)
	}
	*old = *new(T)
	return old
}
