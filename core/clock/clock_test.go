package clock

import (
	"testing"
	"time"
	"unsafe"
)

// Setting the clock and suspending the machine look the same: the wall clock jumps and the monotonic clock does not.
// The test changes the wall clock reading of began, but not its monotonic reading. So it is not parallel.
func TestMonotonicTimeIgnoresClockChanges(t *testing.T) {
	const seconds = 30 // where a time.Time with a monotonic reading has the seconds of its wall clock
	_, before := System{}.Read()
	wall := (*uint64)(unsafe.Pointer(&began)) // the only way to set one without the other
	*wall -= 3600 << seconds
	defer func() { *wall += 3600 << seconds }()
	if set := time.Since(began.Round(0)); set < time.Hour {
		t.Fatalf("the test could not set the clock: %v", set)
	}
	if _, after := (System{}).Read(); after < before || after > before+time.Minute {
		t.Errorf("%v have passed, and then %v", before, after)
	}
}
