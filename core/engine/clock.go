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
	m := clockMonitor{wallClock: c}
	m.clocks, _ = c.(clock.Monotonic)
	if m.clocks != nil {
		m.wall, m.monotonic = m.clocks.Read()
	}
	return m
}

// read returns the time, and by how much the clock was set since the last reading.
func (m *clockMonitor) read() (now, setBy core.Instant) {
	if m.clocks == nil {
		return m.wallClock.Now(), 0
	}
	wall, monotonic := m.clocks.Read()
	by := wall - m.wall.Add(monotonic-m.monotonic)
	m.wall, m.monotonic = wall, monotonic
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
