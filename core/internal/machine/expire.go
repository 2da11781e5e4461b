package machine

import (
	"broker/core"
	"broker/core/internal/table"
	"broker/core/internal/timer"
)

// Tick handles at most budget due deadlines; it reports whether more are due.
func (m *Machine) Tick(now core.Instant, budget int) (more bool) {
	m.setNow(now)
	m.actor = nil
	m.freshEffort()
	m.timeouts(budget)
	m.serveOffers() // it may leave something for a step that is due now
	m.judgeStep("A Tick", budget)
	_, more = m.table.Timers.Due(m.table.Now)
	return more
}

// timeouts handles up to budget deadlines that have passed.
func (m *Machine) timeouts(budget int) {
	for ; budget > 0; budget-- {
		o, due := m.table.Timers.Due(m.table.Now)
		if !due {
			return
		}
		// Jobs that become ready together are handed out together, the most urgent first. This happens before any
		// wait times out.
		if o.Kind != table.TimerState && len(m.offers) > 0 {
			m.serveOffers()
			continue
		}
		if o.Kind == table.TimerSchedule {
			budget -= scheduleCost - 1
		}
		if o.Kind == table.TimerLinks || o.Kind == table.TimerSteps {
			budget = 1 // a step is as long as a Tick may be
		}
		m.table.Timers.PopDue(m.table.Now)
		m.due(o)
	}
}

// scheduleCost is how many ordinary deadlines the run of a schedule counts as: it computes times and admits a job.
const scheduleCost = 16

func (m *Machine) due(o timer.Owner) {
	switch o.Kind {
	case table.TimerState:
		m.stateDue(o.Handle)
	case table.TimerExpiry:
		m.table.At(o.Handle).ExpiryTimer = 0
		m.expire(o.Handle)
	case table.TimerWait:
		m.waitTimeout(m.clients[o.Handle])
	case table.TimerWatch:
		m.watchTimeout(o.Handle)
	case table.TimerBatch:
		m.batchTimeout(o.Handle)
	case table.TimerIdle:
		m.idleTimeout(o.Handle)
	case table.TimerSchedule:
		m.scheduleDue(o.Handle)
	case table.TimerBucket:
		m.limits.BucketTimeout(o.Handle)
	case table.TimerSlot, table.TimerTypeSlot, table.TimerKeySlot:
		m.limits.SlotTimeout(o.Handle, o.Kind)
	case table.TimerTrim:
		m.trimTimeout(o.Handle)
	case table.TimerSort:
		m.limits.SortTimeout()
	case table.TimerPause:
		m.pauseTimeout(o.Handle)
	case table.TimerStart:
		m.startTimeout(o.Handle)
	case table.TimerUnfit:
		m.unfitTimeout(o.Handle)
	case table.TimerConsumer:
		m.consumerTimeout(o.Handle)
	case table.TimerWindow:
		m.table.WindowTimeout(o.Handle)
	case table.TimerLinks:
		m.linksDue()
	case table.TimerSteps:
		m.stepsDue()
	}
}

// stateDue handles the deadline of a job's state: a schedule or retry that is due, or an expired lease.
func (m *Machine) stateDue(h uint32) {
	e := m.table.At(h)
	e.StateTimer = 0
	m.stats.Due[e.State]++
	switch e.State {
	case core.Scheduled:
		m.table.Unlist(h, e)
		m.queues[e.Queue].Scheduled.Remove(h, m.table.Before)
		m.makeReady(h, e)
	case core.Retrying:
		m.table.Unlist(h, e)
		m.makeReady(h, e)
	case core.Leased:
		m.leaseRanOut(h)
	case core.Gone, core.Blocked, core.Ready, core.Done, core.Dead:
		panic("machine: deadline for a job that is " + e.State.String())
	}
}

// limitStart sets the StartBefore deadline of a job.
func (m *Machine) limitStart(h uint32) {
	if x := m.table.Optional(h); x.StartBefore != 0 && x.StartTimer == 0 {
		x.StartTimer = m.table.Timers.Add(x.StartBefore, timer.Owner{Kind: table.TimerStart, Handle: h})
	}
}

// startTimeout removes a job that no worker has taken in time. For a job that was taken, the deadline is set again when
// it returns to its queue.
func (m *Machine) startTimeout(h uint32) {
	m.table.Optional(h).StartTimer = 0
	if e := m.table.At(h); e.State == core.Ready {
		n := e.Queue
		m.expire(h)
		if q := m.queues[n]; q != nil && q.Open().Len() > 0 && !m.stale(q.Open().Front()) {
			m.offer(n) // an available job was behind it
		}
	}
}

// expire removes a job whose time to live, StartBefore or retention has passed.
func (m *Machine) expire(h uint32) {
	e := m.table.At(h)
	if x := m.table.Optional(h); e.State == core.Done && x != nil && !x.IsClosed {
		m.retainForChildren(h, e)
		return
	}
	if e.State.Unfinished() {
		m.count(e.Origin, e.Origin, func(t *core.Totals) { t.Expired++ })
		m.queues[e.Queue].counts.expired++
	}
	m.end(h, &core.Outcome{Cause: core.Expired})
}

// ClockSet adapts to a change of the wall clock by the span by; the clock now reads now. Times named by clients
// (schedules, times to live) follow the clock. Running spans (leases, waits, slots) keep their length, so correcting
// the clock by an hour neither ends all leases at once nor extends them by an hour. Queues keep their order.
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
			table.TimerConsumer, table.TimerLinks, table.TimerSteps:
			return true
		}
		return false
	}, by)
	m.freshEffort()
	m.storeLeases()
	m.storePauses()
	m.shiftConsumers(by)
	m.limits.ClockSet(by)
	if by < 0 {
		m.schedules.ClockSetBack()
	}
}

// storeLeases stores the ends of leases again in steps, because they have moved with the clock.
func (m *Machine) storeLeases() {
	left := m.Leased()
	m.inSteps(func() (more bool) {
		if len(left) == 0 {
			return false
		}
		m.table.Touched++
		h := m.table.Handle(left[0])
		left = left[1:]
		if h == 0 {
			return true
		}
		if e := m.table.At(h); e.State == core.Leased && e.HolderKind != core.HeldByConn && e.Has(table.Changed) {
			m.table.Touch(h, e)
		}
		return true
	})
}
