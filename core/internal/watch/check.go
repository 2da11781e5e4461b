package watch

import (
	"broker/core"
	"broker/core/internal/table"
)

// Check verifies the watchers: Job for every job, Client for every client, then End.
type Check struct {
	s    *Watchers
	fail func(format string, args ...any)

	ofJobs, ofClients, timers int
}

// NewCheck starts a check, which calls fail for each violation.
func (s *Watchers) NewCheck(fail func(format string, args ...any)) *Check {
	return &Check{s: s, fail: fail}
}

// Job walks the watchers of a job.
func (c *Check) Job(h uint32, e *table.Entry) {
	prev, seen, owning := uint32(0), uint32(0), uint32(0)
	for n := e.Watchers; n != 0; n = c.s.At(n).nextJob {
		w := c.s.At(n)
		c.ofJobs++
		seen++
		if w.owns() {
			owning++
		}
		if w.Deadline != 0 {
			c.timers++
		}
		if w.Job != h || w.prevJob != prev {
			c.fail("job %d: watcher %d is out of its list", e.Seq, n)
			return
		}
		prev = n
	}
	if count, owners := c.s.Count(e); count != seen || owners != owning {
		c.fail("job %d counts %d watchers, %d of them owners; has %d, %d", e.Seq, count, owners, seen, owning)
	}
	if c.s.Abandoned(e) && e.State != core.Leased && e.State != core.Done {
		c.fail("job %d waits for a worker though nobody waits for it", e.Seq)
	}
	if e.Watchers != 0 && !e.State.Unfinished() && e.State != core.Dead {
		c.fail("job %d is %v and somebody still waits for it", e.Seq, e.State)
	}
}

// Client walks the watchers of a client.
func (c *Check) Client(slot, own uint32) {
	for n := own; n != 0; n = c.s.At(n).nextOwn {
		c.ofClients++
		if c.s.At(n).Client != slot {
			c.fail("client %d has a watcher of another", slot)
		}
	}
}

// End compares the counts, and returns the number of deadlines in use.
func (c *Check) End() (timers int) {
	all := len(c.s.all)
	for n := c.s.free; n != 0; n = c.s.At(n).nextJob {
		all--
	}
	if all != c.ofJobs || all != c.ofClients {
		c.fail("%d watchers, %d on jobs, %d of clients", all, c.ofJobs, c.ofClients)
	}
	return c.timers
}
