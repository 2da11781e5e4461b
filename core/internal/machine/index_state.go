package machine

import (
	"broker/core"
	"broker/core/internal/queue"
)

// Jobs in the rarer states are listed in the order of the instant that matters there, so that any page of them is found
// at once: scheduled and retrying ones by when they are due, leased ones by the start of the lease, done and dead ones by
// when they came there; blocked ones by number. Ready jobs are found through their queues. A list costs about 4.4 bytes a
// job.
//
// enlist after the fields that decide the place are set, unlist before they change.

// stateLists holds a list for every state that has one.
type stateLists [len(core.States) + 1]queue.List

// enlist adds a job to the lists of its state.
func (m *Machine) enlist(h uint32, e *entry) {
	if e.has(listed) {
		return
	}
	switch e.state {
	case core.Gone, core.Ready:
		return
	case core.Scheduled, core.Blocked, core.Leased:
	case core.Done:
		m.queueLists(e)[e.state].Push(h, m.sooner)
	case core.Retrying, core.Dead:
		m.queueLists(e)[e.state].Push(h, m.sooner)
		m.joinGroup(h, e)
	}
	e.set(listed)
	m.byState[e.state].Push(h, m.sooner)
}

// unlist takes a job out of the lists of its state; once is enough.
func (m *Machine) unlist(h uint32, e *entry) {
	if !e.has(listed) {
		return
	}
	e.clear(listed)
	m.byState[e.state].Remove(h, m.sooner)
	switch e.state {
	case core.Gone, core.Ready, core.Scheduled, core.Blocked, core.Leased:
	case core.Done:
		m.queueLists(e)[e.state].Remove(h, m.sooner)
	case core.Retrying, core.Dead:
		m.queueLists(e)[e.state].Remove(h, m.sooner)
		m.leaveGroup(h, e)
	}
}

// queueLists are the lists of a job's queue, which has them from the first job that needs one.
func (m *Machine) queueLists(e *entry) *stateLists {
	q := m.queues[e.queue]
	if q.byState == nil {
		q.byState = new(stateLists)
	}
	return q.byState
}

// sooner is the order of two jobs in the list of their state.
func (m *Machine) sooner(a, b uint32) bool {
	x, y := m.jobs.at(a), m.jobs.at(b)
	if s, t := x.listedAt(), y.listedAt(); s != t {
		return s < t
	}
	return x.seq < y.seq
}

// listedAt is the instant that decides a job's place in the list of its state.
func (e *entry) listedAt() core.Instant {
	switch e.state {
	case core.Scheduled, core.Retrying, core.Done, core.Dead:
		return e.readyAt
	case core.Leased:
		return e.leasedAt
	case core.Gone, core.Blocked, core.Ready:
	}
	return 0
}
