package machine

import (
	"broker/core"
	"broker/core/internal/table"
)

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
