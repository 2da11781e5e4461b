package machine

import (
	"broker/core"
)

// validLease reports whether the numbers of a lease are ones that it may have.
func validLease(op *core.Lease) bool {
	return op.Max >= 0 && op.Max <= core.MaxLeases && op.Min >= 0 && op.Min <= max(op.Max, 1) && op.MaxBytes >= 0 && op.LeaseFor >= 0
}

// assignMany leases several jobs to a client, which has no waiting lease; there is at least one.
func (m *Machine) assignMany(c *client, op *core.Lease) {
	rest := *op
	from, bodies := len(c.replies), 0
	for taken := 0; taken < op.Max; taken++ {
		n, limit := m.pick(c, &rest)
		if n == 0 {
			break
		}
		bodies += int(m.jobs.at(m.front(m.queues[n], c, op)).bodyBytes)
		if taken > 0 && op.MaxBytes > 0 && bodies > op.MaxBytes {
			break
		}
		m.assign(c, &rest, n, limit)
		if op.Pick == core.PickInOrder && rest.Queues != nil { // queues before this one have nothing
			for m.names[rest.Queues[0]] != n {
				rest.Queues = rest.Queues[1:]
			}
		}
	}
	more := 0
	for i := len(c.replies) - 1; i >= from; i-- {
		if r := &c.replies[i]; r.Tag == op.Tag && (r.Kind == core.Assigned || r.Kind == core.Reading) {
			r.N = more
			more++
		}
	}
}

// enough reports whether a lease could have as many jobs as it waits for. Limits that several keys or types share count for each
// of them alone.
func (m *Machine) enough(c *client, op *core.Lease) bool {
	missing := op.Min
	look := func(n uint32) {
		if q := m.queues[n]; n != 0 && missing > 0 && m.runnable(q) != 0 && m.slotFor(q, c, op) {
			missing -= m.availableTo(q, c, op, missing)
		}
	}
	m.visitMark++
	switch {
	case c.parked:
		m.waiters.Each(c.waitEntries, look)
	case op.Queues == nil:
		for _, a := range c.abilities {
			look(a.queue)
		}
	default:
		for _, name := range op.Queues {
			if n := m.names[name]; n != 0 && !m.visited(n) {
				look(n)
			}
		}
	}
	return missing <= 0
}

// availableTo is how many jobs of a queue a client could have now; it stops counting above a number.
func (m *Machine) availableTo(q *jobQueue, c *client, op *core.Lease, above int) int {
	n := q.ready.Len()
	if q.lanes != nil {
		n = m.laneRoom(q, above)
	}
	if q.limits.Leased > 0 {
		n = min(n, int(q.limits.Leased)-int(q.slots))
	}
	if most := q.limits.LeasedPerWorker; most > 0 {
		key, known := m.workerKeyOf(c, op)
		if known {
			most -= q.perWorker[key]
		}
		n = min(n, int(most))
	}
	return n
}
