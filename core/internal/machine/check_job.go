package machine

import (
	"broker/core"
	"broker/core/internal/table"
)

// job checks one job and counts it.
func (c *checker) job(h uint32, e *table.Entry) {
	m := c.m
	q := c.queue(e.Queue)
	c.timer(e.StateTimer != 0)
	c.timer(e.ExpiryTimer != 0)
	if e.Has(table.KeptByQueue) {
		q.keptDone++
		if e.State != core.Done || !e.Has(table.KeepsOutcome|table.Listed) || e.ExpiresAt == 0 {
			c.fail("job %d is %v and kept as a finished one", e.Seq, e.State)
		}
	}
	c.state(h, e)
	c.table.Job(h, e)
	c.limits.Job(h, e)
	c.held(h, e)
	c.watchers.Job(h, e)
	if x := m.table.Optional(h); x != nil {
		c.timer(x.StartTimer != 0)
		if e.State == core.Ready && x.StartBefore != 0 && x.StartTimer == 0 {
			c.fail("job %d is ready and its time to start never ends", e.Seq)
		}
		c.links.Job(e, x)
		c.batches.Member(e, x)
	}
}

// state checks which data a job in its state must and must not have.
func (c *checker) state(h uint32, e *table.Entry) {
	switch e.State {
	case core.Scheduled, core.Retrying:
		if e.StateTimer == 0 {
			c.fail("job %d is %v without a deadline", e.Seq, e.State)
		}
	case core.Leased:
		if e.StateTimer == 0 && e.HolderKind != core.HeldByConn {
			c.fail("job %d is leased without a time limit or a connection", e.Seq)
		}
	case core.Blocked:
		x := c.m.table.Optional(h)
		if !e.Has(table.Broken) && (x == nil || len(x.Waiting) == 0 && x.CallbackFor == 0) {
			c.fail("job %d is blocked by nothing", e.Seq)
		}
	case core.Ready, core.Done, core.Dead:
	case core.Gone:
		c.fail("job %d is gone and still there", e.Seq)
	}
	if e.StateTimer != 0 && (e.State == core.Ready || e.State == core.Blocked || !e.State.Unfinished()) {
		c.fail("job %d is %v and has a deadline", e.Seq, e.State)
	}
	if e.Unique != (table.Digest{}) && !e.State.Unfinished() {
		c.fail("job %d is %v and keeps its unique key", e.Seq, e.State)
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
