package machine

import "broker/core/internal/table"

// eachBatch compares the counters of batches with the counts.
func (c *checker) eachBatch() {
	c.listed()
	kids := map[uint64]*childCount{}
	for _, g := range c.m.batches {
		if kids[g.Parent] == nil {
			kids[g.Parent] = &childCount{}
		}
		kids[g.Parent].count(g, 1)
	}
	for number, g := range c.m.batches {
		c.timer(g.deadline != 0)
		if c.m.batchSlots[g.slot] != g {
			c.fail("batch %d is not in its slot", number)
		}
		if (g.deadline != 0) != (g.Until != 0) {
			c.fail("batch %d has a deadline and no end, or an end and no deadline", number)
		}
		have := c.batches[number]
		if have == nil {
			have = &batch{}
		}
		if k := kids[number]; k != nil {
			have.children = *k
		}
		if have.members != g.members || have.untried != g.untried || have.failing != g.failing || have.children != g.children {
			c.fail("batch %d counts members %d, untried %d, failing %d, children %v; has %d, %d, %d, %v", number,
				g.members, g.untried, g.failing, g.children, have.members, have.untried, have.failing, have.children)
		}
		if g.done+g.members+g.Lost != g.Total {
			c.fail("batch %d: %d done, %d live and %d lost make no %d", number, g.done, g.members, g.Lost, g.Total)
		}
		c.callbacks(g)
	}
	c.openChildren()
}

// listed checks that every batch is in the list, in order.
func (c *checker) listed() {
	seen, last := 0, (*batch)(nil)
	for g := c.m.firstBatch; g != nil; last, g = g, g.newer {
		seen++
		if c.m.batches[g.number] != g || g.older != last || last != nil && last.number >= g.number {
			c.fail("batch %d is out of its list", g.number)
			return
		}
	}
	if seen != len(c.m.batches) || c.m.lastBatch != last {
		c.fail("%d batches, %d in the list", len(c.m.batches), seen)
	}
	if slots := len(c.m.batchSlots) - len(c.m.freeBatches); slots != seen {
		c.fail("%d batches, %d slots", seen, slots)
	}
}

// callbacks checks that no batch withholds a callback that is due.
func (c *checker) callbacks(g *batch) {
	for _, seq := range []uint64{g.CompleteJob, g.SuccessJob} {
		if h := c.m.table.Handle(seq); seq != 0 && (h == 0 || c.m.table.Optional(h).CallbackFor != g.number) {
			c.fail("batch %d waits for its callback %d, which does not know", g.number, seq)
		}
	}
	if g.Committed && g.Complete == 0 && g.untried == 0 && g.children.incomplete == 0 {
		c.fail("batch %d is executed and does not go on", g.number)
	}
}

// openChildren compares each job's count of open children with the real number.
func (c *checker) openChildren() {
	c.m.table.EachJob(func(_ uint32, e *table.Entry) {
		have := 0
		if e.Has(table.HasOptional) {
			have = c.m.table.Optional(c.m.table.Handle(e.Seq)).OpenChildren
		}
		if have != c.kids[e.Seq] {
			c.fail("job %d counts %d open children, has %d", e.Seq, have, c.kids[e.Seq])
		}
	})
}
