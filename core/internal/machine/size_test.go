package machine

import (
	"testing"
	"unsafe"
)

// TestQueueFitsIn512Bytes: larger objects with pointers have a header each.
func TestQueueFitsIn512Bytes(t *testing.T) {
	t.Parallel()
	if got := unsafe.Sizeof(jobQueue{}); got > 512 {
		t.Errorf("a queue has %d bytes, more than 512", got)
	}
}
