package machine

// serveOffers completes an operation: it handles broken jobs and serves the recorded queues. Both may produce more of
// either.
func (m *Machine) serveOffers() {
	m.decideBroken()
	for i := 0; ; {
		if i == len(m.offers) {
			if !m.limits.OfferMore() {
				break
			}
			continue
		}
		if q := m.queues[m.offers[i]]; q != nil {
			q.offered = false
			m.serve(m.offers[i], q)
			q.wakeTimedOut = false
		}
		i++
		m.decideBroken()
	}
	m.offers = m.offers[:0]
}

// serve hands the ready jobs of a queue to waiting clients, the longest waiting first: a waiting lease gets the job, a
// sleeping worker is woken to request it.
//
// An operation or a step that has looked at many clients leaves the others for a later step, which goes on behind the
// last one. A walk that is not over is not disturbed by what happens meanwhile, but followed by another one.
func (m *Machine) serve(n uint32, q *jobQueue) {
	if q.walks {
		q.walksAgain = true
		return
	}
	woken := 0
	if m.walk(n, q, &woken) {
		return
	}
	q.walks = true
	m.later(func() (more bool) {
		if m.queues[n] == q && !m.walk(n, q, &woken) {
			return true
		}
		if q.walks = false; q.walksAgain {
			q.walksAgain = false
			m.offer(n)
		}
		m.dropIdle(n)
		m.table.Touched++
		return false
	})
}

// walk serves the clients that wait on a queue; false: the step is over, the walk is not. woken is how many workers the
// walk has woken.
func (m *Machine) walk(n uint32, q *jobQueue, woken *int) (over bool) {
	for m.stopped == nil && !q.waitList.Empty() && m.runnable(q) != 0 {
		c, over := m.nextWaiter(q, *woken)
		if !over {
			return false
		}
		if c == nil {
			break
		}
		if c.sleeping {
			*woken++
			m.wake(c, n)
		} else {
			m.assignParked(c, n)
		}
	}
	q.waitList.Rewind()
	return true
}

// nextWaiter returns the client that has waited longest among those that may get a job of the queue and that the walk
// has not reached yet. It returns nil if there is no such client, or if enough workers have been woken; over is false
// if the step is over before that is known. While a woken worker has not responded, waiting leases go before other
// sleeping workers, because they are certain to take the job.
func (m *Machine) nextWaiter(q *jobQueue, woken int) (_ *client, over bool) {
	var sleeper *client
	for slot := m.waiters.Here(&q.waitList); slot != 0; slot = m.waiters.Next(&q.waitList) {
		if m.spent() {
			return sleeper, sleeper != nil
		}
		m.table.Touched++
		c, op := m.clients[slot], &asleep
		if c.parked {
			op = &c.lease
		}
		switch {
		case !m.slotFor(q, c, op): // the throttle is reached for this client
		case c.parked && op.Min > 1 && !m.enough(c, op): // the lease waits for more jobs
			m.limits.WaitForMore(&q.Queue)
		case c.sleeping && m.opts.Wakeup > 0 &&
			woken >= m.opts.Wakeup: // enough were woken, but a lease may come later in the list
		case m.opts.Wakeup < 0 && m.available(q) <= int(q.woken):
			return nil, true
		case c.sleeping && q.wakeTimedOut:
			if sleeper == nil {
				sleeper = c
			}
		default:
			return c, true
		}
	}
	return sleeper, true
}

// available returns how many jobs of a queue may be handed out now by its limits.
func (m *Machine) available(q *jobQueue) int { return m.limits.Available(&q.Queue, int(q.woken)) }
