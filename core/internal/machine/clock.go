package machine

import (
	"broker/core"
	"broker/core/internal/table"
	"broker/core/internal/timer"
)

// ClockSet adapts to a change of the wall clock by the span by; the clock now reads now. Times named by clients (schedules,
// times to live) follow the clock. Running spans (leases, waits, slots) keep their length, so correcting the clock by an hour
// neither ends all leases at once nor extends them by an hour. Queues keep their order.
func (m *Machine) ClockSet(now, by core.Instant) {
	if by < 0 {
		m.table.FirstPlace = m.table.LastPlace
	}
	m.table.Now = now
	m.meters.ClockSet(now)
	m.history.ClockSet()
	m.table.Timers.Shift(func(o timer.Owner) bool {
		switch o.Kind {
		case table.TimerState:
			return m.table.At(o.Handle).State == core.Leased
		case table.TimerWait, table.TimerWatch, table.TimerSlot, table.TimerIdle, table.TimerTrim, table.TimerBucket,
			table.TimerTypeSlot, table.TimerKeySlot, table.TimerSort, table.TimerPause, table.TimerUnfit,
			table.TimerConsumer, table.TimerLinks:
			return true
		}
		return false
	}, by)
	m.storeLeases()
	m.shiftPauses(by)
	m.shiftConsumers(by)
	m.limits.ClockSet(by)
	if by < 0 {
		m.schedules.ClockSetBack()
	}
}

// storeLeases stores the ends of leases again, because they have moved with the clock.
func (m *Machine) storeLeases() {
	for _, seq := range m.Leased() {
		h := m.table.Handle(seq)
		if e := m.table.At(h); e.HolderKind != core.HeldByConn && e.Has(table.Changed) {
			m.table.Touch(h, e)
		}
	}
}
