package machine

import (
	"fmt"

	"broker/core"
)

// Check verifies all invariants and returns the first violation. It is for tests and the doctor: it takes time linear in
// everything there is. It recounts all counters and looks for lost wake-ups: available jobs while a client waits for one.
func (m *Machine) Check() error {
	c := checker{m: m, queues: map[uint32]*recount{}, taken: map[*bucket]uint32{}, batches: map[uint64]*batch{}, kids: map[uint64]int{}, workers: map[uint32]int{}, types: map[uint32]int{}, groups: map[uint32]int{}, failures: map[failureKey]int{}, tags: map[uint32]int{}}
	m.eachJob(c.job)
	c.index()
	c.lists()
	c.meters()
	c.eachClient()
	c.eachQueue()
	c.eachBatch()
	c.eachSchedule()
	c.eachWindow()
	c.totals()
	return c.err
}

// checker counts during the walk and keeps the first violation.
type checker struct {
	m       *Machine
	err     error
	queues  map[uint32]*recount
	batches map[uint64]*batch // with recounted members, untried and failing
	kids    map[uint64]int    // children not closed, by parent
	workers map[uint32]int    // leases, by number of the worker's name
	types   map[uint32]int    // jobs, by number of the type
	tags    map[uint32]int    // jobs, by number of the tag
	tagged  int
	groups  map[uint32]int // retrying and dead jobs, by number of the failure group

	failures map[failureKey]int // all retrying and dead jobs
	taken    map[*bucket]uint32 // of shared buckets

	jobs, ids, uniques, extras, notes, firstFails, traces, tallies, stops, watchers, watching, timers, cached, collected int

	leasedBy [len(core.Protocols)]int
	clients  [len(core.Protocols)]int
	class    [3]int
}

// recount holds the recounted values of a queue.
type recount struct {
	state     [len(core.States) + 1]int
	slots     uint32
	perWorker map[uint64]uint32
	members   map[*lane]int
	chains    map[uint32]int // jobs by number of the chain
	free      int            // ready jobs without a key, in an ordered queue
	taken     map[*bucket]uint32
	able      int
	holders   int
	woken     int
	keptDone  int
}

func (c *checker) fail(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf(format, args...)
	}
}

func (c *checker) queue(n uint32) *recount {
	if c.queues[n] == nil {
		c.queues[n] = &recount{perWorker: map[uint64]uint32{}, members: map[*lane]int{}, chains: map[uint32]int{}, taken: map[*bucket]uint32{}}
	}
	return c.queues[n]
}

// timer counts a deadline in use.
func (c *checker) timer(has bool) {
	if has {
		c.timers++
	}
}

// index compares the sizes of the indexes with the counts.
func (c *checker) index() {
	m := c.m
	for _, x := range []struct {
		what      string
		have, saw int
	}{
		{"jobs in the slab", m.jobs.live, c.jobs},
		{"ids in the index", len(m.byID), c.ids},
		{"jobs with something unusual", len(m.optionals), c.extras},
		{"bytes of results", m.collected, c.collected},
		{"jobs with notes", len(m.transients), c.notes},
		{"first failures", len(m.firstFails), c.firstFails},
		{"traces", len(m.traces), c.traces},
		{"tallies", len(m.tallies), c.tallies},
		{"stops", len(m.stops), c.stops},
		{"bytes in the cache", m.cached, c.cached},
	} {
		if x.have != x.saw {
			c.fail("%s: %d, counted %d", x.what, x.have, x.saw)
		}
	}
	chained := 0
	for _, h := range m.byUnique {
		for ; h != 0; h = m.jobs.at(h).uniqueNext {
			chained++
		}
	}
	if chained != c.uniques {
		c.fail("%d jobs have a unique key, %d are found by it", c.uniques, chained)
	}
}

// totals compares the counts with the server's counters, after everything else was walked.
func (c *checker) totals() {
	if c.class != c.m.class {
		c.fail("ready jobs by class %v, counted %v", c.m.class, c.class)
	}
	m := c.m
	total := [len(core.States) + 1]int{}
	for _, q := range c.queues {
		for s, n := range q.state {
			total[s] += n
		}
	}
	if total != m.stats.Jobs {
		c.fail("server counts jobs %v, there are %v", m.stats.Jobs, total)
	}
	if c.leasedBy != m.stats.LeasedBy {
		c.fail("server counts leases %v, there are %v", m.stats.LeasedBy, c.leasedBy)
	}
	if c.clients != m.stats.Clients {
		c.fail("server counts clients %v, there are %v", m.stats.Clients, c.clients)
	}
	if c.timers != m.timers.Len() {
		c.fail("%d deadlines, %d owners", m.timers.Len(), c.timers)
	}
	watchers := len(m.watchers.all)
	for n := m.watchers.free; n != 0; n = m.watchers.at(n).nextJob {
		watchers--
	}
	if watchers != c.watchers || watchers != c.watching {
		c.fail("%d watchers, %d on jobs, %d of clients", watchers, c.watchers, c.watching)
	}
	c.names("worker", &m.workers, c.workers)
	c.names("type", &m.types, c.types)
}

// names compares a table of names with their users.
func (c *checker) names(what string, t *nameTable, used map[uint32]int) {
	for number, refs := range used {
		if t.refs[number] != refs {
			c.fail("%s %q is noted for %d jobs, has %d", what, t.names[number], t.refs[number], refs)
		}
	}
	if len(used) != len(t.number) {
		c.fail("%d names of %ss, %d in use", len(t.number), what, len(used))
	}
}
