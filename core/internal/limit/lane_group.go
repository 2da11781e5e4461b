package limit

import (
	"container/heap"
	"encoding/binary"

	"broker/core"
	"broker/core/internal/queue"
)

// The lanes that the same buckets limit are blocked and released together, so neither takes longer with more lanes. A
// lane is under two constraints: the buckets of its type, which are that of its type and the shared ones, and the
// bucket of its key. It is in a group of the first one, or, after a search has found the bucket of its key full, in a
// group of the second one. Cost decides whether a job fits, so the lanes of a group have first jobs of one cost.
//
//	type T, full     keys a b c d ...     40,000 lanes: blocked as one
//	type U           keys a b             open
//	key c, full      types U V            blocked until a lease of key c ends
//
// A lane stays in its group when its key becomes full or has a turn. The search that finds it at the front moves it.
// Each move is one step, and a search has at most searchSteps; see OpenFront. No structure can do without such a
// bound: finding the first pair of a type and a key that both have room takes more than logarithmic time.

// constraint holds the buckets that limit the same lanes together.
type constraint struct {
	name    string
	key     *bucket // its only bucket if it is the constraint of a key; nil: it is the constraint of types
	buckets []*bucket
	users   []*sharedUser         // of the shared buckets
	groups  map[uint32]*laneGroup // by cost; at most one has no lanes
	lanes   int
}

// laneGroup holds lanes with the same constraint and the same cost of their first jobs.
type laneGroup struct {
	number uint32 // in lanes.groups
	under  *constraint
	cost   uint32
	lanes  queue.List // numbers, by laneBefore

	open  bool   // in lanes.open
	turn  uint64 // while it is open: of its first lane, or floor
	floor uint64 // lanes.turn when the group was released: a blocked group does not save up turns

	blockedBy *bucket
	blockedIn *blockList
	blockedAt int
}

// blockList holds blocked groups: a heap, with the group of the least cost first. If that does not fit into a bucket,
// no other does.
type blockList []*laneGroup

// Len implements heap.Interface.
func (l *blockList) Len() int { return len(*l) }

// Less implements heap.Interface.
func (l *blockList) Less(i, j int) bool { return (*l)[i].cost < (*l)[j].cost }

// Swap implements heap.Interface.
func (l *blockList) Swap(i, j int) {
	all := *l
	all[i], all[j] = all[j], all[i]
	all[i].blockedAt, all[j].blockedAt = i, j
}

// Push implements heap.Interface.
func (l *blockList) Push(x any) {
	g := x.(*laneGroup)
	g.blockedIn, g.blockedAt = l, len(*l)
	*l = append(*l, g)
}

// Pop implements heap.Interface.
func (l *blockList) Pop() any {
	last := len(*l) - 1
	g := (*l)[last]
	(*l)[last], g.blockedIn = nil, nil
	*l = (*l)[:last]
	return g
}

func (l *blockList) remove(g *laneGroup) { heap.Remove(l, g.blockedAt) }

// orderLanes sets the orders of the lanes and groups of a queue, whose ordering is set.
func (r *Rules) orderLanes(x *lanes) {
	x.before = r.Before(r.queues[x.queue])
	x.laneBefore = func(a, b uint32) bool {
		p, q := x.slots.At(a), x.slots.At(b)
		if p.turn != q.turn {
			return p.turn < q.turn
		}
		return x.before(p.ready.Front(), q.ready.Front())
	}
	x.groupBefore = func(a, b uint32) bool {
		p, q := x.groups.At(a), x.groups.At(b)
		if p.turn != q.turn {
			return p.turn < q.turn
		}
		return x.before(x.first(p).ready.Front(), x.first(q).ready.Front())
	}
}

// first returns the first lane of a group.
func (x *lanes) first(g *laneGroup) *lane { return x.slots.At(g.lanes.Front()) }

// constrain gives a new lane its buckets and constraints.
func (r *Rules) constrain(x *lanes, l *lane) {
	typ, key := r.bucketFor(x, core.ScopeType, l.name.typ), r.bucketFor(x, core.ScopeKey, l.name.key)
	shared := r.sharedBuckets(x, l.name)
	l.buckets = append([]*bucket{ofQueue: r.queues[x.queue].inForce(), ofType: typ, ofKey: key}, shared...)
	own := shared
	if typ != nil {
		own = append([]*bucket{typ}, shared...)
	}
	l.byType = x.constraintOf(nil, own)
	for _, b := range shared {
		if l.byType.lanes == 0 {
			l.byType.users = append(l.byType.users, r.userOf(b, x))
		}
	}
	l.byType.lanes++
	if key != nil && (key.limit.Leased > 0 || key.limit.Rate > 0) {
		l.byKey = x.constraintOf(key, []*bucket{key})
		l.byKey.lanes++
	}
	for _, b := range l.own() {
		if b != nil {
			b.lanes++
		}
	}
	for _, u := range l.byType.users {
		u.lanes++
	}
}

// constraintOf finds or creates a constraint.
func (x *lanes) constraintOf(key *bucket, buckets []*bucket) *constraint {
	name := constraintName(key, buckets)
	c := x.constraints[name]
	if c == nil {
		c = &constraint{name: name, key: key, buckets: buckets}
		x.constraints[name] = c
	}
	return c
}

