package engine

import (
	"time"

	"broker/core"
	"broker/core/clock"
)

// maxDrift is the largest change of the difference between wall clock and monotonic clock from one reading to the next. With
// more, the wall clock counts as set. Time servers slew by far less.
const maxDrift = core.Instant(500 * time.Millisecond / time.Microsecond)

// clockMonitor compares the wall clock with the monotonic one.
type clockMonitor struct {
	wallClock clock.Clock
	clocks    clock.Monotonic // nil: nothing to compare with
	wall      core.Instant
	monotonic time.Duration
}

func newClockMonitor(c clock.Clock) clockMonitor {
	f := clockMonitor{wallClock: c}
	f.clocks, _ = c.(clock.Monotonic)
	if f.clocks != nil {
		f.wall, f.monotonic = f.clocks.Read()
	}
	return f
}

// read returns the time, and by how much the clock was set since the last reading.
func (f *clockMonitor) read() (now, setBy core.Instant) {
	if f.clocks == nil {
		return f.wallClock.Now(), 0
	}
	wall, even := f.clocks.Read()
	by := wall - f.wall.Add(even-f.monotonic)
	f.wall, f.monotonic = wall, even
	if by > -maxDrift && by < maxDrift {
		return wall, 0
	}
	return wall, by
}

// nowLocked reads the clock. If the clock was set, the machine learns that before any decision.
func (e *Engine) nowLocked() core.Instant {
	now, by := e.clockMonitor.read()
	if by != 0 {
		e.machine.ClockSet(now, by)
		e.clockSet += by
	}
	return now
}

// reportClock reports to the listener that the clock was set.
func (e *Engine) reportClock() {
	e.mu.Lock()
	by := e.clockSet
	e.clockSet = 0
	e.mu.Unlock()
	if by != 0 {
		e.opts.Listener.ClockSet(by.Sub(0))
	}
}
