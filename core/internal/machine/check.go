package machine

import (
	"fmt"

	"broker/core"
)

// Check walks everything and states the first invariant that is broken. For tests: it is linear in all there is.
func (m *Machine) Check() error {
	counts := map[uint32]*[len(core.States) + 1]int{}
	live, ids := 0, 0
	var err error
	fail := func(format string, args ...any) {
		if err == nil {
			err = fmt.Errorf(format, args...)
		}
	}
	m.eachJob(func(h uint32, e *entry) {
		live++
		if counts[e.queue] == nil {
			counts[e.queue] = &[len(core.States) + 1]int{}
		}
		counts[e.queue][e.state]++
		if m.bySeq.get(e.seq) != h {
			fail("job %d is not found by its number", e.seq)
		}
		if e.id != (digest{}) {
			ids++
			if m.byID[e.id] != h {
				fail("job %d is not found by its id", e.seq)
			}
		}
		if err == nil {
			err = m.checkJob(h, e)
		}
	})
	if live != m.jobs.live {
		fail("%d jobs in the slab, %d counted", m.jobs.live, live)
	}
	if ids != len(m.byID) {
		fail("%d ids in the index, %d jobs have one", len(m.byID), ids)
	}
	total := [len(core.States) + 1]int{}
	for n, q := range m.queues {
		if q == nil {
			continue
		}
		have := counts[uint32(n)]
		if have == nil {
			have = &[len(core.States) + 1]int{}
		}
		if *have != q.count {
			fail("queue %s counts %v, has %v", q.name, q.count, *have)
		}
		for s, k := range q.count {
			total[s] += k
		}
		if err == nil {
			err = m.checkQueue(q)
		}
	}
	if total != m.stats.Jobs {
		fail("server counts %v, queues have %v", m.stats.Jobs, total)
	}
	if err == nil {
		err = m.checkClients()
	}
	return err
}

func (m *Machine) checkJob(h uint32, e *entry) error {
	hasTimer := e.stateTimer != 0
	switch e.state {
	case core.Scheduled, core.Retrying:
		if !hasTimer {
			return fmt.Errorf("job %d is %v without a deadline", e.seq, e.state)
		}
	case core.Leased:
		if e.holderKind == core.HeldByConn {
			c := m.clients[e.holder]
			if c == nil || int(e.heldAt) >= len(c.held) || c.held[e.heldAt] != h {
				return fmt.Errorf("job %d is leased to a connection that does not hold it", e.seq)
			}
		} else if !hasTimer {
			return fmt.Errorf("job %d is leased for ever without a connection", e.seq)
		}
	case core.Blocked:
		x := m.rare(h)
		if x == nil || len(x.waiting) == 0 && x.callbackFor == 0 && !e.has(broken) {
			return fmt.Errorf("job %d is blocked by nothing", e.seq)
		}
		for _, seq := range x.waiting {
			if m.bySeq.get(seq) == 0 {
				return fmt.Errorf("job %d waits for job %d, which is gone", e.seq, seq)
			}
		}
	case core.Ready, core.Done, core.Dead:
		if hasTimer {
			return fmt.Errorf("job %d is %v and has a deadline", e.seq, e.state)
		}
	case core.Gone:
		return fmt.Errorf("job %d is gone and still there", e.seq)
	}
	if e.has(hasExtra) != (m.extras[h] != nil) || e.has(hasNote) != (m.notes[h] != nil) {
		return fmt.Errorf("job %d: flags and side maps disagree", e.seq)
	}
	if e.has(ephemeral) && e.watchers == 0 && e.state != core.Leased && e.state != core.Done {
		return fmt.Errorf("job %d waits for a worker though nobody waits for it", e.seq)
	}
	if m.jobs.payload(h) == nil && !e.has(settled) {
		return fmt.Errorf("job %d has no payload in memory and none on disk", e.seq)
	}
	return nil
}

func (m *Machine) checkQueue(q *jobQueue) error {
	if q.ready.Len() != q.count[core.Ready] || q.scheduled.Len() != q.count[core.Scheduled] {
		return fmt.Errorf("queue %s: lists of %d and %d, counts %v", q.name, q.ready.Len(), q.scheduled.Len(), q.count)
	}
	if sum := q.class[0] + q.class[1] + q.class[2]; sum != q.count[core.Ready] {
		return fmt.Errorf("queue %s: classes %v, %d ready", q.name, q.class, q.count[core.Ready])
	}
	last := uint32(0)
	for _, h := range q.ready.Slice(0, q.ready.Len(), nil) {
		if e := m.jobs.at(h); e.state != core.Ready {
			return fmt.Errorf("queue %s: job %d in the list is %v", q.name, e.seq, e.state)
		}
		if last != 0 && !m.before(last, h) {
			return fmt.Errorf("queue %s: job %d is out of order", q.name, m.jobs.at(h).seq)
		}
		last = h
	}
	if slot, _ := m.waiters.First(&q.line); slot != 0 && m.clients[slot].parked && !q.paused &&
		q.ready.Len() > q.woken && q.limits.Throttle == (core.Throttle{}) {
		return fmt.Errorf("queue %s: a lease waits beside %d ready jobs", q.name, q.ready.Len())
	}
	return nil
}

func (m *Machine) checkClients() error {
	for _, c := range m.clients {
		if c == nil {
			continue
		}
		for _, h := range c.held {
			if m.jobs.at(h).state != core.Leased {
				return fmt.Errorf("client %d holds a job that is %v", c.slot, m.jobs.at(h).state)
			}
		}
		if (c.parked || c.sleeping) && c.wokenFor != 0 {
			return fmt.Errorf("client %d waits and is woken", c.slot)
		}
	}
	return nil
}
