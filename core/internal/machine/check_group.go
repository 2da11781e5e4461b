package machine

// eachGroup compares the counters of batches with what was found.
func (c *checker) eachGroup() {
	kids := map[uint64]int{}
	for _, g := range c.m.groups {
		kids[g.Parent]++
	}
	for number, g := range c.m.groups {
		c.timer(g.deadline != 0)
		have := c.groups[number]
		if have == nil {
			have = &group{}
		}
		if have.members != g.members || have.untried != g.untried || have.failing != g.failing || kids[number] != g.kids {
			c.fail("batch %d counts members %d, untried %d, failing %d, children %d; has %d, %d, %d, %d", number,
				g.members, g.untried, g.failing, g.kids, have.members, have.untried, have.failing, kids[number])
		}
		if g.done+g.members+g.Lost != g.Total {
			c.fail("batch %d: %d done, %d live and %d lost make no %d", number, g.done, g.members, g.Lost, g.Total)
		}
	}
	c.openKids()
}

// openKids compares the children each job waits for with those there are.
func (c *checker) openKids() {
	c.m.eachJob(func(_ uint32, e *entry) {
		have := 0
		if e.has(hasExtra) {
			have = c.m.extras[c.m.bySeq.get(e.seq)].openKids
		}
		if have != c.kids[e.seq] {
			c.fail("job %d counts %d open children, has %d", e.seq, have, c.kids[e.seq])
		}
	})
}
