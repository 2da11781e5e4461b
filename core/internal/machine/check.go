package machine

import (
	"fmt"

	"broker/core"
	"broker/core/internal/batch"
	"broker/core/internal/limit"
	"broker/core/internal/link"
	"broker/core/internal/table"
	"broker/core/internal/telemetry"
	"broker/core/internal/watch"
)

// Check verifies all invariants and returns the first violation. It is for tests and the doctor: its time is linear in
// the size of the machine. It recounts all counters and detects lost wake-ups: a client waits for a job although one is
// available.
func (m *Machine) Check() error {
	c := checker{m: m, queues: map[uint32]*recount{}, err: m.overrun}
	c.watchers = m.watchers.NewCheck(c.fail)
	c.links = m.links.NewCheck(c.fail)
	c.table, c.limits, c.batches = m.table.NewCheck(c.fail), m.limits.NewCheck(c.fail), m.batches.NewCheck(c.fail)
	m.table.EachJob(c.job)
	c.timers += c.table.End()
	c.timers += c.limits.End()
	c.meters()
	c.eachClient()
	c.eachConsumer()
	c.eachQueue()
	c.timers += c.batches.End()
	c.timers += c.links.End()
	c.timer(m.steps.timer != 0)
	if (m.steps.timer != 0) != (len(m.steps.left) > 0) {
		c.fail("%d works are left, and a step is due: %v", len(m.steps.left), m.steps.timer != 0)
	}
	c.timers += m.schedules.Check(c.fail, m.stopped != nil)
	c.timers += m.table.CheckWindows(c.fail)
	c.timers += c.watchers.End()
	c.totals()
	return c.err
}

// checker counts during the walk and keeps the first violation.
type checker struct {
	m       *Machine
	err     error
	queues  map[uint32]*recount
	batches *batch.Check
	links   *link.Check

	table  *table.Check
	limits *limit.Check

	watchers *watch.Check
	timers   int

	leasedBy [len(core.Protocols)]int
	clients  [len(core.Protocols)]int
}

// recount holds the recounted values of a queue.
type recount struct {
	able       int
	registered int
	holders    uint32
	woken      int
	keptDone   int
}

func (c *checker) fail(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf(format, args...)
	}
}

func (c *checker) queue(n uint32) *recount {
	if c.queues[n] == nil {
		c.queues[n] = &recount{}
	}
	return c.queues[n]
}

// timer counts a deadline in use.
func (c *checker) timer(has bool) {
	if has {
		c.timers++
	}
}

// totals compares the counts with the server's counters, after everything else was checked.
func (c *checker) totals() {
	m := c.m
	if c.leasedBy != m.stats.LeasedBy {
		c.fail("server counts leases %v, there are %v", m.stats.LeasedBy, c.leasedBy)
	}
	if c.clients != m.stats.Clients {
		c.fail("server counts clients %v, there are %v", m.stats.Clients, c.clients)
	}
	if c.timers != m.table.Timers.Len() {
		c.fail("%d deadlines, %d owners", m.table.Timers.Len(), c.timers)
	}
}

// meters checks the meters.
func (c *checker) meters() {
	var queues []*telemetry.Queue
	for _, q := range c.m.queues[1:] {
		if q != nil {
			queues = append(queues, &q.metered)
		}
	}
	for _, fault := range c.m.meters.Check(queues) {
		c.fail("%s", fault)
	}
}

// job checks one job and counts it.
func (c *checker) job(h uint32, e *table.Entry) {
	m := c.m
	q := c.queue(e.Queue)
	if e.Has(table.KeptByQueue) {
		q.keptDone++
	}
	c.table.Job(h, e)
	c.limits.Job(h, e)
	c.held(h, e)
	c.watchers.Job(h, e)
	if x := m.table.Optional(h); x != nil {
		c.links.Job(e, x)
		c.batches.Member(e, x)
	}
}

// held checks the holder of a job, and counts the lease.
func (c *checker) held(h uint32, e *table.Entry) {
	if e.Has(table.Held) != (e.State == core.Leased) {
		c.fail("job %d is %v, in hands: %v", e.Seq, e.State, e.Has(table.Held))
	}
	if e.State != core.Leased {
		return
	}
	c.leasedBy[e.HolderFrom]++
	switch e.HolderKind {
	case core.HeldByConn:
		if cl := c.m.clients[e.Holder]; cl == nil || int(e.HeldAt) >= len(cl.held) || cl.held[e.HeldAt] != h {
			c.fail("job %d is leased to a connection that does not hold it", e.Seq)
		}
	case core.HeldByWorker, core.HeldByNobody:
	}
}

