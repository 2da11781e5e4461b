package machine

import (
	"strings"
	"time"

	"broker/core"
	"broker/core/internal/limit"
	"broker/core/internal/table"
)

// A follower in a cluster keeps a machine that is up to date with its store, so that it can lead at once. First,
// Restore is called for each job; then Forget and Restore for each job that has changed. This is also the code of
// recovery: after Forget and Restore, a job is the same as in a machine that has just started. Everything that does not
// depend on single jobs waits for Begin and Restored.

// IsRules reports whether a metadata entry has the rules of a queue, which are restored before the queue's jobs.
func IsRules(name string) bool { return strings.HasPrefix(name, limit.RulesPrefix) }

// Forget removes a restored job from all indexes, as if it had not been restored.
func (m *Machine) Forget(seq uint64) {
	h := m.table.Handle(seq)
	if h == 0 {
		return
	}
	e := m.table.At(h)
	n, q := e.Queue, m.queues[e.Queue]
	m.restoring.places.forget(e)
	delete(m.restoring.ended, seq)
	m.schedules.ForgetRestored(seq)
	m.links.ForgetUnstored(seq)
	switch lifetimeOf(e.Origin) {
	case whileWaitedOn, overRestarts, untilDropped:
	case afterUse:
		q.used--
	case untilRestart:
		q.lasting--
	}
	m.detach(h, e)
	m.unindex(h, e)
	switch {
	case q.Jobs() > 0:
	case q.HasRules():
		m.table.Hide(n)
	default:
		m.forgetQueue(n)
	}
}

// ForgetRules forgets the rules and the jobs of a queue. It returns their numbers: they must be restored after the
// rules are.
func (m *Machine) ForgetRules(name string) (jobs []uint64) {
	queue := strings.TrimPrefix(name, limit.RulesPrefix)
	n := m.table.QueueNumber(queue)
	if n == 0 {
		return nil
	}
	if m.queues[n].Jobs() > 0 {
		m.table.EachJob(func(_ uint32, e *table.Entry) {
			if e.Queue == n {
				jobs = append(jobs, e.Seq)
			}
		})
	}
	for _, seq := range jobs {
		m.Forget(seq)
	}
	if m.queues[n] != nil { // it has rules
		m.limits.ForgetRules(n)
		m.forgetQueue(n)
	}
	return jobs
}

// Jobs returns the number of jobs.
func (m *Machine) Jobs() int { return m.table.Live }

// Leased lists the jobs whose leases continue, to be restored again by a start: with another clock they may end
// earlier.
func (m *Machine) Leased() []uint64 {
	seqs := make([]uint64, 0, m.table.ByState[core.Leased].Len())
	for _, h := range m.table.ByState[core.Leased].Slice(0, cap(seqs), nil) {
		seqs = append(seqs, m.table.At(h).Seq)
	}
	return seqs
}

// clockSlack is how far the clock may go back without counting as set back.
const clockSlack = 100 * time.Millisecond

// Follow advances the time of a machine that follows a store: due scheduled jobs become ready, as at a start. Other
// deadlines wait for Tick. It returns false if the clock was set back: the machine is then useless.
func (m *Machine) Follow(now core.Instant) bool {
	if now < m.table.Now.Add(-clockSlack) {
		return false
	}
	m.setNow(now)
	for due := &m.table.ByState[core.Scheduled]; due.Len() > 0; {
		h := due.Front()
		e := m.table.At(h)
		if e.ReadyAt > m.table.Now {
			break
		}
		m.detach(h, e)
		m.makeReady(h, e)
		e.Set(table.Untouched)
	}
	return true
}

// places determines whether the restored jobs have the same places as if all jobs had been restored in the order of
// their numbers.
type places struct {
	last      core.Instant // the latest place of a job that was ready on arrival
	seq       uint64       // the highest number of such a job
	raised    bool         // a job got a later place than its own because of another job
	forgotten bool         // such a job was forgotten
	disorder  bool         // the jobs were not restored in order
}

// arrive places a job that was ready on arrival behind such jobs with smaller numbers, regardless of the clock.
func (m *Machine) arrive(e *table.Entry) {
	e.Set(table.Arrived)
	p := &m.restoring.places
	p.disorder, p.seq = p.disorder || e.Seq < p.seq, max(p.seq, e.Seq)
	p.raised, p.last = p.raised || p.last > e.ReadyAt, max(p.last, e.ReadyAt)
	e.ReadyAt = p.last
}

func (p *places) forget(e *table.Entry) { p.forgotten = p.forgotten || e.Has(table.Arrived) }

// settlePlaces places the jobs that were ready on arrival again if forgotten jobs have affected their places.
func (m *Machine) settlePlaces() {
	if p := &m.restoring.places; p.disorder || p.raised && p.forgotten {
		last := core.Instant(0)
		walk := m.table.From(0, false)
		for h := walk.Next(); h != 0; h = walk.Next() {
			e := m.table.At(h)
			if !e.Has(table.Arrived) {
				continue
			}
			if last = max(last, e.CreatedAt); e.ReadyAt != last {
				q := m.queues[e.Queue]
				m.limits.RemoveReady(&q.Queue, h)
				e.ReadyAt = last
				m.limits.PushReady(&q.Queue, h)
			}
		}
	}
	if m.table.LastPlace <= m.table.Now {
		return
	}
	m.table.LastPlace = 0 // it may come from a forgotten job
	m.table.EachJob(func(_ uint32, e *table.Entry) {
		if e.State == core.Ready || e.Has(table.SeqOrder) {
			m.table.LastPlace = max(m.table.LastPlace, e.Place())
		}
	})
}
