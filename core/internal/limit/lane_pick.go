package limit

import (
	"math"

	"broker/core/internal/table"
	"broker/core/internal/timer"
)

// OpenFront returns the next job of a queue with lanes, or zero if no job can be handed out now. The job may be
// unfit.
func (r *Rules) OpenFront(q *Queue, who Asker) uint32 {
	x := q.lanes
	if x.whole != nil && r.isFull(x.whole, 1) {
		r.waitForRoom(x.whole, 1)
		return 0
	}
	for i := 0; i < x.open.Len(); {
		l := x.slots.At(x.open.At(i))
		h := l.ready.Front()
		cost := r.table.CostOf(h)
		if b := r.fullBucket(l, cost); b != nil {
			x.close(l)
			l.blockedBy, l.blockedCost = b, cost
			b.blocked = append(b.blocked, l)
			r.waitForRoom(b, cost)
			continue
		}
		if !r.wholeFull(q, cost) && (who.Lease == nil || r.workerHasRoom(l, who)) {
			return h
		}
		i++
	}
	return 0
}

// laneRoom returns how many jobs of a queue with lanes could be handed out now, to the client if who names one. It stops once the
// count exceeds above.
func (r *Rules) laneRoom(q *Queue, who Asker, above int) (n int) {
	x := q.lanes
	for i := 0; i < x.open.Len() && n <= above; i++ {
		l := x.slots.At(x.open.At(i))
		n += min(r.openJobs(q, &l.ready, above+1), r.laneLeases(l, who))
	}
	if x.whole != nil {
		n = min(n, r.roomIn(x.whole))
	}
	return n
}

// laneLeases returns how many leases the buckets of a lane allow now, to the client if who names one.
func (r *Rules) laneLeases(l *lane, who Asker) int {
	room := math.MaxInt32
	for _, b := range l.buckets {
		if b == nil {
			continue
		}
		room = min(room, r.roomIn(b))
		if most := b.limit.LeasedPerWorker; who.Lease != nil && most > 0 {
			key, known := r.workerKeyOf(who)
			if known {
				most -= min(most, b.perWorker[key])
			}
			room = min(room, int(most))
		}
	}
	return room
}

// WaitForMore sets deadlines for the rates that now allow fewer leases of a queue than it has ready jobs. A waiting lease needs
// more jobs, and only the passing of time makes a rate allow more.
func (r *Rules) WaitForMore(q *Queue) {
	x := q.lanes
	if x == nil {
		return
	}
	if x.whole != nil {
		r.waitForNext(x.whole, q.Ready.Len())
	}
	for i := range x.open.Len() {
		l := x.slots.At(x.open.At(i))
		for _, b := range l.buckets {
			if b != nil {
				r.waitForNext(b, l.ready.Len())
			}
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

// wholeFull reports whether the limits of a whole queue with lanes do not allow the lease of a job with this cost now. The caller has
// already checked a cost of 1.
func (r *Rules) wholeFull(q *Queue, cost uint32) bool {
	if cost == 1 {
		return false
	}
	if b := q.lanes.whole; b != nil && r.isFull(b, cost) {
		r.waitForRoom(b, cost)
		return true
	}
	return exceeds(q.slots, cost, q.Limits.Leased)
}

// fullBucket returns a bucket of a lane that does not allow the lease of a job with this cost; nil: there is none.
func (r *Rules) fullBucket(l *lane, cost uint32) *bucket {
	for _, b := range l.buckets {
		if b != nil && r.isFull(b, cost) {
			return b
		}
	}
	return nil
}

// limited reports whether limits prevent the lease of the first job of a lane, or of a job with cost 1, now.
func (r *Rules) limited(q *Queue, l *lane) bool {
	cost := uint32(1)
	if l.ready.Len() > 0 {
		cost = r.table.CostOf(l.ready.Front())
	}
	whole := q.lanes.whole
	return whole != nil && r.isFull(whole, cost) || exceeds(q.slots, cost, q.Limits.Leased) || r.fullBucket(l, cost) != nil
}

// workerHasRoom reports whether the limits per worker allow a client to get a job of a lane.
func (r *Rules) workerHasRoom(l *lane, who Asker) bool {
	for _, b := range l.buckets {
		if b == nil || b.limit.LeasedPerWorker == 0 {
			continue
		}
		if key, known := r.workerKeyOf(who); known && b.perWorker[key] >= b.limit.LeasedPerWorker {
			return false
		}
	}
	return true
}

// countLease counts a lease in the rates and the turns of its queue. The job is no longer ready.
func (r *Rules) countLease(x *lanes, h uint32) {
	l, cost := r.limitsOf(h).lane, r.table.CostOf(h)
	if x.whole != nil {
		r.spend(x.whole, cost)
	}
	for _, b := range l.buckets {
		if b != nil {
			r.spend(b, cost)
		}
	}
	if !x.fair {
		return
	}
	b := l.buckets[OfKey]
	for _, o := range b.lanes {
		x.close(o)
	}
	x.turn = max(x.turn, b.turn)
	b.turn = x.turn + b.stride
	for _, o := range b.lanes {
		x.reopen(o)
	}
}

// laneSlot is a slot that a leased job has taken in a bucket.
type laneSlot struct {
	bucket *bucket
	worker uint64 // see SlotKey
	cost   uint32 // of the job
	timer  timer.ID
}

// takeLaneSlots counts a leased job in the buckets of its lane.
func (r *Rules) takeLaneSlots(h uint32, worker uint64) {
	l, cost := r.limitsOf(h).lane, r.table.CostOf(h)
	l.slots = make([]laneSlot, len(l.buckets))
	for i, b := range l.buckets {
		if b == nil {
			continue
		}
		s := &l.slots[i]
		s.bucket, s.worker, s.cost = b, worker, cost
		b.slots += cost
		if b.perWorker == nil {
			b.perWorker = map[uint64]uint32{}
		}
		b.perWorker[worker]++
		if b.limit.SlotFor > 0 {
			kind := table.TimerTypeSlot
			if i == OfKey {
				kind = table.TimerKeySlot
			}
			s.timer = r.table.Timers.Add(r.table.Now.Add(b.limit.SlotFor), timer.Owner{Kind: kind, Handle: h})
		}
	}
}

// freeLaneSlots removes a job from the buckets of its lane.
func (r *Rules) freeLaneSlots(h uint32) {
	if x := r.limitsOf(h); x != nil && x.lane != nil {
		for i := range x.lane.slots {
			r.freeLaneSlot(x.lane, i)
		}
		x.lane.slots = nil
	}
}

func (r *Rules) freeLaneSlot(l *laneJob, i int) {
	s := &l.slots[i]
	b := s.bucket
	if b == nil {
		return
	}
	r.table.Timers.Remove(&s.timer)
	if b.isRetired() {
		*s = laneSlot{}
		return
	}
	b.slots -= s.cost
	if b.perWorker[s.worker]--; b.perWorker[s.worker] == 0 {
		delete(b.perWorker, s.worker)
	}
	*s = laneSlot{}
	r.reopenLanes(b)
	r.offerFor(b)
	r.dropUnused(b)
}

// LaneSlotTimeout frees a slot of a job whose lease continues.
func (r *Rules) LaneSlotTimeout(h uint32, i int) {
	l := r.limitsOf(h).lane
	l.slots[i].timer = 0
	r.freeLaneSlot(l, i)
}
