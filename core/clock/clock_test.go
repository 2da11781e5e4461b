package clock

import (
	"testing"
	"time"
	"unsafe"
)

// A clock that is set, and a machine that was suspended, look the same: the wall clock jumps and the steady one does not.
// The test sets the wall clock of the moment that spans are counted from, for which it is not parallel, and leaves its
// monotonic reading alone.
func TestSpansGoOnEvenlyWhenTheClockIsSet(t *testing.T) {
	const seconds = 30 // where a time.Time with a monotonic reading has the seconds of its wall clock
	_, before := System{}.Read()
	wall := (*uint64)(unsafe.Pointer(&began)) //nolint:gosec // the only way to set one without the other
	*wall -= 3600 << seconds
	defer func() { *wall += 3600 << seconds }()
	if set := time.Since(began.Round(0)); set < time.Hour {
		t.Fatalf("the test could not set the clock: %v", set)
	}
	if _, after := (System{}).Read(); after < before || after > before+time.Minute {
		t.Errorf("%v have passed, and then %v", before, after)
	}
}
