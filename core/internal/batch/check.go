package batch

import (
	"broker/core"
	"broker/core/internal/table"
)

// Check verifies the batches: Member for every job with an Optional, then End.
type Check struct {
	s       *Batches
	fail    func(format string, args ...any)
	counted map[uint64]*Batch // with recounted members, untried and failing
}

// NewCheck starts a check, which calls fail for each violation.
func (s *Batches) NewCheck(fail func(format string, args ...any)) *Check {
	return &Check{s: s, fail: fail, counted: map[uint64]*Batch{}}
}

// Member counts a job in its batch.
func (c *Check) Member(e *table.Entry, x *table.Optional) {
	if x.Batch == 0 || c.s.byNumber[x.Batch] == nil {
		return
	}
	if e.State == core.Done {
		c.fail("job %d is done and still a member of batch %d", e.Seq, x.Batch)
	}
	g := c.counted[x.Batch]
	if g == nil {
		g = &Batch{}
		c.counted[x.Batch] = g
	}
	g.members++
	if x.Tried {
		g.failing++
	} else {
		g.untried++
	}
}

// End compares the counters of batches with the counts, and returns the number of deadlines in use.
func (c *Check) End() (timers int) {
	c.listed()
	children := map[uint64]*childCount{}
	for _, g := range c.s.byNumber {
		if children[g.Parent] == nil {
			children[g.Parent] = &childCount{}
		}
		children[g.Parent].count(g, 1)
	}
	for number, g := range c.s.byNumber {
		if g.deadline != 0 {
			timers++
		}
		if c.s.slots.At(g.slot) != g {
			c.fail("batch %d is not in its slot", number)
		}
		if (g.deadline != 0) != (g.Until != 0) {
			c.fail("batch %d has a deadline and no end, or an end and no deadline", number)
		}
		have := c.counted[number]
		if have == nil {
			have = &Batch{}
		}
		if k := children[number]; k != nil {
			have.children = *k
		}
		if have.members != g.members || have.untried != g.untried || have.failing != g.failing ||
			have.children != g.children {
			c.fail("batch %d counts members %d, untried %d, failing %d, children %v; has %d, %d, %d, %v", number,
				g.members, g.untried, g.failing, g.children, have.members, have.untried, have.failing, have.children)
		}
		if g.members+g.Lost > g.Total {
			c.fail("batch %d: %d live and %d lost members of %d", number, g.members, g.Lost, g.Total)
		}
		c.callbacks(g)
	}
	return timers
}

// listed checks that every batch is in the list, in order.
func (c *Check) listed() {
	seen, last := 0, (*Batch)(nil)
	for g := c.s.first; g != nil; last, g = g, g.newer {
		seen++
		if c.s.byNumber[g.number] != g || g.older != last || last != nil && last.number >= g.number {
			c.fail("batch %d is out of its list", g.number)
			return
		}
	}
	if seen != len(c.s.byNumber) || c.s.last != last {
		c.fail("%d batches, %d in the list", len(c.s.byNumber), seen)
	}
	if slots := c.s.slots.Len(); slots != seen {
		c.fail("%d batches, %d slots", seen, slots)
	}
}

// callbacks checks that no batch withholds a callback that is due.
func (c *Check) callbacks(g *Batch) {
	for _, seq := range []uint64{g.CompleteJob, g.SuccessJob} {
		if h := c.s.table.Handle(seq); seq != 0 && (h == 0 || c.s.table.Optional(h).CallbackFor != g.number) {
			c.fail("batch %d waits for its callback %d, which does not know", g.number, seq)
		}
	}
	if c.s.later == 0 && (g.completeIsDue() || g.successIsDue() || g.endIsDue()) {
		c.fail("batch %d is executed and does not go on", g.number)
	}
}
