package machine

import (
	"slices"

	"broker/core"
	"broker/core/internal/table"
)

// order checks the chains of an ordered queue.
func (c *checker) order(q *jobQueue) {
	x := q.order
	if x == nil {
		return
	}
	have := c.queue(x.queue)
	open := 0
	for key, number := range x.chains {
		if x.slots[number].key != key {
			c.fail("queue %s: chain %d of key %q has key %q", q.Name, number, key, x.slots[number].key)
		}
	}
	for number := range x.slots {
		s := &x.slots[number]
		if s.head == 0 {
			if s.open != 0 || s.rest != nil || have.chains[uint32(number)] != 0 { //nolint:gosec // small
				c.fail("queue %s: chain %d is unused and has jobs", q.Name, number)
			}
			continue
		}
		c.chain(q, uint32(number), have.chains[uint32(number)]) //nolint:gosec // small
		if s.open != 0 {
			open++
		}
	}
	if want := have.free + open; x.open.Len() != want {
		c.fail("queue %s: %d jobs are open, should be %d", q.Name, x.open.Len(), want)
	}
	c.listOrder(q.Name, &x.open, core.Ready, x.open.Len())
	if c.m.orders.handOut || len(c.m.orders.handed) > 0 {
		c.fail("a hand-out has not ended")
	}
}

// chain checks one chain, which has so many jobs.
func (c *checker) chain(q *jobQueue, number uint32, jobs int) {
	m, s := c.m, &q.order.slots[number]
	all := []uint32{s.head}
	if s.rest != nil {
		all = s.rest.Slice(0, s.rest.Len(), all)
	}
	if len(all) != jobs || s.out != 0 || q.order.chains[s.key] != number || s.rest != nil && s.rest.Len() == 0 {
		c.fail("queue %s: chain of %q has %d jobs, should have %d; out %d", q.Name, s.key, len(all), jobs, s.out)
	}
	if !slices.IsSortedFunc(all, func(a, b uint32) int { return int(m.table.At(a).Seq) - int(m.table.At(b).Seq) }) { //nolint:gosec // small
		c.fail("queue %s: the chain of %q is out of order", q.Name, s.key)
	}
	want := uint32(0)
	if m.table.At(s.head).State == core.Ready {
		want = s.head
	}
	if s.open != want {
		c.fail("queue %s: job %d of key %q is open, should be %d", q.Name, m.table.At(s.open).Seq, s.key, m.table.At(want).Seq)
	}
}

// orderPlace checks the place of a job in its ordering, and counts it.
func (c *checker) orderPlace(h uint32, e *table.Entry) {
	x := c.m.queues[e.Queue].order
	if x == nil {
		return
	}
	p := c.m.orderPlaceOf(h, x)
	switch {
	case (p != nil) == e.State.Unfinished():
	case p == nil && c.m.queues[e.Queue].sorting:
	default:
		c.fail("job %d is %v, in the ordering of its queue: %v", e.Seq, e.State, p != nil)
	}
	if p == nil {
		return
	}
	q, number := c.queue(e.Queue), p.chain&^chainReady
	if key := c.m.table.TagKey(h, x.key.Tag); x.slots[number].key != key {
		c.fail("job %d has key %q and is in the chain of %q", e.Seq, key, x.slots[number].key)
	}
	if number == 0 {
		if e.State == core.Ready {
			q.free++
		}
		return
	}
	q.chains[number]++
	if (p.chain&chainReady != 0) != (e.State == core.Ready) {
		c.fail("job %d is %v, in its chain it is ready: %v", e.Seq, e.State, p.chain&chainReady != 0)
	}
}
