package limit

import (
	"iter"
	"math"
)

// searchSteps is how many groups a search releases and blocks and lanes it moves at most, and how many lanes a count
// examines.
const searchSteps = 1_000

// maxPassed is how many lanes a search passes at most because the worker has as many jobs of their types or keys as it
// may have. A worker that would pass more gets no job of the queue until a job of it ends: no index can order the lanes
// for each worker, and a worker has to hold about as many jobs for that.
const maxPassed = 5_000

// OpenFront returns the next job of a queue with lanes, or zero if no job can be handed out now. The job may be
// unfit. A search that has done searchSteps ends without a job, although there may be one, and reports that it is
// unfinished: it has to be repeated soon, and goes on where it was.
func (r *Rules) OpenFront(q *Queue, who Asker) (h uint32, unfinished bool) {
	x := q.lanes
	if q.whole != nil && r.isFull(q.whole, 1) {
		r.waitForRoom(q.whole, 1)
		return 0, false
	}
	s := search{who: who}
	r.releaseShared(x, &s)
	r.releaseRest(x, &s)
	for s.at < x.open.Len() && s.steps < searchSteps && s.passed < maxPassed {
		g := x.groups.At(x.open.At(s.at))
		if s.best != nil && !s.isBefore(x, g) {
			break
		}
		l := x.first(g)
		switch b := r.fullBucket(g.under.buckets, g.cost); {
		case b != nil:
			r.block(x, g, b)
			s.steps++
		case r.isMisplaced(l):
			r.moveLane(x, l, &s)
		case r.wholeFull(q, g.cost):
			s.at++
		case who.Lease == nil || r.laneHasRoom(l, who):
			return l.ready.Front(), false
		default:
			s.at++
			s.passed++
			r.searchGroup(x, g, &s)
		}
	}
	if s.steps >= searchSteps {
		return 0, true
	}
	if s.best == nil {
		return 0, false
	}
	return s.best.ready.Front(), false
}

// search is a search for a lane.
type search struct {
	who    Asker
	at     int // index in lanes.open: the groups before have nothing for the worker, or only best
	steps  int
	passed int    // lanes of which the worker has as many jobs as it may have
	best   *lane  // found behind the first lane of its group, which the worker's limits exclude
	turn   uint64 // of best in its group
}

// isBefore reports whether the first lane of a group is before the best lane so far.
func (s *search) isBefore(x *lanes, g *laneGroup) bool {
	if g.turn != s.turn {
		return g.turn < s.turn
	}
	return x.before(x.first(g).ready.Front(), s.best.ready.Front())
}

// searchGroup searches a group for a lane of which the worker may get a job.
func (r *Rules) searchGroup(x *lanes, g *laneGroup, s *search) {
	last := g.lanes.Front() // it has been passed
	seen := func(n uint32) bool { return n == last || x.laneBefore(n, last) }
	walk := g.lanes.From(seen)
	for n := walk.Next(); n != 0 && s.steps < searchSteps && s.passed < maxPassed; n = walk.Next() {
		l := x.slots.At(n)
		switch {
		case !r.workerHasRoom(l.buckets[ofType], s.who) && g.under.key == nil:
			return // nor has any other lane of the group
		case !r.laneHasRoom(l, s.who):
			last = n
			s.passed++
		case r.isMisplaced(l):
			r.moveLane(x, l, s)
			walk = g.lanes.From(seen)
		default:
			turn := max(l.turn, g.floor)
			if s.best == nil || turn < s.turn || turn == s.turn && x.before(l.ready.Front(), s.best.ready.Front()) {
				s.best, s.turn = l, turn
			}
			return
		}
	}
}

// isMisplaced reports whether a lane belongs elsewhere: its key has had a turn since it joined its group, or the
// buckets of its other constraint are full.
func (r *Rules) isMisplaced(l *lane) bool {
	if l.of.fair && l.turn < l.buckets[ofKey].turn {
		return true
	}
	other := l.otherConstraint()
	return other != nil && r.fullBucket(other.buckets, l.group.cost) != nil
}

// moveLane moves a misplaced lane. The search goes back to the groups whose first lane is another one now.
func (r *Rules) moveLane(x *lanes, l *lane, s *search) {
	from := l.group
	to := from.under
	if other := l.otherConstraint(); other != nil && r.fullBucket(other.buckets, from.cost) != nil {
		to = other
	}
	x.leaveGroup(l)
	x.joinGroup(r, l, to)
	s.steps++
	for _, g := range []*laneGroup{from, l.group} {
		if s.at > 0 && g.open {
			s.at = min(s.at, x.open.Search(func(n uint32) bool { return x.groupBefore(n, g.number) }))
		}
	}
}

// otherConstraint is the constraint of a lane that its group is not under; nil: none.
func (l *lane) otherConstraint() *constraint {
	if l.group.under == l.byType {
		return l.byKey
	}
	return l.byType
}

