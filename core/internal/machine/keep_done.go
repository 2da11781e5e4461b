package machine

import (
	"strings"
	"time"

	"broker/core"
	"broker/core/internal/table"
	"broker/core/internal/timer"
)

// With KeepDone, finished jobs stay Done for a while. Jobs that are kept only by KeepDone are in the list KeptDone of
// their queue, the oldest first.

// keepDone sets how long finished jobs are kept.
func (m *Machine) keepDone(c *client, op *core.KeepDone) {
	r := op.Retention
	if r.For < 0 || r.Count < 0 {
		m.failed(c, op.Tag, core.ErrInvalid)
		return
	}
	switch {
	case op.Queue == "":
		m.retention = r
	case r == (core.Retention{}):
		delete(m.retentions, op.Queue)
	default:
		m.retentions[strings.Clone(op.Queue)] = r
	}
	for n, q := range m.queues {
		if q != nil && (op.Queue == "" || q.Name == op.Queue) {
			m.setRetention(uint32(n), q)
		}
	}
	m.reply(c, core.Reply{Kind: core.Accepted, Tag: op.Tag})
}

// setRetention applies the Retention of a queue, and removes jobs beyond the new limit.
func (m *Machine) setRetention(n uint32, q *jobQueue) {
	r, own := m.retentions[q.Name]
	if !own {
		r = m.retention
	}
	q.retention = r
	m.trimLater(n, q)
}

// trimLater lets the timer remove jobs while there are too many.
func (m *Machine) trimLater(n uint32, q *jobQueue) {
	if q.surplus() > 0 && q.trimTimer == 0 {
		q.trimTimer = m.table.Timers.Add(m.table.Now, timer.Owner{Kind: table.TimerTrim, Handle: n})
	}
}

// surplus returns how many kept jobs a queue has beyond its limit.
func (q *jobQueue) surplus() int {
	switch {
	case q.retention == (core.Retention{}):
		return q.Kept()
	case q.retention.Count == 0:
		return 0
	}
	return q.Kept() - q.retention.Count
}

// trim removes up to most of the jobs beyond the limit, and leaves the rest to the timer.
func (m *Machine) trim(n uint32, most int) {
	q := m.queues[n]
	for range min(most, q.surplus()) {
		m.dropKept(q.KeptDone.Front())
	}
	if m.queues[n] == q {
		m.trimLater(n, q)
	}
}

// dropKept removes a job that its queue no longer keeps, unless the job itself asks to be kept.
func (m *Machine) dropKept(h uint32) {
	e, x := m.table.At(h), m.table.Optional(h)
	if x == nil || x.AskedUntil <= m.table.Now {
		m.expire(h)
		return
	}
	m.table.Unlist(h, e)
	e.Clear(table.KeptByQueue)
	m.table.Enlist(h, e)
	m.table.ExpireAt(h, e, x.AskedUntil)
	e.Set(table.Changed)
	m.table.Touch(h, e)
}

// trimAtOnce is how many jobs the timer removes together.
const trimAtOnce = 16

// trimTimeout removes some of the jobs beyond the limit.
func (m *Machine) trimTimeout(n uint32) {
	m.queues[n].trimTimer = 0
	m.trim(n, trimAtOnce)
}

// unlimited is how long a job is kept if only the number of jobs is limited.
const unlimited = 100 * 365 * 24 * time.Hour

// keptUntil returns until when a queue keeps a job that finishes now; zero: not at all.
func (m *Machine) keptUntil(q *jobQueue) core.Instant {
	switch {
	case q.retention == (core.Retention{}):
		return 0
	case q.retention.For == 0:
		return m.table.Now.Add(unlimited)
	}
	return m.table.Now.Add(q.retention.For)
}
