package limit

import (
	"maps"
	"math"

	"broker/core"
	"broker/core/internal/queue"
	"broker/core/internal/table"
)

// Queue is a queue with its limits.
type Queue struct {
	table.Queue
	rules        *queueRules // its limits and sharing; nil if it has none
	whole        *bucket     // of the limit of all its jobs; nil: there is none
	lanes        *lanes      // nil unless its limits or fairness treat its jobs differently
	order        *ordering   // nil unless the jobs of each key are handed out in order
	Sorting      bool        // its limits have changed; see laneSort
	Joining      bool        // the queue gets lanes for a job that joins it, and must not be dropped
	limitedTypes bool        // the queue has had jobs of types with shared limits
}

// HasRules reports whether a queue has limits or a sharing.
func (q *Queue) HasRules() bool { return q.rules != nil }

// DistinguishesJobs reports whether a queue treats its jobs differently, so that leases must be counted.
func (q *Queue) DistinguishesJobs() bool { return q.lanes != nil || q.order != nil }

// HasLanes reports whether a queue has lanes.
func (q *Queue) HasLanes() bool { return q.lanes != nil }

// Throttle returns the limit of all jobs of a queue; zero: there is none.
func (q *Queue) Throttle() core.Throttle {
	if q.whole == nil {
		return core.Throttle{}
	}
	return q.whole.limit
}

// inForce returns the bucket of the limit of all jobs of a queue; nil: there is none. Jobs may still have slots in the
// bucket of a former limit.
func (q *Queue) inForce() *bucket {
	if q.Throttle() == (core.Throttle{}) {
		return nil
	}
	return q.whole
}

// LimitsWorkers reports whether the limit of all jobs of a queue limits each worker.
func (q *Queue) LimitsWorkers() bool { return q.whole != nil && q.whole.limit.LeasedPerWorker > 0 }

// Reached reports whether as many jobs are leased as the limit of the whole queue allows.
func (q *Queue) Reached() bool {
	return q.whole != nil && exceeds(q.whole.slots, 1, q.whole.limit.Leased)
}

// Room returns how many of n jobs the limit of the whole queue allows.
func (q *Queue) Room(n int) int {
	if q.whole == nil || q.whole.limit.Leased == 0 {
		return n
	}
	return min(n, int(q.whole.limit.Leased)-int(q.whole.slots))
}

// Fits reports whether the limit of the whole queue allows a job in addition to the leased jobs.
func (r *Rules) Fits(q *Queue, h uint32) bool {
	b := q.whole
	return b == nil || b.limit.Leased == 0 || !exceeds(b.slots, r.table.CostOf(h), b.limit.Leased)
}

// Host is what limits need from the machine.
type Host interface {
	QueueFor(name string) uint32      // finds or creates a queue, which is not listed until it is used
	Offer(queue uint32) bool          // the queue may have a job to hand out; reports whether a client waits for one
	DropIdle(queue uint32)            // the queue may no longer be needed
	Client(slot uint32) core.ClientID // the client with a slot
	HolderName(e *table.Entry) string // the worker of a leased job
}

// AddQueue gives a queue its number.
func (r *Rules) AddQueue(n uint32, q *Queue) {
	if int(n) == len(r.queues) {
		r.queues = append(r.queues, nil)
	}
	r.queues[n] = q
}

// RemoveQueue removes a queue.
func (r *Rules) RemoveQueue(n uint32) { r.queues[n] = nil }

// SharingOf returns how a queue shares its workers between keys; nil: no sharing.
func (q *Queue) SharingOf() *core.Sharing {
	if q.rules == nil || q.rules.sharing.Key.Kind == core.KeyNone {
		return nil
	}
	sharing := q.rules.sharing
	sharing.Weights = maps.Clone(sharing.Weights)
	return &sharing
}

// Leased counts the lease of a job in the rates and turns of its queue. The job is no longer ready.
func (r *Rules) Leased(q *Queue, h uint32, seq uint64) {
	if q.lanes != nil {
		r.countLease(q.lanes, h)
	}
	if r.orders.handOut && q.order != nil {
		r.handOut(q, h, seq)
	}
}

// LeasedAnyway is Leased for a job that was not ready.
func (r *Rules) LeasedAnyway(q *Queue, h uint32, e *table.Entry) {
	if q.lanes != nil {
		r.sortIn(h, e, q) // the walk may not have reached it
		r.countLease(q.lanes, h)
	}
}

// Transferred puts a leased job into its lane after its lease was transferred to another worker.
func (r *Rules) Transferred(q *Queue, h uint32, e *table.Entry) {
	if q.lanes != nil {
		r.sortIn(h, e, q) // the walk may not have reached it
	}
}

// JoinQueue puts a job that has moved to a queue into its lane and chain. Its payload may be on disk only.
func (r *Rules) JoinQueue(h uint32, e *table.Entry, typ string) {
	r.needLanes(e.Queue, typ)
	r.JoinOrder(h, e)
	if q := r.queues[e.Queue]; q.lanes != nil && r.laneOf(h, q.lanes) == nil {
		r.joinLane(h, q.lanes, r.laneNameOf(h, e, q.lanes))
	}
}

