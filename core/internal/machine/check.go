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
