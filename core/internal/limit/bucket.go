package limit

import (
	"math"
	"time"

	"broker/core"
	"broker/core/internal/table"
	"broker/core/internal/timer"
)

// bucket counts the leases under one limit: of a queue, of one type or key of a queue, or of a shared limit.
type bucket struct {
	queue     uint32 // of the jobs; zero: it is shared
	of        *lanes // nil unless it is of a type or key
	name      limitName
	number    uint32 // in Rules.buckets, for the timer; another bucket may have it later
	serial    uint64 // never reused
	limit     core.Throttle
	slots     uint32
	perWorker map[uint64]uint32

	// paid is the time until which all leases so far have used up the rate. A lease is allowed while paid is less than
	// a burst ahead of now.
	paid core.Instant

	rateDirty  bool // in Rules.dirtyRates
	rateStored bool // paid has a meta entry

	timer timer.ID // when there is room again, or the bucket is completely unused again

	turn, stride uint64 // fairness: the key with the lowest turn is served next; each lease adds the stride

	lanes   int       // lanes that it limits, unless it is shared
	ready   int       // ready jobs of its lanes
	blocked blockList // groups that wait until it has room, unless it is shared

	releases bool // in of.releasing

	users          map[uint32]*sharedUser // by queue; of a shared bucket
	oldest, newest *sharedUser
	waiting        waitingUsers
}

// oneTurn is the stride of a key with weight 1.
const oneTurn = 1 << 20

// addBucket adds a bucket to those of all queues.
func (r *Rules) addBucket(b *bucket) *bucket {
	b.number, b.serial = r.buckets.Add(b), r.nextSerial()
	r.takeRate(b)
	return b
}

// setWhole sets the limit of all jobs of a queue. Without a limit, the bucket stays while jobs have slots in it.
func (r *Rules) setWhole(n uint32, q *Queue, limit core.Throttle) {
	b := q.whole
	switch {
	case b == nil && limit == core.Throttle{}:
	case b == nil:
		q.whole = r.addBucket(&bucket{queue: n, limit: limit})
	default:
		if b.limit.Rate > 0 && limit.Rate == 0 {
			r.table.Timers.Remove(&b.timer)
			r.dropRate(b)
			b.paid = 0
		}
		b.limit = limit
		r.takeRate(b)
		r.dropUnused(b)
	}
}

// isShared reports whether a bucket is of a shared limit.
func (b *bucket) isShared() bool { return b.queue == 0 }

// isRetired reports whether the lanes of this bucket were replaced.
func (b *bucket) isRetired() bool { return b.of != nil && b.of.retired }

// bucketFor finds or creates the bucket of a type or key; nil: no limit applies.
func (r *Rules) bucketFor(x *lanes, scope core.LimitScope, name string) *bucket {
	if scope == core.ScopeType && !x.byType || scope == core.ScopeKey && !x.byKey {
		return nil
	}
	id := limitName{scope, name}
	if b := x.buckets[id]; b != nil {
		return b
	}
	limit, limited := x.rules.limits[id]
	if !limited {
		limit, limited = x.rules.limits[limitName{scope: scope}]
	}
	if !limited && !(x.fair && scope == core.ScopeKey) {
		return nil
	}
	b := &bucket{queue: x.queue, of: x, name: id, limit: limit.Throttle, stride: oneTurn}
	if x.former != nil && x.former.buckets[id] != nil {
		b.paid, b.rateStored = x.former.buckets[id].paid, x.former.buckets[id].rateStored
	}
	x.buckets[id] = r.addBucket(b)
	if weight := x.rules.sharing.Weights[name]; x.fair && scope == core.ScopeKey && weight > 0 {
		b.stride = oneTurn / uint64(weight)
	}
	return b
}

// isFull reports whether a bucket does not allow the lease of a job with this cost now.
func (r *Rules) isFull(b *bucket, cost uint32) bool {
	return b.isShared() && len(r.shared.sorting) > 0 || exceeds(b.slots, cost, b.limit.Leased) ||
		b.limit.Rate > 0 && r.roomAt(b, cost) > r.table.Now
}

// exceeds reports whether a job with this cost does not fit beside the leased jobs. A job whose cost alone is above the
// limit fits if no job is leased.
func exceeds(leased, cost, limit uint32) bool {
	return limit > 0 && leased > 0 && uint64(leased)+uint64(cost) > uint64(limit)
}

// interval is the time between two leases, in units of core.Instant.
func (b *bucket) interval() core.Instant {
	return max(core.Instant(b.limit.Interval()/time.Microsecond), 1)
}

// roomAt returns when the rate of a bucket allows the lease of a job with this cost: when that much of the burst is
// available, or the whole burst.
func (r *Rules) roomAt(b *bucket, cost uint32) core.Instant {
	burst := max(b.limit.Burst, 1)
	return b.paid - core.Instant(burst-min(burst, cost))*b.interval()
}

// roomIn returns how many leases a bucket allows now.
func (r *Rules) roomIn(b *bucket) int {
	room := math.MaxInt32
	if b.limit.Leased > 0 {
		room = max(int(b.limit.Leased)-int(b.slots), 0)
	}
	if b.limit.Rate > 0 {
		over := r.table.Now - r.roomAt(b, 1)
		if over < 0 {
			return 0
		}
		room = min(room, int(min(over/b.interval()+1, core.Instant(max(b.limit.Burst, 1)))))
	}
	return room
}

