package machine

import (
	"broker/core"
	"broker/core/internal/limit"
)

// assignMany leases several jobs to a client without a waiting lease. There must be at least one job.
func (m *Machine) assignMany(c *client, op *core.Lease) {
	rest := *op
	from, bodies := len(c.replies), 0
	m.limits.StartHandOut()
	for taken := 0; taken < op.Max; taken++ {
		n, limit := m.pick(c, &rest)
		if n == 0 {
			break
		}
		bodies += int(m.table.At(m.front(m.queues[n], c, op)).BodyBytes)
		if taken > 0 && op.MaxBytes > 0 && bodies > op.MaxBytes {
			break
		}
		m.assign(c, &rest, n, limit)
		if op.Pick == core.PickInOrder && rest.Queues != nil { // earlier queues have no jobs
			for m.table.QueueNumber(rest.Queues[0]) != n {
				rest.Queues = rest.Queues[1:]
			}
		}
	}
	m.limits.EndHandOut()
	more := 0
	for i := len(c.replies) - 1; i >= from; i-- {
		if r := &c.replies[i]; r.Tag == op.Tag && (r.Kind == core.Assigned || r.Kind == core.Reading) {
			r.N = more
			more++
		}
	}
}

// enough reports whether a lease could get as many jobs as it waits for. It applies limits that several keys or types share to
// each of them separately. It examines the jobs themselves only if there are enough of them.
func (m *Machine) enough(c *client, op *core.Lease) bool {
	return m.missing(c, op, false) <= 0 && m.missing(c, op, true) <= 0
}

// missing returns how many jobs a lease still lacks. With fit, jobs that must not be handed out are dropped instead of counted.
func (m *Machine) missing(c *client, op *core.Lease, fit bool) int {
	missing := op.Min
	look := func(n uint32) {
		if q := m.queues[n]; n != 0 && missing > 0 && m.runnable(q) != 0 && m.slotFor(q, c, op) {
			missing -= m.availableTo(q, c, op, missing, fit)
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
			if n := m.table.QueueNumber(name); n != 0 && !m.visited(n) {
				look(n)
			}
		}
	}
	return missing
}

// availableTo returns how many jobs of a queue a client could get now; it stops once the count exceeds above.
func (m *Machine) availableTo(q *jobQueue, c *client, op *core.Lease, above int, fit bool) (n int) {
	woken := 0
	if c.parked && m.opts.Wakeup < 0 {
		woken = int(q.woken) // each will take a job; see nextWaiter
	}
	above += woken
	if fit {
		var unfit []uint32
		n, unfit = m.limits.CountFit(&q.Queue, askerFor(c, op), above, m.unfit)
		for _, h := range unfit {
			m.dropUnfit(h)
		}
		if len(unfit) >= limit.MaxStale {
			m.dropRest(q)
		}
	} else {
		n = m.limits.OpenFor(&q.Queue, askerFor(c, op), above)
	}
	return min(max(q.Room(n)-woken, 0), m.limits.RoomForWorker(&q.Queue, askerFor(c, op)))
}
