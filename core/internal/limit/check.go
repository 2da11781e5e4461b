package limit

import (
	"maps"
	"slices"

	"broker/core"
	"broker/core/internal/queue"
	"broker/core/internal/table"
)

// Check verifies limits: Job for every job, then End. Its time is linear in the number of jobs and limits.
type Check struct {
	r    *Rules
	fail func(format string, args ...any)

	timers, jobs int
	queues       map[uint32]*limitCount
	slots        map[*bucket]*slotCount
}

// slotCount holds the recounted slots of a bucket.
type slotCount struct {
	slots     uint32
	perWorker map[uint64]uint32
}

// limitCount holds the recounted values of a queue.
type limitCount struct {
	members map[*lane]int
	chains  map[uint32]int // jobs, by number of the chain
	free    int            // ready jobs without a key, in an ordered queue
}

// NewCheck starts a check, which calls fail for each violation.
func (r *Rules) NewCheck(fail func(format string, args ...any)) *Check {
	return &Check{r: r, fail: fail, queues: map[uint32]*limitCount{}, slots: map[*bucket]*slotCount{}}
}

func (c *Check) counted(n uint32) *limitCount {
	if c.queues[n] == nil {
		c.queues[n] = &limitCount{members: map[*lane]int{}, chains: map[uint32]int{}}
	}
	return c.queues[n]
}

// count counts a deadline in use.
func (c *Check) count(has bool) {
	if has {
		c.timers++
	}
}

// Job checks one job and counts it.
func (c *Check) Job(h uint32, e *table.Entry) {
	q, x := c.r.queues[e.Queue], c.r.limitsOf(h)
	if q.lanes != nil && !q.Sorting && e.State != core.Done && (x == nil || x.lane == nil) {
		c.fail("job %d is in no lane", e.Seq)
	}
	c.orderPlace(h, e)
	if x == nil {
		return
	}
	c.jobs++
	for i := range x.slots {
		c.slot(h, &x.slots[i])
	}
	if len(x.slots) > 0 && (e.State != core.Leased || !e.Has(table.Held)) {
		c.fail("job %d is %v and has slots", e.Seq, e.State)
	}
	if len(x.slots) > ofQueue && x.slots[ofQueue].bucket != nil && x.slots[ofQueue].bucket != q.whole {
		c.fail("job %d has a slot in another bucket than its queue", e.Seq)
	}
	c.lane(h, e, x)
}

// slot counts a slot of a job.
func (c *Check) slot(h uint32, s *bucketSlot) {
	c.count(s.timer != 0)
	if s.bucket == nil {
		return
	}
	have := c.taken(s.bucket)
	have.slots += c.r.table.CostOf(h)
	have.perWorker[s.worker]++
}

// taken returns the recounted slots of a bucket.
func (c *Check) taken(b *bucket) *slotCount {
	if c.slots[b] == nil {
		c.slots[b] = &slotCount{perWorker: map[uint64]uint32{}}
	}
	return c.slots[b]
}

// End compares the counts, and returns the number of deadlines in use.
func (c *Check) End() (timers int) {
	ruled := 0
	for n, q := range c.r.queues {
		if q == nil {
			continue
		}
		if q.rules != nil {
			at := c.r.ruled.Search(func(o uint32) bool { return c.r.byName(o, uint32(n)) })
			if ruled++; c.r.ruled.At(at) != uint32(n) {
				c.fail("queue %s is not in the list of those with rules", q.Name)
			}
		}
		if b := q.whole; b != nil {
			if b.queue != uint32(n) || b.of != nil || b.slots == 0 && b.limit == (core.Throttle{}) {
				c.fail("queue %s has a bucket that it does not need, or that of queue %d", q.Name, b.queue)
			}
			c.bucket(b)
		}
		c.lanes(q)
		c.order(q)
	}
	if c.r.ruled.Len() != ruled {
		c.fail("%d queues with rules are listed, %d have some", c.r.ruled.Len(), ruled)
	}
	c.sorting()
	c.sharedBuckets()
	if o := &c.r.orders; o.pages != nil && (o.newest == 0 || c.r.table.Live == 0) {
		c.fail("%d pages of places, and no job has one", len(o.pages))
	}
	if have := c.r.limitedJobs.Len(); have != c.jobs {
		c.fail("%d jobs with limits, counted %d", have, c.jobs)
	}
	return c.timers
}

