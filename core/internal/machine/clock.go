package machine

import (
	"broker/core"
	"broker/core/internal/timer"
)

// ClockSet follows a change of the wall clock by the span by; it now reads now. Instants named by clients (schedules, times to
// live) follow the clock; running spans (leases, waits, slots) keep their length, so that correcting a clock neither ends every
// lease at once nor extends them by an hour. Queues keep their order.
func (m *Machine) ClockSet(now, by core.Instant) {
	if by < 0 {
		m.firstPlace = m.lastPlace
	}
	m.now = now
	m.meters.ClockSet(now)
	m.history.ClockSet()
	m.timers.Shift(func(o timer.Owner) bool {
		switch o.Kind {
		case timerState:
			return m.jobs.at(o.Handle).state == core.Leased
		case timerWait, timerWatch, timerSlot, timerIdle, timerTrim, timerBucket, timerTypeSlot, timerKeySlot, timerSort, timerPause:
			return true
		}
		return false
	}, by)
	m.shiftPauses(by)
	for _, b := range m.buckets {
		if b != nil {
			b.paid += by
		}
	}
	if by < 0 {
		m.clockSetBack()
	}
}
