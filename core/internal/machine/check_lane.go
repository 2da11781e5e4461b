package machine

import (
	"slices"

	"broker/core"
	"broker/core/internal/table"
)

// lane checks what a job has of its lane, and counts it.
func (c *checker) lane(h uint32, e *table.Entry, x *jobLimits) {
	all := c.m.queues[e.Queue].lanes
	if x.lane == nil {
		return
	}
	if x.lane.of != all && c.m.queues[e.Queue].sorting {
		for i := range x.lane.slots {
			c.timer(x.lane.slots[i].timer != 0)
			c.shared(&x.lane.slots[i])
		}
		return
	}
	if all == nil || all.names[x.lane.name] != x.lane.lane {
		c.fail("job %d is in a lane that its queue does not have", e.Seq)
		return
	}
	if all.byType && x.lane.name.typ != c.m.table.TypeOf(e) {
		c.fail("job %d has type %q and is in the lane of %q", e.Seq, c.m.table.TypeOf(e), x.lane.name.typ)
	}
	if j := c.m.table.Payload(h); j != nil && all.byKey && x.lane.name.key != "" && x.lane.name.key != keyOf(all.key, j.Tags, j.UniqueKey) {
		c.fail("job %d has key %q and is in the lane of %q", e.Seq, keyOf(all.key, j.Tags, j.UniqueKey), x.lane.name.key)
	}
	q := c.queue(e.Queue)
	q.members[x.lane.lane]++
	for i := range x.lane.slots {
		s := &x.lane.slots[i]
		c.timer(s.timer != 0)
		if s.bucket == nil {
			continue
		}
		c.shared(s)
		q.taken[s.bucket] += s.cost
		if !e.Has(table.Held) || s.bucket != x.lane.buckets[i] {
			c.fail("job %d is %v and has a slot of a bucket", e.Seq, e.State)
		}
	}
}

// lanes checks the lanes and buckets of a queue.
func (c *checker) lanes(q *jobQueue) {
	x := q.lanes
	if x == nil {
		return
	}
	have, ready, open := c.queue(x.queue), 0, 0
	for number, l := range x.slots {
		if l == nil {
			continue
		}
		ready += l.ready.Len()
		if x.names[l.name] != l || int(l.number) != number || l.members != have.members[l] || l.members == 0 {
			c.fail("queue %s: lane %v has number %d and %d jobs, should have %d and %d", q.Name, l.name, l.number, l.members, number, have.members[l])
		}
		c.listOrder(q.Name, &l.ready, core.Ready, l.ready.Len())
		if l.open {
			open++
		}
		if l.open != (l.ready.Len() > 0 && l.blockedBy == nil) {
			c.fail("queue %s: lane %v with %d jobs is open %v, blocked %v", q.Name, l.name, l.ready.Len(), l.open, l.blockedBy != nil)
		}
		if b := l.blockedBy; b != nil && (!c.m.isFullFor(b, l.blockedCost) && b.timer == 0 || !slices.Contains(b.blocked, l)) {
			c.fail("queue %s: lane %v waits for bucket %v, which has room", q.Name, l.name, b.name)
		}
	}
	if ready != q.open().Len() && !q.sorting || open != x.open.Len() {
		c.fail("queue %s: %d jobs and %d open lanes, should be %d and %d", q.Name, ready, x.open.Len(), q.open().Len(), open)
	}
	last := uint32(0)
	for _, n := range x.open.Slice(0, x.open.Len(), nil) {
		if last != 0 && !x.before(last, n) {
			c.fail("queue %s: lanes %v and %v are out of order", q.Name, x.slots[last].name, x.slots[n].name)
		}
		last = n
	}
	for _, b := range c.m.buckets {
		if b != nil && b.of == x {
			c.bucket(q, b, have.taken[b])
		}
	}
}

// shared counts a slot of a shared bucket.
func (c *checker) shared(s *laneSlot) {
	if s.bucket != nil && s.bucket.of == nil {
		c.taken[s.bucket] += s.cost
	}
}