// lane checks the lane of a job, and counts the job.
func (c *Check) lane(h uint32, e *table.Entry, x *jobLimits) {
	all := c.r.queues[e.Queue].lanes
	if x.lane == nil {
		return
	}
	if x.lane.of != all && c.r.queues[e.Queue].Sorting {
		return
	}
	if all == nil || all.names[x.lane.name] != x.lane {
		c.fail("job %d is in a lane that its queue does not have", e.Seq)
		return
	}
	if all.byType && x.lane.name.typ != c.r.table.TypeOf(e) {
		c.fail("job %d has type %q and is in the lane of %q", e.Seq, c.r.table.TypeOf(e), x.lane.name.typ)
	}
	if j := c.r.table.Payload(h); j != nil && all.byKey && x.lane.name.key != "" &&
		x.lane.name.key != KeyOf(all.key, j.Tags, j.UniqueKey) {
		c.fail("job %d has key %q and is in the lane of %q", e.Seq, KeyOf(all.key, j.Tags, j.UniqueKey),
			x.lane.name.key)
	}
	q := c.counted(e.Queue)
	q.members[x.lane]++
	for i := range x.slots {
		if b := x.slots[i].bucket; i >= ofType && b != nil && b != x.lane.buckets[i] {
			c.fail("job %d has a slot in another bucket than its lane", e.Seq)
		}
	}
}

// lanes checks the lanes and buckets of a queue.
func (c *Check) lanes(q *Queue) {
	x := q.lanes
	if x == nil {
		return
	}
	have, ready, inGroups := c.counted(x.queue), 0, 0
	use := map[*bucket]laneUse{}
	for l := range x.slots.All() {
		ready += l.ready.Len()
		if x.names[l.name] != l || x.slots.At(l.number) != l || l.members != have.members[l] || l.members == 0 {
			c.fail("queue %s: lane %v with number %d has %d jobs, should have %d", q.Name, l.name, l.number, l.members,
				have.members[l])
		}
		if l.buckets[ofQueue] != q.inForce() {
			c.fail("queue %s: lane %v has the bucket of a former limit of the queue", q.Name, l.name)
		}
		c.listOrder(q, &l.ready, core.Ready, l.ready.Len())
		if (l.group != nil) != (l.ready.Len() > 0) {
			c.fail("queue %s: lane %v with %d jobs is in a group: %v", q.Name, l.name, l.ready.Len(), l.group != nil)
		}
		if g := l.group; g != nil {
			inGroups++
			its := g.under == l.byType || g.under == l.byKey
			if !its || g.under.groups[g.cost] != g || g.cost != c.r.table.CostOf(l.ready.Front()) {
				c.fail("queue %s: lane %v is in a group of another constraint or cost", q.Name, l.name)
			}
		}
		for _, b := range l.buckets {
			if b != nil {
				use[b] = laneUse{use[b].lanes + 1, use[b].ready + l.ready.Len()}
			}
		}
	}
	if ready != q.Open().Len() && !q.Sorting {
		c.fail("queue %s: %d jobs in lanes, should be %d", q.Name, ready, q.Open().Len())
	}
	c.groups(q, x, inGroups)
	for _, u := range x.users {
		if want := (laneUse{u.lanes, u.ready}); use[u.of] != want || u.of.users[x.queue] != u {
			c.fail("queue %s: lanes under shared limit %s are %v, counts %v", q.Name, u.of.name.of, use[u.of], want)
		}
	}
	for b := range c.r.buckets.All() {
		if b.of == x {
			if want := (laneUse{b.lanes, b.ready}); use[b] != want {
				c.fail("queue %s: lanes of bucket %v are %v, counts %v", q.Name, b.name, use[b], want)
			}
			if c.bucket(b); b.of.buckets[b.name] != b {
				c.fail("queue %s: bucket %v is not found", q.Name, b.name)
			}
			if b.lanes == 0 && b.slots == 0 && b.timer == 0 {
				c.fail("queue %s: bucket %v is not needed", q.Name, b.name)
			}
		}
	}
}