// openLanes goes through lanes that may have a job to hand out, and of these through at most searchSteps.
func (r *Rules) openLanes(x *lanes) iter.Seq[*lane] {
	return func(yield func(*lane) bool) {
		steps := 0
		for i := 0; i < x.open.Len() && steps < searchSteps; i++ {
			g := x.groups.At(x.open.At(i))
			steps++
			if r.fullBucket(g.under.buckets, g.cost) != nil {
				continue
			}
			walk := g.lanes.From(nil)
			for n := walk.Next(); n != 0 && steps < searchSteps; n = walk.Next() {
				steps++
				if !yield(x.slots.At(n)) {
					return
				}
			}
		}
	}
}

// laneRoom returns how many jobs of a queue with lanes could be handed out now, to the client if who names one. It
// stops once the count exceeds above.
func (r *Rules) laneRoom(q *Queue, who Asker, above int) (n int) {
	x := q.lanes
	for l := range r.openLanes(x) {
		if n += min(r.openJobs(q, &l.ready, above+1), r.laneLeases(l, who)); n > above {
			break
		}
	}
	if q.whole != nil {
		n = min(n, r.roomIn(q.whole))
	}
	return n
}

// laneLeases returns how many leases the buckets of a lane allow now, without that of all jobs of the queue, to the
// client if who names one.
func (r *Rules) laneLeases(l *lane, who Asker) int {
	room := math.MaxInt32
	for _, b := range l.buckets[ofType:] {
		if b == nil {
			continue
		}
		room = min(room, r.roomIn(b))
		if who.Lease != nil && b.limit.LeasedPerWorker > 0 {
			room = min(room, r.roomForWorker(b, who))
		}
	}
	return room
}

// WaitForMore makes a queue wait for the limits that now allow fewer leases than it has ready jobs: a waiting lease
// needs more jobs. A rate allows more when time passes; a shared limit also when a job of another queue ends.
func (r *Rules) WaitForMore(q *Queue) {
	x := q.lanes
	if x == nil {
		return
	}
	if q.whole != nil {
		r.waitForNext(q.whole, q.Ready.Len())
	}
	for l := range r.openLanes(x) {
		for _, b := range l.buckets[ofType:] {
			if b == nil {
				continue
			}
			if b.isShared() && r.roomIn(b) < l.ready.Len() {
				b.await(b.users[x.queue])
			}
			r.waitForNext(b, l.ready.Len())
		}
	}
}

// waitForNext sets the deadline of a bucket whose rate allows fewer leases than there are ready jobs.
func (r *Rules) waitForNext(b *bucket, ready int) {
	if b.limit.Rate == 0 {
		return
	}
	if at, ok := r.nextRoomAt(b, ready); ok {
		r.armBucket(b, at)
	}
}

// wholeFull reports whether the limit of all jobs of a queue with lanes does not allow the lease of a job with this
// cost now.
// The caller has already checked a cost of 1.
func (r *Rules) wholeFull(q *Queue, cost uint32) bool {
	if cost == 1 || q.whole == nil || !r.isFull(q.whole, cost) {
		return false
	}
	r.waitForRoom(q.whole, cost)
	return true
}

// fullBucket returns the first of some buckets, of which some may be nil, that does not allow the lease of a job with
// this cost; nil: there is none.
func (r *Rules) fullBucket(buckets []*bucket, cost uint32) *bucket {
	for _, b := range buckets {
		if b != nil && r.isFull(b, cost) {
			return b
		}
	}
	return nil
}

// limited reports whether limits prevent the lease of the first job of a lane, or of a job with cost 1, now.
func (r *Rules) limited(l *lane) bool {
	b, _ := r.limiting(l)
	return b != nil
}

// limiting returns the bucket that prevents the lease of the first job of a lane, or of a job with cost 1, now; nil:
// there is none. cost is the cost of that job.
func (r *Rules) limiting(l *lane) (b *bucket, cost uint32) {
	cost = 1
	if l.ready.Len() > 0 {
		cost = r.table.CostOf(l.ready.Front())
	}
	return r.fullBucket(l.buckets, cost), cost
}

// laneHasRoom reports whether the limits per worker allow a client to get a job of a lane. Shared limits have none.
func (r *Rules) laneHasRoom(l *lane, who Asker) bool {
	return r.workerHasRoom(l.buckets[ofType], who) && r.workerHasRoom(l.buckets[ofKey], who)
}

// countLease counts a lease in the rates and the turns of its queue. The job is no longer ready.
func (r *Rules) countLease(x *lanes, h uint32) {
	l, cost := r.limitsOf(h).lane, r.table.CostOf(h)
	for _, b := range l.buckets {
		if b != nil {
			r.spend(b, cost)
		}
	}
	if x.byKey {
		r.countKey(r.queues[x.queue].Name, l.name.key)
	}
	if !x.fair {
		return
	}
	b := l.buckets[ofKey] // a search moves its lanes; see isMisplaced
	x.turn = max(x.turn, b.turn)
	b.turn = x.turn + b.stride
}