// eachClient checks clients and counts them in the queues on which they wait. Call it before eachQueue.
func (c *checker) eachClient() {
	m := c.m
	for slot, cl := range m.clients {
		if cl == nil {
			continue
		}
		if !cl.unlisted && !cl.left {
			c.clients[cl.protocol]++
		}
		c.timer(cl.wait != 0)
		for _, h := range cl.held {
			if e := m.table.At(h); e.State != core.Leased || e.Holder != uint32(slot) {
				c.fail("client %d holds job %d, which is %v", slot, e.Seq, e.State)
			}
		}
		for _, a := range cl.abilities {
			c.queue(a.queue).able += a.times
			c.queue(a.queue).registered++
		}
		for _, n := range cl.holding {
			c.queue(n).holders++
		}
		if cl.wakeTarget != 0 {
			c.queue(cl.wakeTarget).woken++
		}
		if waits := cl.parked || cl.sleeping; waits && cl.wakeTarget != 0 {
			c.fail("client %d waits and is woken", slot)
		} else if !waits && cl.waitEntries != 0 {
			c.fail("client %d stands in a line and does not wait", slot)
		}
		if (cl.parked || cl.wakeTarget != 0) != (cl.wait != 0) {
			c.fail("client %d waits without an end, or has an end and does not wait", slot)
		}
		c.watchers.Client(uint32(slot), cl.watches)
	}
}

// eachQueue compares the counters of queues with the counts.
func (c *checker) eachQueue() {
	m, kept := c.m, 0
	for n, q := range m.queues {
		have := c.queue(uint32(n))
		if q == nil {
			if n > 0 && (have.able > 0 || have.holders > 0 || have.woken > 0) {
				c.fail("queue %d is forgotten and in use", n)
			}
			continue
		}
		if q.lifetime == overRestarts {
			kept++
		}
		if q.lifetime >= overRestarts && !q.stored {
			c.fail("queue %s is kept and may be forgotten", q.Name)
		}
		if have.registered != int(q.able) {
			c.fail("queue %s counts %d registered clients, has %d", q.Name, q.able, have.registered)
		}
		if have.able != int(q.workers) || have.woken != int(q.woken) {
			c.fail("queue %s counts workers %d, woken %d; has %d, %d", q.Name, q.workers, q.woken, have.able,
				have.woken)
		}
		c.waiters(q)
		c.timer(q.trimTimer != 0)
		c.timer(q.pauseTimer != 0)
		c.timer(q.unfitTimer != 0)
		if have.holders != q.holders {
			c.fail("queue %s counts %d holders, has %d", q.Name, q.holders, have.holders)
		}
		if !q.paused && q.pauseTimer != 0 {
			c.fail("queue %s is not paused, and its pause ends", q.Name)
		}
		if have.keptDone != q.Kept() || q.surplus() > 0 && q.retention != (core.Retention{}) && q.trimTimer == 0 {
			c.fail("queue %s keeps %d finished jobs, counts %d, %d too many", q.Name, have.keptDone, q.Kept(),
				q.surplus())
		}
		if q.idleTimer != 0 {
			c.timers++
		} else if m.idle(q) && q.lifetime < untilRestart {
			c.fail("queue %s is idle and still there", q.Name)
		}
	}
	if kept != m.kept {
		c.fail("%d queues are kept, counted %d", m.kept, kept)
	}
}

// waitingLeases checks the number of clients that wait for a lease without a registration.
func (c *checker) waitingLeases(q *jobQueue) {
	n := 0
	c.m.waiters.All(&q.waitList, func(slot uint32) {
		if cl := c.m.clients[slot]; cl != nil && !cl.waitsByAbility() {
			n++
		}
	})
	if n != q.waitList.Counted() {
		c.fail("queue %s: counts %d waiting leases, has %d", q.Name, q.waitList.Counted(), n)
	}
}

