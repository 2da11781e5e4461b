package record_test

import (
	"testing"
	"unsafe"

	"broker/core/internal/record"
)

// A change and often a status are made for each job that is stored.
func TestChangesDoNotGrow(t *testing.T) {
	t.Parallel()
	if got := unsafe.Sizeof(record.Change{}); got > 80 {
		t.Errorf("a change has %d bytes", got)
	}
	if got := unsafe.Sizeof(record.Status{}); got > 192 {
		t.Errorf("a status has %d bytes", got)
	}
}
