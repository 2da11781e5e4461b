package limit

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"broker/core"
	"broker/core/internal/table"
	"broker/core/internal/timer"
)

// When the limits or the sharing of a queue change, its jobs belong in other lanes, and existing leases count against
// new limits. No index lists the jobs of a queue, so a walk over all jobs finds them. The walk runs in steps of less
// than a millisecond, so that other clients hardly notice it. Until it has seen all jobs, the queue hands out no job.
// That preserves the order and exceeds no limit.
//
// The walk cycles through the handles and serves all queues that need it. A queue is finished when the walk is back at
// the handle where it was when the queue joined.
//
// A job that the walk has not reached yet is in a former lane or in no lane. Both mean the same; see laneOf.

// laneSort is the walk.
type laneSort struct {
	queues []sorting // queues that need the walk, in the order in which they joined
	next   uint32    // next handle to examine
	lap    int
	timer  timer.ID // the next step

	// later are queues that get other lanes because a shared limit has changed, and users those of buckets. See
	// findTypes for types.
	later []uint32
	users []userSort
	types map[string]bool

	// Once no queue needs the walk, another walk removes the buckets of retired lanes.
	retired bool
	bucket  uint32 // number of the last bucket that was examined
}

// userSort stands for the queues that have used a shared bucket since before a serial number. Other lanes of a queue
// are a newer user.
type userSort struct {
	bucket *bucket
	before uint64
}

// sorting is a queue whose jobs are sorted into lanes, and where the walk was when it joined. Queue 0 stands for
// laneSort.types.
type sorting struct {
	queue, from uint32
	lap         int
}

// The cost of a step, about 10 ns per unit: one unit for an examined job, more for a job that is put into a lane.
const (
	usualSortStep = 30_000
	sortInCost    = 60
	sortPause     = 300 * time.Microsecond // between two steps
)

// sortLanes gives a queue the lanes and the ordering of its current rules, and sorts its jobs into them: at once if
// that costs at most most. It returns the cost.
func (r *Rules) sortLanes(n uint32, q *Queue, most int) (cost int) {
	cost = sortInCost
	old := q.lanes
	var before *lanes
	if before = old; old != nil && q.Sorting {
		before = old.former // old has handed out nothing
	}
	unordered := false
	if !q.order.ordersBy(q.rules) {
		q.order = r.newOrdering(n, q.rules)
		unordered = q.order != nil
	}
	q.lanes = r.newLanes(n, q.rules, before)
	leases := q.Throttle() != (core.Throttle{}) && q.Count[core.Leased] > 0
	if old == nil && q.lanes == nil && !leases && !unordered && !q.Sorting {
		return cost
	}
	s := &r.sort
	if old != nil {
		old.retired, old.former = true, nil
		old.leaveAllShared()
		s.retired, s.bucket = true, 0
	}
	if q.Sorting {
		s.drop(n)
	}
	q.Sorting = true
	switch inAll := q.Jobs(); {
	case inAll == 0:
		r.sorted(n)
	case int(r.table.LastHandle)+sortInCost*inAll <= most:
		cost += int(r.table.LastHandle) + sortInCost*inAll
		for h := uint32(1); h <= r.table.LastHandle; h++ {
			if e := r.table.At(h); e.Seq != 0 && e.Queue == n {
				r.sortIn(h, e, q)
			}
		}
		r.sorted(n)
	default:
		s.add(n)
	}
	r.sortAgain()
	return cost
}

// add begins the walk for a queue.
func (s *laneSort) add(n uint32) {
	if len(s.queues) == 0 {
		s.next, s.lap = 1, 0
	}
	s.queues = append(s.queues, sorting{queue: n, from: s.next, lap: s.lap})
}

