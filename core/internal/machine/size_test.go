package machine

import (
	"testing"
	"unsafe"
)

// TestQueueHasNoSpaceForWhatFewNeed: up to 512 bytes, Go keeps no header that says where the pointers of an object are.
func TestQueueHasNoSpaceForWhatFewNeed(t *testing.T) {
	t.Parallel()
	if got := unsafe.Sizeof(jobQueue{}); got > 512 {
		t.Errorf("a queue has %d bytes, more than 512", got)
	}
}
