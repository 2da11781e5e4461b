package engine

import "broker/core"

// nowLocked reads the clock. If the time was set, the machine learns that before any decision.
func (e *Engine) nowLocked() core.Instant {
	now, by := e.time.Read()
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
