package limit

import (
	"broker/core"
	"broker/core/internal/slot"
	"broker/core/internal/table"
	"broker/core/internal/timer"
)

// A throttle limits how many jobs of a queue are leased at the same time, in total or by one worker. A lease takes a
// slot, which becomes free with the end of the lease or after Throttle.SlotFor. Queues without a throttle have no cost.

// slotState is a leased job's use of a throttle.
type slotState uint8

// slotNone: the queue had no throttle when the job was leased. slotOver: the slot was freed before the end of the
// lease.
const (
	slotNone slotState = iota
	slotTaken
	slotOver
)

// WorkerKey marks a slot key as a worker's number; otherwise it is a ClientID, which is never reused.
const WorkerKey = 1 << 63

// jobLimits is a job's data about the limits of its queue. The job's Optional.Limits is its number.
type jobLimits struct {
	lane      *laneJob // in a queue with lanes
	slot      slotState
	slotKey   uint64 // holder of the slot
	slotTimer timer.ID
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
	if q.Throttle != (core.Throttle{}) {
		r.takeQueueSlot(h, q, key)
	}
}

// takeQueueSlot counts a lease in the limit of the whole queue.
func (r *Rules) takeQueueSlot(h uint32, q *Queue, key uint64) {
	t := q.Throttle
	x := r.ensureLimits(h)
	x.slot, x.slotKey = slotTaken, key
	q.slots += r.table.CostOf(h)
	if q.perWorker == nil {
		q.perWorker = map[uint64]uint32{}
	}
	q.perWorker[key]++
	if t.SlotFor > 0 {
		x.slotTimer = r.table.Timers.Add(r.table.Now.Add(t.SlotFor), timer.Owner{Kind: table.TimerSlot, Handle: h})
	}
}

// FreeSlot removes a job from the limits of its queue.
func (r *Rules) FreeSlot(h uint32, e *table.Entry) {
	if !e.Has(table.HasOptional) {
		return
	}
	if x := r.limitsOf(h); x != nil {
		r.freeLaneSlots(h)
		r.freeQueueSlot(x, h, e)
	}
}

// freeQueueSlot removes a job from the limit of the whole queue.
func (r *Rules) freeQueueSlot(x *jobLimits, h uint32, e *table.Entry) {
	if x.slot == slotTaken {
		r.table.Timers.Remove(&x.slotTimer)
		q := r.queues[e.Queue]
		q.slots -= r.table.CostOf(h)
		r.host.Offer(e.Queue)
		if q.perWorker[x.slotKey]--; q.perWorker[x.slotKey] == 0 {
			delete(q.perWorker, x.slotKey)
		}
	}
	x.slot, x.slotKey = slotNone, 0
}

// SlotTimeout frees the slot of a job whose lease continues.
func (r *Rules) SlotTimeout(h uint32) {
	x := r.limitsOf(h)
	x.slotTimer = 0
	r.freeQueueSlot(x, h, r.table.At(h))
	x.slot = slotOver
}