// waiters checks that no client waits while there is a job for it. A client waits with a lease, or is a sleeping worker
// that was not woken although there are more jobs than woken workers.
func (c *checker) waiters(q *jobQueue) {
	c.waitingLeases(q)
	m := c.m
	m.waiters.All(&q.waitList, func(slot uint32) {
		cl := m.clients[slot]
		if cl == nil || !cl.parked && !cl.sleeping {
			c.fail("queue %s: client %d stands in line and does not wait", q.Name, slot)
			return
		}
		op := &cl.lease
		if cl.sleeping {
			op = &asleep
		}
		if m.stopped != nil || m.draining || m.resumed != 0 || q.paused || q.Sorting || q.walks ||
			len(cl.releases) > 0 ||
			m.available(q) <= 0 || m.available(q) <= int(q.woken) && m.opts.Wakeup < 0 ||
			!m.limits.MayHave(&q.Queue, askerFor(cl, op), c.dropped(q)) ||
			cl.parked && op.Min > 1 && (c.walked(cl) || !c.enough(cl, op)) {
			return
		}
		if cl.parked {
			c.fail("queue %s: a lease waits beside %d ready jobs", q.Name, q.Ready.Len())
		} else if m.opts.Wakeup <= 0 {
			c.fail("queue %s: a worker sleeps beside %d ready jobs, %d are on their way", q.Name, q.Ready.Len(),
				q.woken)
		}
	})
}

// dropped returns a function that reports whether a timer removes a job of the queue before it is handed out.
func (c *checker) dropped(q *jobQueue) func(h uint32) bool {
	return func(h uint32) bool { return c.m.stale(h) || q.unfitTimer != 0 }
}

// walked reports whether a step will look at a client, for one of its queues.
func (c *checker) walked(cl *client) (is bool) {
	c.m.waiters.Each(cl.waitEntries, func(n uint32) { is = is || c.m.queues[n].walks })
	return is
}

// enough reports whether a waiting lease could get as many jobs as it waits for. Unlike Machine.enough, it changes
// nothing.
func (c *checker) enough(cl *client, op *core.Lease) bool {
	missing := op.Min
	c.m.waiters.Each(cl.waitEntries, func(n uint32) {
		q := c.m.queues[n]
		if missing > 0 && q.Ready.Len() > 0 && !q.paused && !q.Sorting && c.m.available(q) > 0 &&
			c.m.limits.MayHave(&q.Queue, askerFor(cl, op), c.dropped(q)) {
			missing -= c.m.availableTo(q, cl, op, missing, false)
		}
	})
	return missing <= 0
}

// eachConsumer recounts the workers that are not registered.
func (c *checker) eachConsumer() {
	m := c.m
	workers, jobs, clients := map[*jobQueue]int{}, map[*consumer]int{}, map[*consumer]int{}
	m.table.EachJob(func(h uint32, e *table.Entry) {
		if e.State == core.Leased && e.Has(table.Held) {
			switch e.HolderKind {
			case core.HeldByConn:
			case core.HeldByWorker:
				jobs[m.consumers.byName[m.table.Workers.NameOf(e.Holder)]]++
			case core.HeldByNobody:
				jobs[m.consumers.all[e.Holder]]++
			}
		}
	})
	for _, cl := range m.clients {
		if cl != nil {
			clients[cl.own]++
			clients[cl.named]++
		}
	}
	for _, k := range m.consumers.all {
		if k == nil {
			continue
		}
		holds, idle, listed := 0, 0, 0
		for q, d := range k.queues {
			workers[q]++
			holds += d.holds
			if d.waits == 0 && d.holds == 0 {
				if idle++; d.place == nil {
					c.fail("worker %d (%q) does not list its demand for %s", k.number, k.name, q.Name)
				}
			}
			if d.place != nil {
				listed++
			}
		}
		for e := k.asked.Front(); e != nil; e = e.Next() {
			if listed--; e.Next() != nil && demandAt(e).askedAt > demandAt(e.Next()).askedAt {
				c.fail("worker %d (%q) lists its demand for %s too early", k.number, k.name, demandAt(e).queue.Name)
			}
		}
		c.timer(k.timer != 0)
		if holds != k.jobs || jobs[k] > k.jobs || clients[k] != k.clients || idle != k.idle || listed != 0 ||
			idle > 0 && k.timer == 0 && !k.forgetting {
			c.fail("worker %d (%q) counts %d jobs, %d clients; has %d and %d jobs, %d clients",
				k.number, k.name, k.jobs, k.clients, holds, jobs[k], clients[k])
		}
	}
	for _, q := range m.queues {
		if q != nil && workers[q] != int(q.consumers) {
			c.fail("queue %s counts %d workers that are not registered, has %d", q.Name, q.consumers, workers[q])
		}
	}
}
