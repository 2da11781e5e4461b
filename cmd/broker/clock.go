package main

import (
	"time"

	"broker/core/clock"
)

// clockShift is set by the linker, in programs that are built to test what a wrong clock does; a released one has none.
var clockShift string

// processClock is the machine's, or the wrong one that was linked in.
func processClock() clock.Clock {
	if clockShift == "" {
		return clock.System{}
	}
	by, err := time.ParseDuration(clockShift)
	if err != nil {
		panic("clockShift: " + err.Error())
	}
	return clock.OffsetClock{Offset: by}
}
