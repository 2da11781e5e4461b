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
		event := core.EventQueueResumed
		if op.Paused {
			event = core.EventQueuePaused
		}
		m.queueEvent(q, event)
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
	q.paused, q.pausedFor = paused, 0
	if paused && until != 0 {
		q.pausedFor = span
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

// storePauses stores the ends of pauses again in steps, because they have moved with the clock.
func (m *Machine) storePauses() {
	n := 0
	m.inSteps(func() (more bool) {
		m.table.Touched++
		if n++; n >= len(m.queues) {
			return false
		}
		if q := m.queues[n]; q != nil && q.pauseTimer != 0 {
			m.storeQueue(q)
		}
		return true
	})
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

// free ends the hold of a client on a queue.
func (m *Machine) free(n uint32) {
	m.queues[n].holders--
	m.dropIdle(n)
}

// drain stops or resumes handing out jobs, and admitting them. When it resumes, the clients that wait are served in
// steps, queue by queue.
func (m *Machine) drain(c *client, op *core.Drain) {
	m.draining, m.refusing = op.On, op.RefuseJobs
	m.stats.Draining, m.stats.Refusing = m.draining, m.refusing
	m.reply(c, core.Reply{Kind: core.Accepted, Tag: op.Tag})
	idle := m.resumed == 0
	m.resumed = 0
	if m.draining {
		return
	}
	if m.resumed = 1; idle {
		m.inSteps(m.resumeNext)
	}
}

// resumeNext serves the clients that wait on the next queue after a drain; false: none is left.
func (m *Machine) resumeNext() (more bool) {
	m.table.Touched++
	if m.resumed == 0 || int(m.resumed) >= len(m.queues) {
		m.resumed = 0
		return false
	}
	m.offer(m.resumed)
	m.resumed++
	return true
}

// closedTo returns why ephemeral or stored jobs are refused now, or nil.
func (m *Machine) closedTo(ephemeral bool) error {
	switch {
	case m.refusing:
		return core.ErrDraining
	case ephemeral:
		return nil
	}
	return m.refuse
}
