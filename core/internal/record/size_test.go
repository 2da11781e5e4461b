package record_test

import (
	"testing"
	"unsafe"

	"broker/core/internal/record"
)

// Each stored job needs a change and often a status.
func TestChangesDoNotGrow(t *testing.T) {
	t.Parallel()
	if got := unsafe.Sizeof(record.Change{}); got > 80 {
		t.Errorf("a change has %d bytes", got)
	}
	if got := unsafe.Sizeof(record.Status{}); got > 208 {
		t.Errorf("a status has %d bytes", got)
	}
}
