package main

import (
	"time"

	"broker/core/clock"
)

// clockShift is set by the linker in programs that test wrong clocks. It is empty in released programs.
var clockShift string

// processClock is the system clock, shifted by clockShift.
func processClock() clock.Monotonic {
	if clockShift == "" {
		return clock.System{}
	}
	by, err := time.ParseDuration(clockShift)
	if err != nil {
		panic("clockShift: " + err.Error())
	}
	return clock.OffsetClock{Offset: by}
}