// sharedBuckets checks the shared buckets.
func (c *checker) sharedBuckets() {
	for name, s := range c.m.shared.byName {
		b := s.bucket
		c.timer(b.timer != 0)
		if b.slots != c.taken[b] || c.m.buckets[b.number] != b {
			c.fail("shared limit %s counts %d leases, has %d", name, b.slots, c.taken[b])
		}
		lanes, blocked := map[uint32]int{}, 0
		for n, q := range c.m.queues {
			if q == nil || q.lanes == nil {
				continue
			}
			for _, l := range q.lanes.slots {
				if l == nil || !slices.Contains(l.buckets[ofShared:], b) {
					continue
				}
				if lanes[uint32(n)]++; l.blockedBy == b { //nolint:gosec // a number of a queue
					blocked++
				}
			}
		}
		for _, u := range b.users {
			if lanes[u.queue] != u.lanes {
				c.fail("shared limit %s has %d lanes of queue %d, counts %d", name, lanes[u.queue], u.queue, u.lanes)
			}
		}
		if len(lanes) != len(b.users) || blocked != len(b.blocked) {
			c.fail("shared limit %s has %d queues and %d lanes that wait, counts %d and %d", name, len(lanes), blocked, len(b.users), len(b.blocked))
		}
	}
}

// bucket checks a bucket of a queue.
func (c *checker) bucket(q *jobQueue, b *bucket, taken uint32) {
	c.timer(b.timer != 0)
	sum := uint32(0)
	for _, n := range b.perWorker {
		sum += n
	}
	if b.slots != taken || (sum == 0) != (taken == 0) {
		c.fail("queue %s: bucket %v counts %d leases, %d by worker, has %d", q.Name, b.name, b.slots, sum, taken)
	}
	if b.of.buckets[b.name] != b || c.m.buckets[b.number] != b {
		c.fail("queue %s: bucket %v is not found", q.Name, b.name)
	}
	if len(b.lanes) == 0 && b.slots == 0 && b.timer == 0 && b != b.of.whole {
		c.fail("queue %s: bucket %v is not needed", q.Name, b.name)
	}
}

// sorting checks the walk through the jobs of queues whose limits have changed.
func (c *checker) sorting() {
	s := &c.m.sort
	need := 0
	for _, q := range c.m.queues {
		if q != nil && q.sorting {
			need++
		}
	}
	for _, q := range s.queues {
		if !c.m.queues[q.queue].sorting {
			c.fail("queue %d needs no walk", q.queue)
		}
	}
	if need != len(s.queues) || (s.timer != 0) != (need > 0 || s.retired) {
		c.fail("%d queues need a walk, it is for %d, with a deadline: %v", need, len(s.queues), s.timer != 0)
	}
	c.timer(s.timer != 0)
	for _, b := range c.m.buckets {
		if b != nil && b.isRetired() {
			c.timer(b.timer != 0)
			if !s.retired {
				c.fail("bucket %v belongs to lanes that are gone", b.name)
			}
		}
	}
}

// enough reports whether a waiting lease could have as many jobs as it waits for. Unlike Machine.enough it changes nothing.
func (c *checker) enough(cl *client, op *core.Lease) bool {
	missing := op.Min
	c.m.waiters.Each(cl.waitEntries, func(n uint32) {
		q := c.m.queues[n]
		if missing > 0 && q.Ready.Len() > 0 && !q.paused && !q.sorting && c.m.available(q) > 0 && c.mayHave(q, cl, op) {
			missing -= c.m.availableTo(q, cl, op, missing, false)
		}
	})
	return missing <= 0
}

// mayHave reports whether a queue has a job that a client may have now. Unlike slotFor it changes nothing.
func (c *checker) mayHave(q *jobQueue, cl *client, op *core.Lease) bool {
	if q.lanes == nil {
		if q.open().Len() == 0 {
			return false
		}
		front := q.open().Front()
		return c.m.slotFor(q, cl, op) && !c.m.stale(front) && !exceeds(q.slots, c.m.table.CostOf(front), q.limits.Leased)
	}
	if q.limits.LeasedPerWorker > 0 {
		if key, known := c.m.workerKeyOf(cl, op); known && q.perWorker[key] >= q.limits.LeasedPerWorker {
			return false
		}
	}
	for _, n := range q.lanes.open.Slice(0, q.lanes.open.Len(), nil) {
		l := q.lanes.slots[n]
		if !c.m.limited(q, l) && c.m.workerHasRoom(l, cl, op) && !c.m.stale(l.ready.Front()) {
			return true
		}
	}
	return false
}