// findTypes finds the queues with jobs of types that come under a shared limit. Until the walk has seen all jobs, no
// shared limit allows a lease, and jobs of these types in queues that the walk has not reached yet are handed out
// without it; their leases count later.
func (r *Rules) findTypes(types []string) {
	if len(types) == 0 {
		return
	}
	s := &r.sort
	if s.types == nil {
		s.types = map[string]bool{}
	}
	for _, typ := range types {
		s.types[strings.Clone(typ)] = true
	}
	s.drop(0)
	s.add(0)
	r.shared.sorting[0] = true
	if left := r.sortStep - int(r.table.LastHandle); left >= 0 {
		for h := uint32(1); h <= r.table.LastHandle; h++ {
			left -= r.findType(h, left)
		}
		s.drop(0)
		r.foundTypes()
	}
	r.sortAgain()
}

// findType applies shared limits to the queue of a job if its type is searched for. It returns the cost; see sortLanes.
func (r *Rules) findType(h uint32, most int) (cost int) {
	e := r.table.At(h)
	if e.Seq == 0 || e.Kind == 0 || !r.sort.types[r.table.TypeOf(e)] {
		return 0
	}
	q := r.queues[e.Queue]
	l := r.laneOf(h, q.lanes)
	without := func(s *sharedLimit) bool { return !slices.Contains(l.buckets[ofShared:], s.bucket) }
	switch {
	case q.lanes == nil || !q.lanes.byType:
	case l == nil: // it will be sorted
		return 0
	case !slices.ContainsFunc(r.shared.ofType[r.table.TypeOf(e)], without):
		return 0
	}
	q.limitedTypes = true
	return r.sortSharedQueue(e.Queue, most)
}

// foundTypes ends the search for types.
func (r *Rules) foundTypes() {
	r.sort.types = nil
	r.sharedStepDone()
}

// sharedStepDone opens the shared limits again if no queue is left to which a change must be applied.
func (r *Rules) sharedStepDone() {
	if r.sort.types == nil && !r.sort.hasLater() {
		r.countedShared(0)
	}
}

// sortLater applies shared limits to queues that wait for it, until that has a cost. It returns the cost.
func (r *Rules) sortLater(most int) (cost int) {
	s := &r.sort
	for cost < most && s.hasLater() {
		n := uint32(0)
		if len(s.later) > 0 {
			n, s.later = s.later[0], s.later[1:]
		} else {
			n = s.users[0].bucket.oldest.in.queue
		}
		cost += r.sortSharedQueue(n, most-cost)
		r.sharedStepDone()
	}
	return cost
}

// hasLater reports whether a changed shared limit must be applied to more queues.
func (s *laneSort) hasLater() bool {
	for len(s.users) > 0 {
		if u := s.users[0].bucket.oldest; u != nil && u.serial < s.users[0].before {
			return true
		}
		s.users = s.users[1:]
	}
	return len(s.later) > 0
}

// drop ends the walk for a queue.
func (s *laneSort) drop(n uint32) {
	s.queues = slices.DeleteFunc(s.queues, func(q sorting) bool { return q.queue == n })
}

// hasSeenAll reports whether the walk has seen all jobs since the queue joined.
func (s *laneSort) hasSeenAll(q *sorting) bool {
	return s.lap > q.lap+1 || s.lap == q.lap+1 && s.next >= q.from
}

// sortAgain sorts at once if that costs less than a step, otherwise it sets the time of the next step.
func (r *Rules) sortAgain() {
	s := &r.sort
	if len(s.queues) == 0 && sortInCost*int(r.buckets.Last()) <= r.sortStep {
		r.dropRetired()
	}
	switch more := len(s.queues) > 0 || s.hasLater() || s.retired; {
	case more && s.timer == 0:
		s.timer = r.table.Timers.Add(r.table.Now.Add(sortPause), timer.Owner{Kind: table.TimerSort})
	case !more: // little work is left
		r.table.Timers.Remove(&s.timer)
	}
}

