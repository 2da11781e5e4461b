package machine

import (
	"slices"
	"time"

	"broker/core"
	"broker/core/internal/table"
	"broker/core/internal/timer"
)

func (m *Machine) pauseQueue(c *client, op *core.PauseQueue) {
	n := m.table.QueueNumber(op.Queue)
	if op.For < 0 {
		m.failed(c, op.Tag, core.ErrInvalid)
		return
	}
	if n == 0 || m.queues[n].Hidden { // the queue does not exist for clients
		m.reply(c, core.Reply{Kind: core.Accepted, Tag: op.Tag})
		return
	}
	q := m.queues[n]
	if q.paused != op.Paused {
		m.queueEvent(q, map[bool]core.EventKind{true: core.EventQueuePaused, false: core.EventQueueResumed}[op.Paused])
	}
	until := core.Instant(0)
	if op.Paused && op.For > 0 {
		until = m.table.Now.Add(op.For)
	}
	m.setPause(n, q, op.Paused, until, op.For)
	q.counts.of(c.protocol).paused++
	m.storeQueue(q)
	m.reply(c, core.Reply{Kind: core.Accepted, Tag: op.Tag, Commit: m.table.Promise()})
	m.offer(n)
	m.dropIdle(n)
}

// setPause sets whether a queue is paused, and when the pause ends; zero: when a client resumes the queue.
func (m *Machine) setPause(n uint32, q *jobQueue, paused bool, until core.Instant, span time.Duration) {
	m.table.Timers.Remove(&q.pauseTimer)
	q.paused, q.pausedUntil, q.pausedFor = paused, 0, 0
	if paused && until != 0 {
		q.pausedUntil, q.pausedFor = until, span
		q.pauseTimer = m.table.Timers.Add(until, timer.Owner{Kind: table.TimerPause, Handle: n})
	}
}

// pauseTimeout ends a pause.
func (m *Machine) pauseTimeout(n uint32) {
	q := m.queues[n]
	q.pauseTimer = 0
	m.setPause(n, q, false, 0, 0)
	m.queueEvent(q, core.EventQueueResumed)
	m.storeQueue(q)
	m.offer(n)
	m.dropIdle(n)
}

// shiftPauses keeps the length of pauses when the clock is set by a span; their timers are already adjusted.
func (m *Machine) shiftPauses(by core.Instant) {
	for _, n := range m.table.SortedQueues() {
		if q := m.queues[n]; q.pauseTimer != 0 {
			q.pausedUntil += by
			m.storeQueue(q)
		}
	}
}

// holdQueue is HoldQueue: the client holds a queue, or frees it.
func (m *Machine) holdQueue(c *client, op *core.HoldQueue) {
	if !op.Free {
		n, q := m.queueNamed(op.Queue)
		q.holders++
		c.holding = append(c.holding, n)
		return
	}
	if i := slices.Index(c.holding, m.table.QueueNumber(op.Queue)); i >= 0 {
		m.free(c.holding[i])
		c.holding = slices.Delete(c.holding, i, i+1)
	}
}

// releaseHeldQueues frees the queues that a leaving client holds.
func (m *Machine) releaseHeldQueues(c *client) {
	for _, n := range c.holding {
		m.free(n)
	}
	c.holding = nil
}

// free ends the hold of a client on a queue.
func (m *Machine) free(n uint32) {
	m.queues[n].holders--
	m.dropIdle(n)
}

// drain stops or resumes handing out jobs, and admitting them.
func (m *Machine) drain(c *client, op *core.Drain) {
	m.draining, m.shut = op.On, op.RefuseJobs
	m.stats.Draining, m.stats.Refusing = m.draining, m.shut
	m.reply(c, core.Reply{Kind: core.Accepted, Tag: op.Tag})
	for _, n := range m.table.SortedQueues() { // a queue may be removed when its last job expires
		m.offer(n)
	}
}

// closedTo returns why ephemeral or stored jobs are refused now, or nil.
func (m *Machine) closedTo(ephemeral bool) error {
	switch {
	case m.shut:
		return core.ErrDraining
	case ephemeral:
		return nil
	}
	return m.refuse
}
