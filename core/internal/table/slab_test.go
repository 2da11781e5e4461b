package table

import (
	"testing"
	"unsafe"

	"broker/core"
)

// A nearly empty broker adds and removes the only job in memory again and again.
func TestSingleJobInMemoryNeedsNoNewPage(t *testing.T) {
	var s slab
	h, _ := s.alloc()
	j := new(core.Job)
	got := testing.AllocsPerRun(100, func() {
		s.putPayload(h, j)
		s.putPayload(h, nil)
	})
	if got != 0 {
		t.Errorf("%v allocations for a job", got)
	}
	if s.Payload(h) != nil {
		t.Error("the payload is still there")
	}
}

// Ten million jobs may wait in memory, so a field that few jobs use does not belong in the entry.
func TestEntryDoesNotGrow(t *testing.T) {
	if got := unsafe.Sizeof(Entry{}); got != 160 {
		t.Errorf("an entry has %d bytes", got)
	}
	if got := unsafe.Sizeof(Transient{}); got > 88 {
		t.Errorf("a transient has %d bytes", got)
	}
	if got := unsafe.Sizeof([PageSize]Entry{}) % 8192; got != 0 {
		t.Errorf("a page of entries wastes memory: %d bytes more than pages of the allocator", got)
	}
}

// TestOptionalFitsIn240Bytes: Go allocates 240 bytes for anything from 225 on.
func TestOptionalFitsIn240Bytes(t *testing.T) {
	t.Parallel()
	if got := unsafe.Sizeof(Optional{}); got > 240 {
		t.Errorf("an Optional has %d bytes", got)
	}
	if got := unsafe.Sizeof(Dependents{}); got > 32 {
		t.Errorf("Dependents have %d bytes", got)
	}
}
