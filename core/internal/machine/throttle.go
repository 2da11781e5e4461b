package machine

import (
	"broker/core"
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
	number, known := m.workers.number[op.Worker]
	return workerKey | uint64(number), known
}

// slotKey identifies the holder of a leased job; zero if unknown.
func (m *Machine) slotKey(e *entry) uint64 {
	switch e.holderKind {
	case core.HeldByConn:
		return uint64(m.clients[e.holder].id)
	case core.HeldByWorker:
		return workerKey | uint64(e.holder)
	case core.HeldByNobody:
	}
	return 0
}

// takeSlot counts a lease in the limits of its queue, if there are any.
func (m *Machine) takeSlot(h uint32, e *entry, key uint64) {
	q := m.queues[e.queue]
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
	x := m.ensureOptional(h)
	x.slot, x.slotKey = slotTaken, key
	q.slots += x.leaseCost()
	if q.perWorker == nil {
		q.perWorker = map[uint64]uint32{}
	}
	q.perWorker[key]++
	if t.SlotFor > 0 {
		x.slotTimer = m.timers.Add(m.now.Add(t.SlotFor), timer.Owner{Kind: timerSlot, Handle: h})
	}
}

// giveSlot takes a job out of the limits of its queue.
func (m *Machine) giveSlot(h uint32, e *entry) {
	if e.has(hasOptional) {
		m.freeLaneSlots(h)
		m.giveQueueSlot(m.optionals[h], e)
	}
}

// giveQueueSlot takes a job out of the limit of the whole queue.
func (m *Machine) giveQueueSlot(x *optional, e *entry) {
	if x.slot == slotTaken {
		m.timers.Remove(&x.slotTimer)
		q := m.queues[e.queue]
		q.slots -= x.leaseCost()
		m.offer(e.queue)
		if q.perWorker[x.slotKey]--; q.perWorker[x.slotKey] == 0 {
			delete(q.perWorker, x.slotKey)
		}
	}
	x.slot, x.slotKey = slotNone, 0
}

// slotTimeout frees the slot of a job whose lease continues.
func (m *Machine) slotTimeout(h uint32) {
	x := m.optionalState(h)
	x.slotTimer = 0
	m.giveQueueSlot(x, m.jobs.at(h))
	x.slot = slotOver
}

// eachJob walks all jobs in the order of their handles.
func (m *Machine) eachJob(fn func(h uint32, e *entry)) {
	for h := uint32(1); h <= m.jobs.next; h++ {
		if e := m.jobs.at(h); e.seq != 0 {
			fn(h, e)
		}
	}
}
