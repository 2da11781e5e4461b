package machine

import (
	"broker/core"
	"broker/core/internal/timer"
)

// A throttle bounds how many jobs of a queue are leased at once, in all or by one worker. A lease takes a slot; the slot
// comes free with the lease, or after Throttle.SlotFor. Queues without a throttle pay nothing.

// slotKey names who takes a slot: a connection, or a worker by its number.
func slotKey(kind core.Holder, holder uint32) uint64 { return uint64(kind)<<32 | uint64(holder) }

// slotFor reports whether the queue's throttle lets this lease have a job.
func (m *Machine) slotFor(q *jobQueue, c *client, op *core.Lease) bool {
	if q.limits.LeasedPerWorker == 0 {
		return true
	}
	holder := c.slot
	if op.Holder == core.HeldByWorker {
		var known bool
		if holder, known = m.workers.number[op.Worker]; !known {
			return true
		}
	}
	return q.perWorker[slotKey(op.Holder, holder)] < q.limits.LeasedPerWorker
}

func (m *Machine) takeSlot(h uint32, e *entry) {
	q := m.queues[e.queue]
	t := q.limits.Throttle
	if t == (core.Throttle{}) {
		return
	}
	x := m.extra(h)
	x.inSlot = true
	q.slots++
	if q.perWorker == nil {
		q.perWorker = map[uint64]uint32{}
	}
	x.worker = e.holder
	q.perWorker[slotKey(e.holderKind, x.worker)]++
	if t.SlotFor > 0 {
		x.slotTimer = m.timers.Add(m.now.Add(t.SlotFor), timer.Owner{Kind: timerSlot, Handle: h})
	}
}

func (m *Machine) giveSlot(h uint32, e *entry) {
	x := m.rare(h)
	if x == nil || !x.inSlot {
		return
	}
	m.timers.Remove(&x.slotTimer)
	x.inSlot = false
	q := m.queues[e.queue]
	q.slots--
	key := slotKey(e.holderKind, x.worker)
	if q.perWorker[key]--; q.perWorker[key] == 0 {
		delete(q.perWorker, key)
	}
}

// slotTimeout frees the slot of a job whose lease goes on.
func (m *Machine) slotTimeout(h uint32) {
	e := m.jobs.at(h)
	m.rare(h).slotTimer = 0
	m.giveSlot(h, e)
	m.offer(e.queue)
}

// recountSlots makes the slots of a queue agree with its leases after its limits have changed.
func (m *Machine) recountSlots(n uint32) {
	q := m.queues[n]
	if q.count[core.Leased] == 0 {
		return
	}
	m.eachJob(func(h uint32, e *entry) {
		if e.queue == n && e.state == core.Leased {
			m.giveSlot(h, e)
			m.takeSlot(h, e)
		}
	})
}

// eachJob walks all jobs in the order of their handles.
func (m *Machine) eachJob(fn func(h uint32, e *entry)) {
	for h := uint32(1); h <= m.jobs.next; h++ {
		if e := m.jobs.at(h); e.seq != 0 {
			fn(h, e)
		}
	}
}
