package limit

import (
	"broker/core"
	"broker/core/internal/slot"
	"broker/core/internal/table"
)

// A lease takes a slot in the bucket of each limit of its job: in that of all jobs of the queue, and in those of its
// lane. A slot becomes free with the end of the lease or after Throttle.SlotFor. Queues without limits have no cost.

// WorkerKey marks a slot key as a worker's number; otherwise it is a ClientID, which is never reused.
const WorkerKey = 1 << 63

// jobLimits is a job's data about the limits of its queue. The job's Optional.Limits is its number.
type jobLimits struct {
	lane  *laneJob   // in a queue with lanes
	whole bucketSlot // in the bucket of all jobs of the queue
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

// TakeSlot counts a lease in the limits of its queue, if there are any.
func (r *Rules) TakeSlot(h uint32, e *table.Entry, key uint64) {
	q := r.queues[e.Queue]
	if q.lanes != nil {
		r.takeLaneSlots(h, key)
	}
	if q.whole != nil {
		r.takeQueueSlot(h, q, key)
	}
}

// takeQueueSlot counts a lease in the limit of all jobs of a queue.
func (r *Rules) takeQueueSlot(h uint32, q *Queue, key uint64) {
	if q.whole.limit != (core.Throttle{}) {
		r.takeSlot(&r.ensureLimits(h).whole, q.whole, h, key, table.TimerSlot)
	}
}

// takeLaneSlots counts a lease in the buckets of its lane.
func (r *Rules) takeLaneSlots(h uint32, worker uint64) {
	l := r.limitsOf(h).lane
	l.slots = make([]bucketSlot, len(l.buckets))
	l.leased++
	for i, b := range l.buckets {
		switch {
		case b == nil:
		case i == ofKey:
			r.takeSlot(&l.slots[i], b, h, worker, table.TimerKeySlot)
		default:
			r.takeSlot(&l.slots[i], b, h, worker, table.TimerTypeSlot)
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
		r.freeSlot(&x.whole, h)
	}
}

// freeLaneSlots removes a job from the buckets of its lane.
func (r *Rules) freeLaneSlots(h uint32) {
	if x := r.limitsOf(h); x != nil && x.lane != nil && x.lane.slots != nil {
		x.lane.leased--
		for i := range x.lane.slots {
			r.freeSlot(&x.lane.slots[i], h)
		}
		x.lane.slots = nil
	}
}

// SlotTimeout frees a slot of a job whose lease continues. kind is the deadline of the slot.
func (r *Rules) SlotTimeout(h uint32, kind uint8) {
	x := r.limitsOf(h)
	s := &x.whole
	switch kind {
	case table.TimerTypeSlot:
		s = &x.lane.slots[ofType]
	case table.TimerKeySlot:
		s = &x.lane.slots[ofKey]
	}
	s.timer = 0
	r.freeSlot(s, h)
	s.over = true
}
