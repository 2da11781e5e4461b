package main

import (
	"time"

	"broker/core/clock"
)

// clockShift is set by the linker in programs that test what a wrong clock does. It is empty in released programs.
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

// clock is the clock of the broker: a hostile one has its own.
func (p *process) clock() clock.Monotonic {
	if p.faults != nil {
		return p.faults.Clock
	}
	return processClock()
}
