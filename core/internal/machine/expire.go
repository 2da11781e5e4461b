package machine

import (
	"broker/core"
	"broker/core/internal/timer"
)

// Tick handles the deadlines that are due, at most budget of them; it reports whether more are due.
func (m *Machine) Tick(now core.Instant, budget int) bool {
	m.setNow(now)
	m.actor = nil
	defer m.serveOffers()
	for ; budget > 0; budget-- {
		o, due := m.timers.Due(m.now)
		if !due {
			return false
		}
		// Jobs that become ready together are handed out together, the most urgent first, but before any wait ends.
		if o.Kind != timerState && len(m.offers) > 0 {
			m.serveOffers()
			continue
		}
		if o.Kind == timerSchedule {
			budget -= scheduleCost - 1
		}
		m.timers.PopDue(m.now)
		m.due(o)
	}
	return true
}

// scheduleCost is how many other deadlines a run of a schedule counts for: it computes times and admits a job.
const scheduleCost = 16

func (m *Machine) due(o timer.Owner) {
	switch o.Kind {
	case timerState:
		m.stateDue(o.Handle)
	case timerExpiry:
		m.jobs.at(o.Handle).expiryTimer = 0
		m.expire(o.Handle)
	case timerWait:
		m.waitTimeout(m.clients[o.Handle])
	case timerWatch:
		m.watchTimeout(o.Handle)
	case timerBatch:
		m.batchTimeout(o.Handle)
	case timerIdle:
		m.idleTimeout(o.Handle)
	case timerSchedule:
		m.scheduleDue(o.Handle)
	case timerBucket:
		m.bucketTimeout(o.Handle)
	case timerTypeSlot:
		m.laneSlotTimeout(o.Handle, ofType)
	case timerKeySlot:
		m.laneSlotTimeout(o.Handle, ofKey)
	case timerSlot:
		m.slotTimeout(o.Handle)
	case timerTrim:
		m.trimTimeout(o.Handle)
	case timerSort:
		m.sortTimeout()
	case timerPause:
		m.pauseTimeout(o.Handle)
	case timerStart:
		m.startTimeout(o.Handle)
	case timerWindow:
		m.windowTimeout(o.Handle)
	}
}

// stateDue handles the deadline of a job's state: a schedule or retry that is due, or an expired lease.
func (m *Machine) stateDue(h uint32) {
	e := m.jobs.at(h)
	e.stateTimer = 0
	m.stats.Due[e.state]++
	switch e.state {
	case core.Scheduled:
		m.unlist(h, e)
		m.queues[e.queue].scheduled.Remove(h, m.before)
		m.makeReady(h, e)
	case core.Retrying:
		m.unlist(h, e)
		m.makeReady(h, e)
	case core.Leased:
		m.leaseRanOut(h)
	case core.Gone, core.Blocked, core.Ready, core.Done, core.Dead:
		panic("machine: deadline for a job that is " + e.state.String())
	}
}

// limitStart sets the StartBefore deadline of a job.
func (m *Machine) limitStart(h uint32) {
	if x := m.optionals[h]; x.startBefore != 0 && x.startTimer == 0 {
		x.startTimer = m.timers.Add(x.startBefore, timer.Owner{Kind: timerStart, Handle: h})
	}
}

// startTimeout removes a job that no worker has taken in time. For a job that was taken, the deadline is set again when it
// returns to its queue.
func (m *Machine) startTimeout(h uint32) {
	m.optionals[h].startTimer = 0
	if e := m.jobs.at(h); e.state == core.Ready {
		n := e.queue
		m.expire(h)
		if q := m.queues[n]; q != nil && q.open().Len() > 0 && !m.stale(q.open().Front()) {
			m.offer(n) // it was in front of an available job
		}
	}
}

// expire removes a job whose time to live, StartBefore or retention has passed.
func (m *Machine) expire(h uint32) {
	e := m.jobs.at(h)
	if x := m.optionalState(h); e.state == core.Done && x != nil && !x.isClosed {
		m.retainForChildren(h, e)
		return
	}
	if e.state.Unfinished() {
		m.count(e.origin, e.origin, func(t *core.Totals) { t.Expired++ })
		m.queues[e.queue].counts.Expired++
	}
	m.end(h, &core.Outcome{Cause: core.Expired})
}
