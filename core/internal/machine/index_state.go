package machine

import (
	"broker/core"
	"broker/core/internal/queue"
)

// Jobs in all states but ready are listed in the order of the instant that matters there, so that any page is found quickly:
// scheduled and retrying jobs by due time, leased ones by the start of the lease, done and dead ones by the time they became so,
// blocked ones by number. Ready jobs are found through their queues. A list costs about 4.4 bytes per job.
//
// Call enlist after the fields that determine the position are set, and unlist before they change.

// stateLists holds the list of each state that has one.
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
		if e.has(keptByQueue) {
			m.queues[e.queue].keptDone.Push(h, m.sooner)
		}
	case core.Retrying, core.Dead:
		m.queueLists(e)[e.state].Push(h, m.sooner)
		m.joinGroup(h, e)
	}
	e.set(listed)
	m.countFailure(e, 1)
	m.byState[e.state].Push(h, m.sooner)
}

// unlist removes a job from the lists of its state; it may be called twice.
func (m *Machine) unlist(h uint32, e *entry) {
	if e.has(listed) {
		m.leaveLists(h, e)
	}
}

func (m *Machine) leaveLists(h uint32, e *entry) {
	m.countFailure(e, -1)
	e.clear(listed)
	m.byState[e.state].Remove(h, m.sooner)
	switch e.state {
	case core.Gone, core.Ready, core.Scheduled, core.Blocked, core.Leased:
	case core.Done:
		m.queueLists(e)[e.state].Remove(h, m.sooner)
		if e.has(keptByQueue) {
			m.queues[e.queue].keptDone.Remove(h, m.sooner)
		}
	case core.Retrying, core.Dead:
		m.queueLists(e)[e.state].Remove(h, m.sooner)
		m.leaveGroup(h, e)
	}
}

// queueLists returns the lists of a job's queue, made for the first job that needs one.
func (m *Machine) queueLists(e *entry) *stateLists {
	q := m.queues[e.queue]
	if q.byState == nil {
		q.byState = new(stateLists)
	}
	return q.byState
}

// sooner orders two jobs in the list of their state.
func (m *Machine) sooner(a, b uint32) bool {
	x, y := m.jobs.at(a), m.jobs.at(b)
	if s, t := x.listedAt(), y.listedAt(); s != t {
		return s < t
	}
	return x.seq < y.seq
}

// listedAt is the instant that determines a job's position in the list of its state.
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