// laneUse counts the lanes of a bucket and their ready jobs.
type laneUse struct{ lanes, ready int }

// groups checks the groups of a queue, which must have some lanes.
func (c *Check) groups(q *Queue, x *lanes, lanes int) {
	open := 0
	for g := range x.groups.All() {
		lanes -= g.lanes.Len()
		if g.open {
			open++
		}
		if g.open != (g.lanes.Len() > 0 && g.blockedBy == nil) {
			c.fail("queue %s: group %d with %d lanes is open: %v", q.Name, g.number, g.lanes.Len(), g.open)
		}
		b := g.blockedBy
		if b == nil {
			continue
		}
		if (*g.blockedIn)[g.blockedAt] != g || !slices.Contains(g.under.buckets, b) {
			c.fail("queue %s: group %d is not in the list of bucket %v", q.Name, g.number, b.name)
		}
		// a search looks at shared ones
		if !b.isShared() && !c.r.isFull(b, g.cost) && b.timer == 0 && !b.releases {
			c.fail("queue %s: group %d waits for bucket %v, which has room", q.Name, g.number, b.name)
		}
		c.ordered(q, &g.lanes, x.laneBefore)
	}
	if lanes != 0 || open != x.open.Len() {
		c.fail("queue %s: %d lanes are in no group, and %d groups are open of %d", q.Name, lanes, x.open.Len(), open)
	}
	c.ordered(q, &x.open, x.groupBefore)
}

// ordered checks the order of lanes or groups.
func (c *Check) ordered(q *Queue, list *queue.List, before queue.Before) {
	last := uint32(0)
	for _, n := range list.Slice(0, list.Len(), nil) {
		if last != 0 && !before(last, n) {
			c.fail("queue %s: numbers %d and %d are out of order", q.Name, last, n)
		}
		last = n
	}
}

// sharedBuckets checks the shared buckets.
func (c *Check) sharedBuckets() {
	for name, s := range c.r.shared.byName {
		b := s.bucket
		c.bucket(b)
		ready := 0
		for n, u := range b.users {
			if ready += u.ready; c.r.queues[n] == nil || c.r.queues[n].lanes != u.in || u.lanes == 0 {
				c.fail("shared limit %s is used by %d lanes of queue %d, which has others", name, u.lanes, n)
			}
		}
		listed := 0
		for u := b.oldest; u != nil; u = u.newer {
			if listed++; b.users[u.in.queue] != u || u.newer != nil && u.serial >= u.newer.serial {
				c.fail("shared limit %s lists queue %d as its user", name, u.in.queue)
			}
		}
		if listed != len(b.users) {
			c.fail("shared limit %s lists %d users of %d", name, listed, len(b.users))
		}
		if ready != b.ready {
			c.fail("shared limit %s has %d ready jobs, counts %d", name, ready, b.ready)
		}
	}
}

// bucket checks a bucket of any limit.
func (c *Check) bucket(b *bucket) {
	c.count(b.timer != 0)
	if have := c.taken(b); have.slots != b.slots || !maps.Equal(have.perWorker, b.perWorker) {
		c.fail("bucket %v of queue %d counts slots %d %v, has %d %v", b.name, b.queue, b.slots, b.perWorker,
			have.slots, have.perWorker)
	}
	if c.r.buckets.At(b.number) != b {
		c.fail("bucket %v of queue %d is not found", b.name, b.queue)
	}
}

// sorting checks the walk through the jobs of queues whose limits have changed.
func (c *Check) sorting() {
	s := &c.r.sort
	need := 0
	for _, q := range c.r.queues {
		if q != nil && q.Sorting {
			need++
		}
	}
	walks := 0
	for _, q := range s.queues {
		if q.queue == 0 {
			continue
		}
		if walks++; !c.r.queues[q.queue].Sorting {
			c.fail("queue %d needs no walk", q.queue)
		}
	}
	if need != walks || (s.timer != 0) != (len(s.queues) > 0 || s.hasLater() || s.retired) {
		c.fail("%d queues need a walk, it is for %d, with a deadline: %v", need, walks, s.timer != 0)
	}
	c.count(s.timer != 0)
	for b := range c.r.buckets.All() {
		if b.isRetired() {
			c.count(b.timer != 0)
			if !s.retired {
				c.fail("bucket %v belongs to lanes that are gone", b.name)
			}
		}
	}
}

