package machine

import (
	"broker/core"
	"broker/core/internal/timer"
)

// ClockSet follows the wall clock, which was set forward or back by the span by and now reads now. Instants that clients
// have named (schedules, times to live) follow the clock; spans that run (leases, waits, slots) keep their
// length, so that a clock that is put right neither ends every lease at once nor holds them for an hour. Queues keep
// their order.
func (m *Machine) ClockSet(now, by core.Instant) {
	if by < 0 {
		m.firstPlace = m.lastPlace
	}
	m.now = now
	m.endStep(now)
	m.measures.saving = nextRound(now)
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
	if by < 0 {
		m.clockSetBack()
	}
}