// KeepsBack reports whether limits prevent the lease of a ready job now.
func (r *Rules) KeepsBack(q *Queue, h uint32) bool {
	if q.lanes == nil {
		return q.Reached() || !r.Fits(q, h)
	}
	return q.Reached() || r.limited(r.limitsOf(h).lane)
}

// Reached returns the limit that prevents the lease of a ready job now; nil: there is none, or shared limits are being
// counted.
func (r *Rules) Reached(q *Queue, h uint32) *core.LimitReached {
	b, cost := q.whole, r.table.CostOf(h)
	switch {
	case !r.KeepsBack(q, h):
		return nil
	case q.lanes != nil && !q.Reached():
		b, cost = r.limiting(r.limitsOf(h).lane)
	}
	hit := &core.LimitReached{
		ID: core.LimitID{Queue: q.Name, Scope: b.name.scope, Of: b.name.of}, Throttle: b.limit, Taken: b.slots,
	}
	if b.isShared() {
		hit.ID = core.LimitID{Name: b.name.of}
	}
	switch {
	case exceeds(b.slots, cost, b.limit.Leased):
	case b.limit.Rate > 0 && r.roomAt(b, cost) > r.table.Now:
		hit.NextAt = r.roomAt(b, cost)
	default:
		return nil
	}
	return hit
}

// StartHandOut begins a hand-out of several jobs.
func (r *Rules) StartHandOut() { r.orders.handOut = true }

// Drained gives back memory once there are no jobs.
func (r *Rules) Drained() { r.orders.pages = nil }

// ClockSet adapts to a change of the wall clock.
func (r *Rules) ClockSet(by core.Instant) {
	for b := range r.buckets.All() {
		b.paid += by
	}
}

// HasRates reports whether the open batch changes rates.
func (r *Rules) HasRates() bool { return len(r.dirtyRates) > 0 }

// ForgetRules removes the rules of a queue without jobs.
func (r *Rules) ForgetRules(n uint32) {
	q := r.queues[n]
	if q.whole != nil {
		r.dropBucket(q.whole)
	}
	if q.lanes != nil {
		r.dropBuckets(q.lanes)
	}
	q.lanes = nil
	r.dropRules(n)
}

// CountFit returns how many jobs of a queue may be handed out now. It stops counting at enough. It also returns the
// unfit jobs that it found, at most MaxStale.
func (r *Rules) CountFit(q *Queue, who Asker, enough int, isUnfit func(h uint32) bool) (n int, unfit []uint32) {
	x := q.lanes
	if x == nil {
		return r.fitJobs(q, q.Open(), enough, nil, isUnfit)
	}
	for l := range r.openLanes(x) {
		if n >= enough {
			break
		}
		var fit int
		fit, unfit = r.fitJobs(q, &l.ready, min(r.laneLeases(l, who), enough-n), unfit, isUnfit)
		n += fit
	}
	if q.whole != nil {
		n = min(n, r.roomIn(q.whole))
	}
	return n, unfit
}

// fitJobs counts the jobs in a list of open jobs that may be handed out, up to most, and adds the unfit jobs it finds
// to unfit.
func (r *Rules) fitJobs(
	q *Queue, list *queue.List, most int, unfit []uint32, isUnfit func(h uint32) bool,
) (n int, _ []uint32) {
	look := func(h uint32) bool {
		if isUnfit(h) {
			unfit = append(unfit, h)
		} else {
			n++
		}
		return n < most && len(unfit) < MaxStale
	}
	for w := list.From(nil); n < most && len(unfit) < MaxStale; {
		h := w.Next()
		if h == 0 {
			break
		}
		if look(h) && q.order != nil {
			r.followers(q, h, look)
		}
	}
	return n, unfit
}

// OpenFor returns how many jobs of a queue could be handed out to a client now, including unfit jobs; it stops once the
// count exceeds above.
func (r *Rules) OpenFor(q *Queue, who Asker, above int) int {
	if q.lanes != nil {
		return r.laneRoom(q, who, above)
	}
	return r.openJobs(q, q.Open(), above)
}

// RoomForWorker returns how many leases the queue's limit per worker allows a client.
func (r *Rules) RoomForWorker(q *Queue, who Asker) int {
	if !q.LimitsWorkers() {
		return math.MaxInt
	}
	return r.roomForWorker(q.whole, who)
}

// WorkerBelow reports whether the queue's limit per worker allows a client to get a job.
func (r *Rules) WorkerBelow(q *Queue, who Asker) bool { return r.workerHasRoom(q.whole, who) }

// Available returns how many jobs of a queue could be handed out now, regardless of the client; once the count
// exceeds above, it may be inexact.
func (r *Rules) Available(q *Queue, above int) int {
	n := q.Open().Len()
	if q.lanes != nil {
		n = r.laneRoom(q, Asker{}, above)
	}
	return q.Room(n)
}

// Asker is a client that requests a job; without a lease: any client.
type Asker struct {
	Client core.ClientID
	Lease  *core.Lease
}

// MaxStale is how many unfit jobs a search for work removes at most.
const MaxStale = 16