// constraintName identifies a set of buckets within a queue.
func constraintName(key *bucket, buckets []*bucket) string {
	name := []byte("type ")
	if key != nil {
		name = []byte("key ")
	}
	for _, b := range buckets {
		name = binary.BigEndian.AppendUint64(name, b.serial)
	}
	return string(name)
}

// unconstrain undoes constrain for a lane that is being removed.
func (r *Rules) unconstrain(x *lanes, l *lane) {
	for _, c := range []*constraint{l.byType, l.byKey} {
		if c == nil {
			continue
		}
		if c.lanes--; c.lanes == 0 {
			for _, g := range c.groups { // none has a lane
				x.groups.Remove(g.number)
			}
			delete(x.constraints, c.name)
		}
	}
	for _, u := range l.byType.users {
		if u.lanes--; u.lanes == 0 {
			x.leaveShared(u)
		}
	}
	for _, b := range l.own() {
		if b != nil {
			b.lanes--
			r.dropUnused(b)
		}
	}
}

// joinGroup puts a lane with a ready job into a group of a constraint.
func (x *lanes) joinGroup(r *Rules, l *lane, c *constraint) {
	cost := r.table.CostOf(l.ready.Front())
	g := c.groups[cost]
	if g == nil {
		g = &laneGroup{under: c, cost: cost}
		g.number = x.groups.Add(g)
		if c.groups == nil {
			c.groups = map[uint32]*laneGroup{}
		}
		c.groups[cost] = g
	}
	if l.group = g; x.fair {
		l.turn = l.buckets[ofKey].turn
	}
	first := g.lanes.Len() == 0 || x.laneBefore(l.number, g.lanes.Front())
	if first {
		x.closeGroup(g)
	}
	g.lanes.Push(l.number, x.laneBefore)
	if first && g.blockedBy == nil {
		x.openGroup(g)
	}
}

// leaveGroup takes a lane out of its group, before its first job or its turn changes.
func (x *lanes) leaveGroup(l *lane) {
	g := l.group
	first := g.lanes.Front() == l.number
	if first {
		x.closeGroup(g)
	}
	l.group = nil
	g.lanes.Remove(l.number, x.laneBefore)
	switch {
	case g.lanes.Len() == 0:
		x.emptied(g)
	case first && g.blockedBy == nil:
		x.openGroup(g)
	}
}

// emptied handles the leave of the last lane of a group. A constraint keeps one group for its next lane.
func (x *lanes) emptied(g *laneGroup) {
	if g.blockedBy != nil {
		g.blockedIn.remove(g)
		g.blockedBy = nil
	}
	if len(g.under.groups) > 1 {
		delete(g.under.groups, g.cost)
		x.groups.Remove(g.number)
	}
}

func (x *lanes) openGroup(g *laneGroup) {
	g.turn, g.open = max(x.first(g).turn, g.floor), true
	x.open.Push(g.number, x.groupBefore)
}

func (x *lanes) closeGroup(g *laneGroup) {
	if g.open {
		g.open = false
		x.open.Remove(g.number, x.groupBefore)
	}
}

// block blocks a group until a full bucket has room.
func (r *Rules) block(x *lanes, g *laneGroup, b *bucket) {
	x.closeGroup(g)
	g.blockedBy = b
	if b.isShared() {
		heap.Push(&b.users[x.queue].blocked, g)
	} else {
		heap.Push(&b.blocked, g)
	}
	r.awaitRoom(x, b, g.cost)
}

// awaitRoom notes that a queue waits until a bucket has room for a job with this cost.
func (r *Rules) awaitRoom(x *lanes, b *bucket, cost uint32) {
	if b.isShared() {
		b.await(b.users[x.queue])
	}
	r.waitForRoom(b, cost)
}

// release opens the groups of a block list for which a bucket has room, at most most of them. It returns their number.
func (r *Rules) release(x *lanes, b *bucket, blocked *blockList, most int) (opened int) {
	for ; len(*blocked) > 0 && opened < most; opened++ {
		g := (*blocked)[0]
		if r.isFull(b, g.cost) {
			r.awaitRoom(x, b, g.cost)
			break
		}
		r.table.Touched++
		blocked.remove(g)
		g.blockedBy, g.floor = nil, x.turn
		if k := g.under.key; k != nil && x.fair {
			k.turn = max(k.turn, x.turn)
		}
		x.openGroup(g)
	}
	return opened
}

// releaseLater leaves it to the next searches of the queue to release the other groups for which a bucket has room.
func (r *Rules) releaseLater(x *lanes, b *bucket) {
	if len(b.blocked) > 0 && !b.releases && !r.isFull(b, b.blocked[0].cost) {
		b.releases = true
		x.releasing = append(x.releasing, b)
	}
}

// releaseRest releases what releaseLater has left.
func (r *Rules) releaseRest(x *lanes, s *search) {
	for len(x.releasing) > 0 && s.steps < searchSteps {
		last := len(x.releasing) - 1
		b := x.releasing[last]
		s.steps += r.release(x, b, &b.blocked, searchSteps-s.steps)
		if s.steps < searchSteps {
			b.releases, x.releasing = false, x.releasing[:last]
		}
	}
}
