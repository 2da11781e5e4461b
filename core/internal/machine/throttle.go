package machine

import (
	"broker/core"
	"broker/core/internal/table"
	"broker/core/internal/timer"
)

// A throttle limits how many jobs of a queue are leased at the same time, in total or by one worker. A lease takes a slot, which
// becomes free with the end of the lease or after Throttle.SlotFor. Queues without a throttle pay nothing.

// slotState is a leased job's use of a throttle.
type slotState uint8

// slotNone: the queue had no throttle when the job was leased. slotOver: the slot became free before the end of the lease.
const (
	slotNone slotState = iota
	slotTaken
	slotOver
)

// workerKey marks a slot key as a worker's number; otherwise it is a ClientID, which is never reused.
const workerKey = 1 << 63

// jobLimits is what a job has of the limits of its queue. The number in its optional state finds it.
type jobLimits struct {
	lane      *laneJob // in a queue with lanes
	slot      slotState
	slotKey   uint64 // holder of the slot
	slotTimer timer.ID
}

// limitsOf is what a job has of limits; nil: nothing yet.
func (m *Machine) limitsOf(h uint32) *jobLimits {
	if x := m.table.Optional(h); x != nil && x.Limits != 0 {
		return m.limitedJobs.all[x.Limits]
	}
	return nil
}

// limitedJobs numbers what jobs have of limits, from 1.
type limitedJobs struct {
	all  []*jobLimits
	free []uint32
}

func (m *Machine) ensureLimits(h uint32) *jobLimits {
	x, s := m.table.EnsureOptional(h), &m.limitedJobs
	if x.Limits != 0 {
		return s.all[x.Limits]
	}
	if n := len(s.free); n > 0 {
		x.Limits, s.free = s.free[n-1], s.free[:n-1]
	} else {
		if len(s.all) == 0 {
			s.all = append(s.all, nil)
		}
		x.Limits = uint32(len(s.all)) //nolint:gosec // one for each job at most
		s.all = append(s.all, nil)
	}
	s.all[x.Limits] = &jobLimits{}
	return s.all[x.Limits]
}

// forgetLimits ends what a job that is removed has of limits.
func (m *Machine) forgetLimits(h uint32) {
	x, s := m.table.Optional(h), &m.limitedJobs
	if x == nil || x.Limits == 0 {
		return
	}
	m.leaveLane(h)
	s.all[x.Limits] = nil
	if s.free = append(s.free, x.Limits); len(s.free) == len(s.all)-1 {
		*s = limitedJobs{}
	}
	x.Limits = 0
}

// slotFor reports whether the throttle of the queue allows this lease.
func (m *Machine) slotFor(q *jobQueue, c *client, op *core.Lease) bool {
	if q.lanes != nil && m.laneFront(q, c, op) == 0 {
		return false
	}
	if q.limits.LeasedPerWorker == 0 {
		return true
	}
	key, known := m.workerKeyOf(c, op)
	return !known || q.perWorker[key] < q.limits.LeasedPerWorker
}

// workerKeyOf names who a lease is for; not known: a worker without a lease.
func (m *Machine) workerKeyOf(c *client, op *core.Lease) (key uint64, known bool) {
	if op.Holder != core.HeldByWorker {
		return uint64(c.id), true
	}
	number := m.table.Workers.NumberOf(op.Worker)
	return workerKey | uint64(number), number != 0
}

// slotKey identifies the holder of a leased job; zero if unknown.
func (m *Machine) slotKey(e *table.Entry) uint64 {
	switch e.HolderKind {
	case core.HeldByConn:
		return uint64(m.clients[e.Holder].id)
	case core.HeldByWorker:
		return workerKey | uint64(e.Holder)
	case core.HeldByNobody:
	}
	return 0
}

// takeSlot counts a lease in the limits of its queue, if there are any.
func (m *Machine) takeSlot(h uint32, e *table.Entry, key uint64) {
	q := m.queues[e.Queue]
	if q.lanes != nil {
		m.takeLaneSlots(h, key)
	}
	m.takeQueueSlot(h, q, key)
}

// takeQueueSlot counts a lease in the limit of the whole queue, if there is one.
func (m *Machine) takeQueueSlot(h uint32, q *jobQueue, key uint64) {
	t := q.limits.Throttle
	if t == (core.Throttle{}) {
		return
	}
	x := m.ensureLimits(h)
	x.slot, x.slotKey = slotTaken, key
	q.slots += m.table.CostOf(h)
	if q.perWorker == nil {
		q.perWorker = map[uint64]uint32{}
	}
	q.perWorker[key]++
	if t.SlotFor > 0 {
		x.slotTimer = m.table.Timers.Add(m.table.Now.Add(t.SlotFor), timer.Owner{Kind: table.TimerSlot, Handle: h})
	}
}

// giveSlot takes a job out of the limits of its queue.
func (m *Machine) giveSlot(h uint32, e *table.Entry) {
	if !e.Has(table.HasOptional) {
		return
	}
	if x := m.limitsOf(h); x != nil {
		m.freeLaneSlots(h)
		m.giveQueueSlot(x, h, e)
	}
}

// giveQueueSlot takes a job out of the limit of the whole queue.
func (m *Machine) giveQueueSlot(x *jobLimits, h uint32, e *table.Entry) {
	if x.slot == slotTaken {
		m.table.Timers.Remove(&x.slotTimer)
		q := m.queues[e.Queue]
		q.slots -= m.table.CostOf(h)
		m.offer(e.Queue)
		if q.perWorker[x.slotKey]--; q.perWorker[x.slotKey] == 0 {
			delete(q.perWorker, x.slotKey)
		}
	}
	x.slot, x.slotKey = slotNone, 0
}

// slotTimeout frees the slot of a job whose lease continues.
func (m *Machine) slotTimeout(h uint32) {
	x := m.limitsOf(h)
	x.slotTimer = 0
	m.giveQueueSlot(x, h, m.table.At(h))
	x.slot = slotOver
}
