package limit

import (
	"math"
	"time"

	"broker/core"
	"broker/core/internal/table"
	"broker/core/internal/timer"
)

// bucket counts the leases of one type or key of a queue, the rate of the queue, or the leases of a shared limit.
type bucket struct {
	of        *lanes
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

	users   map[uint32]*sharedUser // by queue; of a shared bucket
	waiting waitingUsers
}

// oneTurn is the stride of a key with weight 1.
const oneTurn = 1 << 20

// newBucket returns a bucket with a limit.
func (r *Rules) newBucket(x *lanes, name limitName, limit core.Throttle) *bucket {
	b := &bucket{of: x, name: name, limit: limit, stride: oneTurn}
	if x.former != nil && x.former.buckets[name] != nil {
		b.paid, b.rateStored = x.former.buckets[name].paid, x.former.buckets[name].rateStored
	}
	b.number, b.serial = r.buckets.Add(b), r.nextSerial()
	x.buckets[name] = b
	r.takeRate(b)
	return b
}

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
	b := r.newBucket(x, id, limit.Throttle)
	if weight := x.rules.sharing.Weights[name]; x.fair && scope == core.ScopeKey && weight > 0 {
		b.stride = oneTurn / uint64(weight)
	}
	return b
}

// isFull reports whether a bucket does not allow the lease of a job with this cost now.
func (r *Rules) isFull(b *bucket, cost uint32) bool {
	return b.of == nil && len(r.shared.sorting) > 0 || exceeds(b.slots, cost, b.limit.Leased) ||
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
	if b.of == nil {
		b.waiting.round++
		r.offerUsers(b)
		return
	}
	r.release(b.of, b, &b.blocked)
	r.host.Offer(b.of.queue)
}

// dropUnused removes a bucket that no job needs. A bucket with a used rate stays until the rate is fully available
// again.
func (r *Rules) dropUnused(b *bucket) {
	switch {
	case b.of == nil || b == b.of.whole || b.lanes > 0 || b.slots > 0:
	case b.limit.Rate > 0 && b.paid > r.table.Now:
		r.armBucket(b, b.paid)
	default:
		r.dropBucket(b)
	}
}

func (r *Rules) dropBucket(b *bucket) {
	r.table.Timers.Remove(&b.timer)
	r.dropRate(b)
	if b.of != nil {
		delete(b.of.buckets, b.name)
	}
	r.buckets.Remove(b.number)
}