// SortTimeout does a step.
func (r *Rules) SortTimeout() {
	s := &r.sort
	s.timer = 0
	if len(s.queues) == 0 {
		r.dropRetired()
	}
	cost := r.sortLater(r.sortStep)
	for len(s.queues) > 0 && cost < r.sortStep {
		if s.hasSeenAll(&s.queues[0]) {
			n := s.queues[0].queue
			if s.queues = s.queues[1:]; n == 0 {
				r.foundTypes()
			} else {
				r.sorted(n)
			}
			cost += sortInCost
			continue
		}
		if s.next > r.table.LastHandle {
			s.next, s.lap = 1, s.lap+1
			continue
		}
		if s.types != nil { // before the job is sorted: its queue may join the walk here
			cost += 2 + r.findType(s.next, r.sortStep-cost)
		}
		if e := r.table.At(s.next); e.Seq != 0 && r.queues[e.Queue].Sorting {
			r.sortIn(s.next, e, r.queues[e.Queue])
			cost += sortInCost
		}
		s.next++
		cost++
	}
	r.sortAgain()
}

// sorted ends the walk for a queue that has all its jobs in lanes.
func (r *Rules) sorted(n uint32) {
	q := r.queues[n]
	q.Sorting = false
	if q.lanes != nil {
		q.lanes.former = nil
	}
	r.countedShared(n)
	r.host.Offer(n)
	r.host.DropIdle(n)
}

// sortIn puts a job into its lane and chain, and counts its lease in the limits of its queue.
func (r *Rules) sortIn(h uint32, e *table.Entry, q *Queue) {
	if q.order != nil && e.State.Unfinished() && r.orderPlaceOf(h, q.order) == nil {
		if r.JoinOrder(h, e); e.State == core.Ready {
			r.readyInOrder(q, h)
		}
	}
	if r.laneOf(h, q.lanes) != nil {
		return
	}
	name := r.laneNameOf(h, e, q.lanes)
	r.freeLaneSlots(h)
	if x := r.limitsOf(h); x != nil {
		x.lane = nil
	}
	if q.lanes != nil && e.State != core.Done {
		r.joinLane(h, q.lanes, name)
	}
	switch {
	case e.Has(table.Held):
		r.TakeSlot(h, e, r.SlotKey(e))
	case q.lanes != nil && e.State == core.Ready && r.isOpen(q, h):
		q.lanes.add(r, r.limitsOf(h).lane, h)
	}
}

// laneOf returns the lane of a job; nil: the job is in no lane, or the walk has not reached it since the lanes of its
// queue were replaced.
func (r *Rules) laneOf(h uint32, x *lanes) *lane {
	if x == nil {
		return nil
	}
	if o := r.limitsOf(h); o != nil && o.lane != nil && o.lane.of == x {
		return o.lane
	}
	return nil
}

// laneNameOf returns the name of the lane that a job belongs to. The job's unique key comes from its payload if that is
// in memory, otherwise from its former lane.
func (r *Rules) laneNameOf(h uint32, e *table.Entry, in *lanes) laneName {
	if in == nil {
		return laneName{}
	}
	key, kind, x := "", in.key, r.limitsOf(h)
	switch j := r.table.Payload(h); {
	case j != nil:
		key = KeyOf(kind, j.Tags, j.UniqueKey)
	case kind.Kind == core.KeyTag:
		key = KeyOf(kind, r.table.TagsOf(h), "")
	case x != nil && x.lane != nil && x.lane.of.byKey && x.lane.of.key == kind:
		key = x.lane.name.key
	}
	return in.nameFor(r.table.TypeOf(e), key)
}

// dropRetired removes the buckets of lanes that are no longer used, in the order of their numbers.
func (r *Rules) dropRetired() {
	s := &r.sort
	for cost := 0; s.retired && cost < r.sortStep; cost++ {
		if s.bucket == r.buckets.Last() {
			s.retired = false
			return
		}
		s.bucket++
		if b := r.buckets.At(s.bucket); b != nil && b.isRetired() {
			r.dropBucket(b)
			cost += sortInCost
		}
	}
}

// dropBuckets removes the buckets of lanes, in the order of their numbers.
func (r *Rules) dropBuckets(x *lanes) {
	byNumber := func(a, b *bucket) int { return cmp.Compare(a.number, b.number) }
	for _, b := range slices.SortedFunc(maps.Values(x.buckets), byNumber) {
		r.dropBucket(b)
	}
}