// nextRoomAt returns when the rate of a bucket allows more leases than now; false: it already allows one for each job,
// or the whole burst.
func (r *Rules) nextRoomAt(b *bucket, jobs int) (core.Instant, bool) {
	from := r.roomAt(b, 1)
	if from > r.table.Now {
		return from, true
	}
	room := (r.table.Now-from)/b.interval() + 1
	return from + room*b.interval(), room < core.Instant(min(jobs, int(max(b.limit.Burst, 1))))
}

// spend counts a lease of a cost in the rate of a bucket.
func (r *Rules) spend(b *bucket, cost uint32) {
	if b.limit.Rate > 0 {
		b.paid = max(b.paid, r.table.Now) + core.Instant(cost)*b.interval()
		r.rateChanged(b)
	}
}

// waitForRoom sets the deadline of a bucket whose rate does not allow a job with this cost now.
func (r *Rules) waitForRoom(b *bucket, cost uint32) {
	if at := r.roomAt(b, cost); b.limit.Rate > 0 && at > r.table.Now {
		r.armBucket(b, at)
	}
}

// armBucket sets the deadline of a bucket, unless it has an earlier one.
func (r *Rules) armBucket(b *bucket, at core.Instant) {
	if b.timer != 0 && r.table.Timers.At(b.timer) <= at {
		return
	}
	r.table.Timers.Remove(&b.timer)
	b.timer = r.table.Timers.Add(at, timer.Owner{Kind: table.TimerBucket, Handle: b.number})
}

// BucketTimeout handles the deadline of a bucket.
func (r *Rules) BucketTimeout(number uint32) {
	b := r.buckets.At(number)
	b.timer = 0
	if b.isRetired() {
		return
	}
	if b.waiting.goesOn {
		r.offerUsers(b)
		return
	}
	r.hasRoom(b)
	r.dropUnused(b)
}

// hasRoom releases the groups that wait for a bucket which has room, and offers their queues.
func (r *Rules) hasRoom(b *bucket) {
	if b.isShared() {
		b.waiting.round++
		r.offerUsers(b)
		return
	}
	if b.of != nil {
		r.release(b.of, b, &b.blocked, searchSteps/2)
		r.releaseLater(b.of, b)
	}
	r.host.Offer(b.queue)
}

// dropUnused removes a bucket that no job needs. A bucket with a used rate stays until the rate is fully available
// again.
func (r *Rules) dropUnused(b *bucket) {
	switch {
	case b.isShared() || b.lanes > 0 || b.slots > 0 || b.of == nil && b.limit != core.Throttle{}:
	case b.limit.Rate > 0 && b.paid > r.table.Now:
		r.armBucket(b, b.paid)
	default:
		r.dropBucket(b)
	}
}

func (r *Rules) dropBucket(b *bucket) {
	r.table.Timers.Remove(&b.timer)
	r.dropRate(b)
	switch {
	case b.of != nil:
		delete(b.of.buckets, b.name)
	case !b.isShared():
		r.queues[b.queue].whole = nil
	}
	r.buckets.Remove(b.number)
}

// bucketSlot is what a leased job has taken in a bucket. The zero value is no slot.
type bucketSlot struct {
	bucket *bucket
	worker uint64 // the holder; see SlotKey
	timer  timer.ID
	over   bool // the job had a slot, which became free before the end of the lease
}

// takeSlot counts a leased job in a bucket.
func (r *Rules) takeSlot(s *bucketSlot, b *bucket, h uint32, worker uint64) {
	s.bucket, s.worker = b, worker
	b.slots += r.table.CostOf(h)
	if b.perWorker == nil {
		b.perWorker = map[uint64]uint32{}
	}
	b.perWorker[worker]++
}

// freeSlot removes a job from a bucket.
func (r *Rules) freeSlot(s *bucketSlot, h uint32) {
	b, worker := s.bucket, s.worker
	r.table.Timers.Remove(&s.timer)
	if *s = (bucketSlot{}); b == nil || b.isRetired() {
		return
	}
	b.slots -= r.table.CostOf(h)
	if b.perWorker[worker]--; b.perWorker[worker] == 0 {
		delete(b.perWorker, worker)
	}
	r.hasRoom(b)
	r.dropUnused(b)
}

// roomForWorker returns how many leases the limit per worker of a bucket allows a client.
func (r *Rules) roomForWorker(b *bucket, who Asker) int {
	most := b.limit.LeasedPerWorker
	if key, known := r.workerKeyOf(who); known {
		most -= min(most, b.perWorker[key])
	}
	return int(most)
}

// workerHasRoom reports whether the limit per worker of a bucket, which may be nil, allows a client to get a job.
func (r *Rules) workerHasRoom(b *bucket, who Asker) bool {
	if b == nil || b.limit.LeasedPerWorker == 0 {
		return true
	}
	key, known := r.workerKeyOf(who)
	return !known || b.perWorker[key] < b.limit.LeasedPerWorker
}
