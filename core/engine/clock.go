package engine

import (
	"time"

	"broker/core"
	"broker/core/clock"
)

// maxDrift is by how much the wall clock may run away from the steady one between two looks before that counts as having
// been set. Time servers slew by far less.
const maxDrift = core.Instant(500 * time.Millisecond / time.Microsecond)

// face compares the wall clock with the steady one.
type clockMonitor struct {
	clock  clock.Clock
	steady clock.Steady // nil: nothing to compare with
	wall   core.Instant
	even   time.Duration
}

func newClockMonitor(c clock.Clock) clockMonitor {
	f := clockMonitor{clock: c}
	f.steady, _ = c.(clock.Steady)
	if f.steady != nil {
		f.wall, f.even = f.steady.Read()
	}
	return f
}

// look is the time, and by how much the clock was set since the last look.
func (f *clockMonitor) look() (now, setBy core.Instant) {
	if f.steady == nil {
		return f.clock.Now(), 0
	}
	wall, even := f.steady.Read()
	by := wall - f.wall.Add(even-f.even)
	f.wall, f.even = wall, even
	if by > -maxDrift && by < maxDrift {
		return wall, 0
	}
	return wall, by
}

// nowLocked reads the clock and, if it was set, lets the machine know before anything is decided by it.
func (e *Engine) nowLocked() core.Instant {
	now, by := e.clockMonitor.look()
	if by != 0 {
		e.machine.ClockSet(now, by)
		e.clockSet += by
	}
	return now
}

// tellClock passes on that the clock was set.
func (e *Engine) tellClock() {
	e.mu.Lock()
	by := e.clockSet
	e.clockSet = 0
	e.mu.Unlock()
	if by != 0 {
		e.opts.Listener.ClockSet(by.Sub(0))
	}
}
