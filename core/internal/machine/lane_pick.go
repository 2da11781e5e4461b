package machine

import (
	"math"

	"broker/core"
	"broker/core/internal/table"
	"broker/core/internal/timer"
)

// laneFront is the job of a queue with lanes that is handed out next, zero if there is none now; with a client: to that
// client. Stale jobs are dropped on the way, as in runnable.
func (m *Machine) laneFront(q *jobQueue, c *client, op *core.Lease) uint32 {
	x := q.lanes
	if x.whole != nil && m.isFull(x.whole) {
		m.waitForRoom(x.whole, 1)
		return 0
	}
	for i, stale := 0, 0; i < x.open.Len() && stale < maxStale; {
		l := x.slots[x.open.At(i)]
		h := l.ready.Front()
		cost := m.table.CostOf(h)
		if b := m.fullBucket(l, cost); b != nil {
			x.close(l)
			l.blockedBy, l.blockedCost = b, cost
			b.blocked = append(b.blocked, l)
			m.waitForRoom(b, cost)
			continue
		}
		if m.wholeFull(q, cost) || c != nil && !m.workerHasRoom(l, c, op) {
			i++
			continue
		}
		if !m.unfit(h) {
			return h
		}
		stale++
		m.dropUnfit(h) // changes the lanes
		i = 0
	}
	return 0
}

// laneRoom is how many jobs of a queue with lanes could be handed out now, with a client: to that client; it stops counting above a
// number.
func (m *Machine) laneRoom(q *jobQueue, c *client, op *core.Lease, above int) (n int) {
	x := q.lanes
	for i := 0; i < x.open.Len() && n <= above; i++ {
		l := x.slots[x.open.At(i)]
		n += min(m.openJobs(q, &l.ready, above+1), m.laneLeases(l, c, op))
	}
	if x.whole != nil {
		n = min(n, m.roomIn(x.whole))
	}
	return n
}

// laneLeases is how many leases the buckets of a lane let go now, with a client: to that client.
func (m *Machine) laneLeases(l *lane, c *client, op *core.Lease) int {
	room := math.MaxInt32
	for _, b := range l.buckets {
		if b == nil {
			continue
		}
		room = min(room, m.roomIn(b))
		if most := b.limit.LeasedPerWorker; c != nil && most > 0 {
			key, known := m.workerKeyOf(c, op)
			if known {
				most -= min(most, b.perWorker[key])
			}
			room = min(room, int(most))
		}
	}
	return room
}

// waitForMore sets the deadlines of the rates that let fewer jobs of a queue go now than are ready: a waiting lease needs more of
// them, and a rate lets more go as time passes, without any other change.
func (m *Machine) waitForMore(q *jobQueue) {
	x := q.lanes
	if x == nil {
		return
	}
	if x.whole != nil {
		m.waitForNext(x.whole, q.Ready.Len())
	}
	for i := range x.open.Len() {
		l := x.slots[x.open.At(i)]
		for _, b := range l.buckets {
			if b != nil {
				m.waitForNext(b, l.ready.Len())
			}
		}
	}
}

// waitForNext sets the deadline of a bucket whose rate lets fewer jobs go than are ready.
func (m *Machine) waitForNext(b *bucket, ready int) {
	if b.limit.Rate == 0 {
		return
	}
	if at, ok := m.nextRoomAt(b, ready); ok {
		m.armBucket(b, at)
	}
}

// wholeFull reports whether the limits of a whole queue with lanes do not let a job of a cost go now; one of a cost of 1 has been looked at.
func (m *Machine) wholeFull(q *jobQueue, cost uint32) bool {
	if cost == 1 {
		return false
	}
	if b := q.lanes.whole; b != nil && m.isFullFor(b, cost) {
		m.waitForRoom(b, cost)
		return true
	}
	return exceeds(q.slots, cost, q.limits.Leased)
}

// fullBucket is a bucket that keeps a job of a cost from leaving a lane, nil if there is none.
func (m *Machine) fullBucket(l *lane, cost uint32) *bucket {
	for _, b := range l.buckets {
		if b != nil && m.isFullFor(b, cost) {
			return b
		}
	}
	return nil
}

// limited reports whether limits keep the first job of a lane, or one of a cost of 1, from being leased now.
func (m *Machine) limited(q *jobQueue, l *lane) bool {
	cost := uint32(1)
	if l.ready.Len() > 0 {
		cost = m.table.CostOf(l.ready.Front())
	}
	whole := q.lanes.whole
	return whole != nil && m.isFullFor(whole, cost) || exceeds(q.slots, cost, q.limits.Leased) || m.fullBucket(l, cost) != nil
}

// workerHasRoom reports whether the limits per worker let a client have a job of a lane.
func (m *Machine) workerHasRoom(l *lane, c *client, op *core.Lease) bool {
	for _, b := range l.buckets {
		if b == nil || b.limit.LeasedPerWorker == 0 {
			continue
		}
		if key, known := m.workerKeyOf(c, op); known && b.perWorker[key] >= b.limit.LeasedPerWorker {
			return false
		}
	}
	return true
}

// countLease counts a lease in the rates and the turns of its queue. The job is not ready any more.
func (m *Machine) countLease(x *lanes, h uint32) {
	l, cost := m.limitsOf(h).lane, m.table.CostOf(h)
	if x.whole != nil {
		m.spend(x.whole, cost)
	}
	for _, b := range l.buckets {
		if b != nil {
			m.spend(b, cost)
		}
	}
	if !x.fair {
		return
	}
	b := l.buckets[ofKey]
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
	worker uint64 // see slotFor
	cost   uint32 // of the job
	timer  timer.ID
}

// takeLaneSlots counts a leased job in the buckets of its lane.
func (m *Machine) takeLaneSlots(h uint32, worker uint64) {
	l, cost := m.limitsOf(h).lane, m.table.CostOf(h)
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
			if i == ofKey {
				kind = table.TimerKeySlot
			}
			s.timer = m.table.Timers.Add(m.table.Now.Add(b.limit.SlotFor), timer.Owner{Kind: kind, Handle: h})
		}
	}
}

// freeLaneSlots takes a job out of the buckets of its lane.
func (m *Machine) freeLaneSlots(h uint32) {
	if x := m.limitsOf(h); x != nil && x.lane != nil {
		for i := range x.lane.slots {
			m.freeLaneSlot(x.lane, i)
		}
		x.lane.slots = nil
	}
}

func (m *Machine) freeLaneSlot(l *laneJob, i int) {
	s := &l.slots[i]
	b := s.bucket
	if b == nil {
		return
	}
	m.table.Timers.Remove(&s.timer)
	if b.isRetired() {
		*s = laneSlot{}
		return
	}
	b.slots -= s.cost
	if b.perWorker[s.worker]--; b.perWorker[s.worker] == 0 {
		delete(b.perWorker, s.worker)
	}
	*s = laneSlot{}
	m.reopenLanes(b)
	m.offerFor(b)
	m.dropUnused(b)
}

// laneSlotTimeout frees a slot of a job whose lease goes on.
func (m *Machine) laneSlotTimeout(h uint32, i int) {
	l := m.limitsOf(h).lane
	l.slots[i].timer = 0
	m.freeLaneSlot(l, i)
}
