package machine

import (
	"strings"
	"time"

	"broker/core"
)

// A follower of a cluster keeps a machine that follows its store, so that it can lead at once: Restore for each job at first,
// then Forget and Restore for each one that has changed. That is the code of recovery: a job that was forgotten and restored is
// as in a machine that was just started. All that does not depend on single jobs waits for Begin and Restored.

// IsPolicy reports whether a metadata entry is the policy of a queue, which is restored before the queue's jobs.
func IsPolicy(name string) bool { return strings.HasPrefix(name, PolicyPrefix) }

// Forget removes a restored job from all indexes, as if it had not been restored.
func (m *Machine) Forget(seq uint64) {
	h := m.bySeq.get(seq)
	if h == 0 {
		return
	}
	e := m.jobs.at(h)
	n, q := e.queue, m.queues[e.queue]
	m.restoring.places.forget(e)
	delete(m.restoring.usedUp, seq)
	delete(m.restoring.stopped, seq)
	delete(m.restoring.scheduled, seq)
	delete(m.restoring.unstored, seq)
	switch lifetimeOf(e.origin) {
	case whileWaitedOn, overRestarts, untilDropped:
	case afterUse:
		q.used--
	case untilRestart:
		q.lasting--
	}
	m.detach(h, e)
	m.unindex(h, e)
	switch {
	case q.jobs() > 0:
	case q.policy != nil:
		m.hide(n, q)
	default:
		m.forgetQueue(n)
	}
}

// ForgetPolicy forgets a policy and the jobs of its queue. It returns their numbers: they must be restored after the policy is.
func (m *Machine) ForgetPolicy(name string) (jobs []uint64) {
	queue := strings.TrimPrefix(name, PolicyPrefix)
	n := m.names[queue]
	if n == 0 {
		return nil
	}
	if m.queues[n].jobs() > 0 {
		m.eachJob(func(_ uint32, e *entry) {
			if e.queue == n {
				jobs = append(jobs, e.seq)
			}
		})
	}
	for _, seq := range jobs {
		m.Forget(seq)
	}
	if q := m.queues[n]; q != nil { // it has a policy
		if q.lanes != nil {
			m.dropBuckets(q.lanes)
		}
		q.lanes, q.policy, q.limits.Throttle = nil, nil, core.Throttle{}
		m.forgetQueue(n)
	}
	return jobs
}

// Jobs is the number of jobs.
func (m *Machine) Jobs() int { return m.jobs.live }

// Leased lists the jobs whose leases go on. A start gives them their full time again.
func (m *Machine) Leased() []uint64 {
	seqs := make([]uint64, 0, m.byState[core.Leased].Len())
	for _, h := range m.byState[core.Leased].Slice(0, cap(seqs), nil) {
		seqs = append(seqs, m.jobs.at(h).seq)
	}
	return seqs
}

// clockSlack is how far the clock may be behind without having been set back.
const clockSlack = 100 * time.Millisecond

// Follow lets time pass for a machine that follows a store: as at a start, scheduled jobs that are due are ready. Other
// deadlines wait for Tick. It returns false if the clock was set back: the machine is of no use then.
func (m *Machine) Follow(now core.Instant) bool {
	if now < m.now.Add(-clockSlack) {
		return false
	}
	m.setNow(now)
	for due := &m.byState[core.Scheduled]; due.Len() > 0; {
		h := due.Front()
		e := m.jobs.at(h)
		if e.readyAt > m.now {
			break
		}
		m.detach(h, e)
		m.makeReady(h, e)
		e.set(untouched)
	}
	return true
}

// places finds out whether the restored jobs have the places that they would have if all had been restored in the order of
// their numbers.
type places struct {
	last      core.Instant // the latest place of a job that was ready on arrival
	seq       uint64       // the highest number of one
	raised    bool         // a job got a later place than its own because of another one
	forgotten bool         // such a job was forgotten
	disorder  bool         // they were not restored in order
}

// arrive gives a job that was ready on arrival its place behind those with smaller numbers, whatever the clock said.
func (m *Machine) arrive(e *entry) {
	e.set(arrived)
	p := &m.restoring.places
	p.disorder, p.seq = p.disorder || e.seq < p.seq, max(p.seq, e.seq)
	p.raised, p.last = p.raised || p.last > e.readyAt, max(p.last, e.readyAt)
	e.readyAt = p.last
}

func (p *places) forget(e *entry) { p.forgotten = p.forgotten || e.has(arrived) }

// settlePlaces gives the jobs that were ready on arrival their places anew if forgotten ones had a part in them.
func (m *Machine) settlePlaces() {
	if p := &m.restoring.places; p.disorder || p.raised && p.forgotten {
		last := core.Instant(0)
		walk := m.bySeq.from(0, false)
		for h := walk.Next(); h != 0; h = walk.Next() {
			e := m.jobs.at(h)
			if !e.has(arrived) {
				continue
			}
			if last = max(last, e.createdAt); e.readyAt != last {
				q := m.queues[e.queue]
				m.removeReady(q, h)
				e.readyAt = last
				m.pushReady(q, h)
			}
		}
	}
	if m.lastPlace <= m.now {
		return
	}
	m.lastPlace = 0 // it may be that of a forgotten job
	m.eachJob(func(_ uint32, e *entry) {
		if e.state == core.Ready || e.has(seqOrder) {
			m.lastPlace = max(m.lastPlace, e.place())
		}
	})
}