// order checks the chains of an ordered queue.
func (c *Check) order(q *Queue) {
	x := q.order
	if x == nil {
		return
	}
	have := c.counted(x.queue)
	open, used := 0, 0
	for key, number := range x.chains {
		if x.slots[number].key != key {
			c.fail("queue %s: chain %d of key %q has key %q", q.Name, number, key, x.slots[number].key)
		}
	}
	for number := range x.slots {
		s := &x.slots[number]
		if s.head == 0 {
			if s.open != 0 || s.rest != nil || have.chains[uint32(number)] != 0 {
				c.fail("queue %s: chain %d is unused and has jobs", q.Name, number)
			}
			continue
		}
		used++
		c.chain(q, uint32(number), have.chains[uint32(number)])
		if s.open != 0 {
			open++
		}
	}
	if len(x.chains) != used {
		c.fail("queue %s: %d chains, %d have jobs", q.Name, len(x.chains), used)
	}
	if want := have.free + open; x.open.Len() != want {
		c.fail("queue %s: %d jobs are open, should be %d", q.Name, x.open.Len(), want)
	}
	c.listOrder(q, &x.open, core.Ready, x.open.Len())
	if c.r.orders.handOut || len(c.r.orders.handed) > 0 {
		c.fail("a hand-out has not ended")
	}
}

// chain checks one chain, which must have jobs jobs.
func (c *Check) chain(q *Queue, number uint32, jobs int) {
	r, s := c.r, &q.order.slots[number]
	all := []uint32{s.head}
	if s.rest != nil {
		all = s.rest.Slice(0, s.rest.Len(), all)
	}
	if len(all) != jobs || s.out != 0 || q.order.chains[s.key] != number || s.rest != nil && s.rest.Len() == 0 {
		c.fail("queue %s: chain of %q has %d jobs, should have %d; out %d", q.Name, s.key, len(all), jobs, s.out)
	}
	if !slices.IsSortedFunc(all, func(a, b uint32) int { return int(r.table.At(a).Seq) - int(r.table.At(b).Seq) }) {
		c.fail("queue %s: the chain of %q is out of order", q.Name, s.key)
	}
	want := uint32(0)
	if r.table.At(s.head).State == core.Ready {
		want = s.head
	}
	if s.open != want {
		c.fail("queue %s: job %d of key %q is open, should be %d", q.Name, r.table.At(s.open).Seq, s.key,
			r.table.At(want).Seq)
	}
}

// orderPlace checks the place of a job in its ordering, and counts the job.
func (c *Check) orderPlace(h uint32, e *table.Entry) {
	x := c.r.queues[e.Queue].order
	if x == nil {
		return
	}
	p := c.r.orderPlaceOf(h, x)
	switch {
	case (p != nil) == e.State.Unfinished():
	case p == nil && c.r.queues[e.Queue].Sorting:
	default:
		c.fail("job %d is %v, in the ordering of its queue: %v", e.Seq, e.State, p != nil)
	}
	if p == nil {
		return
	}
	q, number := c.counted(e.Queue), p.chain&^chainReady
	if key := c.r.table.TagKey(h, x.key.Tag); x.slots[number].key != key {
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

// listOrder checks the members and the order of a list.
func (c *Check) listOrder(q *Queue, list *queue.List, state core.State, want int) {
	inState := func(e *table.Entry) bool { return e.State == state }
	if err := c.r.table.CheckList(q.Name, list, want, c.r.Before(q), inState); err != nil {
		c.fail("queue %w", err)
	}
}

// MayHave reports whether a queue has a job that a client may get now. It changes nothing.
func (r *Rules) MayHave(q *Queue, who Asker, isStale func(h uint32) bool) bool {
	if q.lanes == nil {
		front := q.Open().Front()
		return front != 0 && r.WorkerBelow(q, who) && !isStale(front) && r.Fits(q, front)
	}
	if !r.WorkerBelow(q, who) {
		return false
	}
	for l := range q.lanes.slots.All() {
		if l.ready.Len() > 0 && !r.limited(l) && r.laneHasRoom(l, who) && !isStale(l.ready.Front()) {
			return true
		}
	}
	return false
}
