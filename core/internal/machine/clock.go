package machine

import (
	"broker/core"
	"broker/core/internal/timer"
)

// ClockSet is told that the wall clock was set by the span by, forward or back, and reads now since. Instants that
// clients have named (schedules, times to live) follow the clock; spans that run (leases, waits, slots) keep their
// length, so that a clock that is put right neither ends every lease at once nor holds them for an hour.
func (m *Machine) ClockSet(now, by core.Instant) {
	m.now = now
	m.today = nil
	m.timers.Shift(func(o timer.Owner) bool {
		switch o.Kind {
		case timerState:
			return m.jobs.at(o.Handle).state == core.Leased
		case timerWait, timerWatch, timerSlot, timerIdle:
			return true
		}
		return false
	}, by)
}
