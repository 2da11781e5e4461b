package limit

import (
	"slices"

	"broker/core"
	"broker/core/internal/slot"
	"broker/core/internal/table"
	"broker/core/internal/timer"
)

// A lease takes a slot in the bucket of each limit of its job: in that of all jobs of the queue, and in those of its
// lane. A slot becomes free with the end of the lease or after Throttle.SlotFor. Queues without limits have no cost.

// WorkerKey marks a slot key as a worker's number; otherwise it is a ClientID, which is never reused.
const WorkerKey = 1 << 63

// jobLimits is a job's data about the limits of its queue. The job's Optional.Limits is its number.
type jobLimits struct {
	lane  *lane        // in a queue with lanes; done jobs are in no lane
	slots []bucketSlot // of a leased job: in the buckets of its lane, in their order; without lanes only ofQueue
}

// limitsOf returns a job's data about limits; nil: none yet.
func (r *Rules) limitsOf(h uint32) *jobLimits {
	if x := r.table.Optional(h); x != nil && x.Limits != 0 {
		return r.limitedJobs.At(x.Limits)
	}
	return nil
}

func (r *Rules) ensureLimits(h uint32) *jobLimits {
	x := r.table.EnsureOptional(h)
	if x.Limits == 0 {
		x.Limits = r.limitedJobs.Add(&jobLimits{})
	}
	return r.limitedJobs.At(x.Limits)
}

// ForgetLimits removes the jobLimits of a job that is being removed.
func (r *Rules) ForgetLimits(h uint32) {
	x := r.table.Optional(h)
	if x == nil || x.Limits == 0 {
		return
	}
	r.LeaveLane(h)
	if r.limitedJobs.Remove(x.Limits); r.limitedJobs.Len() == 0 {
		r.limitedJobs = slot.Map[jobLimits]{} // gives back the memory
	}
	x.Limits = 0
}

// workerKeyOf returns the key of the worker that a lease is for; not known: a worker without a lease.
func (r *Rules) workerKeyOf(who Asker) (key uint64, known bool) {
	if who.Lease.Holder != core.HeldByWorker {
		return uint64(who.Client), true
	}
	number := r.table.Workers.NumberOf(who.Lease.Worker)
	return WorkerKey | uint64(number), number != 0
}

// SlotKey identifies the holder of a leased job; zero if unknown.
func (r *Rules) SlotKey(e *table.Entry) uint64 {
	switch e.HolderKind {
	case core.HeldByConn:
		return uint64(r.host.Client(e.Holder))
	case core.HeldByWorker:
		return WorkerKey | uint64(e.Holder)
	case core.HeldByNobody:
	}
	return 0
}

// slotTimers are the deadlines of slots, by the index of the bucket. A shared limit has no SlotFor.
var slotTimers = [...]uint8{ofQueue: table.TimerSlot, ofType: table.TimerTypeSlot, ofKey: table.TimerKeySlot}

// TakeSlot counts a lease in the limits of its queue, if there are any. Until the walk has reached the job, it counts
// only in that of all jobs; see sortIn.
func (r *Rules) TakeSlot(h uint32, e *table.Entry, key uint64) {
	q := r.queues[e.Queue]
	if l := r.laneOf(h, q.lanes); l != nil {
		r.takeSlots(h, l.buckets, key)
	} else if b := q.inForce(); b != nil {
		r.takeSlots(h, []*bucket{ofQueue: b}, key)
	}
}

// takeSlots counts a lease in those of its buckets in which it has had no slot.
func (r *Rules) takeSlots(h uint32, buckets []*bucket, worker uint64) {
	x := r.ensureLimits(h)
	if len(x.slots) <= ofQueue+1 && len(buckets) > ofQueue+1 {
		x.lane.leased++
	}
	if more := len(buckets) - len(x.slots); more > 0 {
		x.slots = append(x.slots, make([]bucketSlot, more)...)
	}
	for i, b := range buckets {
		s := &x.slots[i]
		if b == nil || *s != (bucketSlot{}) {
			continue
		}
		r.takeSlot(s, b, h, worker)
		if b.limit.SlotFor > 0 {
			at := r.table.Now.Add(b.limit.SlotFor)
			s.timer = r.table.Timers.Add(at, timer.Owner{Kind: slotTimers[i], Handle: h})
		}
	}
}

// FreeSlot removes a job from the limits of its queue.
func (r *Rules) FreeSlot(h uint32, e *table.Entry) {
	if !e.Has(table.HasOptional) {
		return
	}
	if x := r.limitsOf(h); x != nil {
		r.freeLaneSlots(h)
		for i := range x.slots {
			r.freeSlot(&x.slots[i], h)
		}
		x.slots = nil
	}
}

// freeLaneSlots removes a job from the buckets of its lane, but not from that of its queue, which outlives lanes.
func (r *Rules) freeLaneSlots(h uint32) {
	x := r.limitsOf(h)
	if x == nil || len(x.slots) <= ofQueue+1 {
		return
	}
	x.lane.leased--
	for i := range x.slots[ofQueue+1:] {
		r.freeSlot(&x.slots[ofQueue+1+i], h)
	}
	x.slots = x.slots[:ofQueue+1]
}

// SlotTimeout frees a slot of a job whose lease continues. kind is the deadline of the slot.
func (r *Rules) SlotTimeout(h uint32, kind uint8) {
	s := &r.limitsOf(h).slots[slices.Index(slotTimers[:], kind)]
	s.timer = 0
	r.freeSlot(s, h)
	s.over = true
}
