package record

import (
	"encoding/binary"

	"broker/core"
)

// The tally of a job is part of its status.

func tallyFields(t *core.Tally) uint64 {
	if t == nil {
		return 0
	}
	return flag(t.Releases != 0,
		statusReleases) | flag(t.Timeouts != 0, statusTimeouts) | flag(t.Burials != 0, statusBurials) |
		flag(t.Kicks != 0, statusKicks) | flag(t.FirstLeasedAt != 0, statusFirstLeasedAt)
}

// appendTally writes statusReleases to statusFirstLeasedAt.
func appendTally(dst []byte, t *core.Tally, f uint64) []byte {
	if f&statusReleases != 0 {
		dst = binary.AppendUvarint(dst, uint64(t.Releases))
	}
	if f&statusTimeouts != 0 {
		dst = binary.AppendUvarint(dst, uint64(t.Timeouts))
	}
	if f&statusBurials != 0 {
		dst = binary.AppendUvarint(dst, uint64(t.Burials))
	}
	if f&statusKicks != 0 {
		dst = binary.AppendUvarint(dst, uint64(t.Kicks))
	}
	if f&statusFirstLeasedAt != 0 {
		dst = binary.AppendVarint(dst, int64(t.FirstLeasedAt))
	}
	return dst
}

// tally is the inverse of appendTally.
func (d *decoder) tally(t *core.Tally, f uint64) {
	if f&statusReleases != 0 {
		t.Releases = d.uint32()
	}
	if f&statusTimeouts != 0 {
		t.Timeouts = d.uint32()
	}
	if f&statusBurials != 0 {
		t.Burials = d.uint32()
	}
	if f&statusKicks != 0 {
		t.Kicks = d.uint32()
	}
	if f&statusFirstLeasedAt != 0 {
		t.FirstLeasedAt = core.Instant(d.varint())
	}
}
