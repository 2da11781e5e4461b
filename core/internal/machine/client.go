package machine

import (
	"slices"
	"time"

	"broker/core"
	"broker/core/internal/queue"
	"broker/core/internal/table"
	"broker/core/internal/timer"
)

// OpenClient registers a client.
func (m *Machine) OpenClient(now core.Instant, o core.ClientOptions) core.ClientID {
	m.setNow(now)
	m.opened++
	var slot uint32
	if n := len(m.freeC); n > 0 {
		slot = m.freeC[n-1]
		m.freeC = m.freeC[:n-1]
	} else {
		slot = uint32(len(m.clients))
		m.clients = append(m.clients, nil)
	}
	c := &client{
		id: core.ClientID(m.opened<<24 | uint64(slot)), slot: slot, protocol: o.Protocol, address: o.Address,
		identity: o.Identity, name: o.Name, openedAt: m.table.Now, closable: o.Close != nil, unlisted: o.Unlisted,
	}
	m.clients[slot] = c
	if !c.unlisted {
		m.stats.Clients[o.Protocol]++
	}
	return c.id
}

// CloseClient removes a client: it stops waiting, and leases held by its connection are released, in steps.
func (m *Machine) CloseClient(now core.Instant, id core.ClientID) {
	m.setNow(now)
	c := m.client(id)
	if c == nil {
		return
	}
	m.actor = c
	m.freshEffort()
	c.left = true
	if c.subscriptions > 0 {
		m.hub.Leave(c.slot)
	}
	woken := m.endWaits(c)
	if !c.unlisted {
		m.stats.Clients[c.protocol]--
	}
	if c.works {
		m.workerEvent(c, core.EventWorkerGone)
	}
	m.inSteps(func() bool { return m.part(c) })
	m.offer(woken)
	m.serveOffers()
	m.judgeStep("The end of a client", 0)
}

// part gives back one thing of a client that has left; false: nothing was left. Then the slot of the client is free.
func (m *Machine) part(c *client) (more bool) {
	m.table.Touched++
	m.actor = c
	switch {
	case c.watches != 0:
		m.unwatch(c.watches, true)
	case len(c.held) > 0:
		h := c.held[len(c.held)-1]
		m.leaseLost(h, m.table.At(h))
		m.releaseLease(h)
	case len(c.abilities) > 0:
		last := len(c.abilities) - 1
		a := c.abilities[last]
		c.abilities = c.abilities[:last]
		m.unregistered(a)
	case len(c.holding) > 0:
		last := len(c.holding) - 1
		n := c.holding[last]
		c.holding = c.holding[:last]
		m.free(n)
	default:
		m.detachConsumer(c, &c.own)
		m.detachConsumer(c, &c.named)
		m.clients[c.slot] = nil
		m.freeC = append(m.freeC, c.slot)
		return false
	}
	return true
}

// cancelWaits ends all that a client waits for; the client stays.
func (m *Machine) cancelWaits(c *client) {
	woken := m.endWaits(c)
	for c.watches != 0 {
		m.unwatch(c.watches, true)
	}
	m.offer(woken)
	c.replies = slices.DeleteFunc(c.replies, func(r core.Reply) bool { return r.Kind != core.EventReply })
	c.work = nil // it was for replies that are dropped now
}

// endWaits ends all that a client waits for except jobs that it watches, and gives back jobs whose replies it has not
// fetched: they have not been handed out. It returns the queue that the client was woken for, see wakeAcked.
func (m *Machine) endWaits(c *client) (woken uint32) {
	m.leaveWaitLists(c)
	woken = m.wakeAcked(c)
	m.dropReads(c)
	for _, r := range c.replies {
		if r.Kind == core.Assigned {
			m.revokeLease(r.Seq, r.Lease.Epoch)
		}
	}
	return woken
}

// leaveWaitLists removes the client from all wait lists and stops its deadline.
func (m *Machine) leaveWaitLists(c *client) {
	if c.parked || c.sleeping || c.wait != 0 || c.waitEntries != 0 {
		m.stopWaiting(c)
	}
}

func (m *Machine) stopWaiting(c *client) {
	m.waitEnds(c)
	c.parked, c.sleeping, c.byAbility = false, false, false
	m.table.Timers.Remove(&c.wait)
	m.leavePlaces(c)
}

func (m *Machine) leavePlaces(c *client) {
	if c.waitEntries != 0 {
		m.waiters.Leave(&c.waitEntries, func(q uint32) *queue.Line { return &m.queues[q].waitList }, m.dropIdle)
	}
}

// wakeAcked records that a woken worker has responded or never will. It returns the queue that the worker was woken
// for. If the caller takes no job from that queue, it must offer the queue to other workers.
func (m *Machine) wakeAcked(c *client) (n uint32) {
	if c.wakeTarget == 0 {
		return 0
	}
	return m.endWake(c)
}

func (m *Machine) endWake(c *client) (n uint32) {
	n, c.wakeTarget = c.wakeTarget, 0
	m.table.Timers.Remove(&c.wait)
	m.queues[n].woken--
	m.dropIdle(n) // it may have been dropped while the worker was responding
	return n
}

func (m *Machine) register(c *client, op *core.Register) {
	m.worksNow(c)
	n, q := m.queueNamed(op.Queue)
	m.extendLifetime(q, untilRestart)
	q.workers++
	// otherwise this is the first; searching thousands of registrations for each new one would be slow
	if q.workers > 1 {
		for i := range c.abilities {
			m.looked++
			if c.abilities[i].queue == n {
				c.abilities[i].times++
				c.abilities[i].leaseFor = op.LeaseFor
				return
			}
		}
	}
	c.abilities = append(c.abilities, ability{queue: n, times: 1, leaseFor: op.LeaseFor})
	q.able++
	if c.waitsByAbility() {
		m.join(c, n, q, false)
	}
}

// waitsByAbility reports whether a change of registrations changes the client's wait lists.
func (c *client) waitsByAbility() bool { return c.sleeping || c.parked && c.byAbility }

// limitFor returns the client's time limit for leases of queue n; zero: none.
func (c *client) limitFor(n uint32) time.Duration {
	for _, a := range c.abilities {
		if a.queue == n {
			return a.leaseFor
		}
	}
	return 0
}

func (m *Machine) unregister(c *client, op *core.Unregister) {
	var only uint32
	if !op.All {
		if only = m.table.QueueNumber(op.Queue); only == 0 {
			return
		}
	}
	m.looked += len(c.abilities)
	kept := c.abilities[:0]
	for _, a := range c.abilities {
		if only != 0 && a.queue != only {
			kept = append(kept, a)
			continue
		}
		m.unregistered(a)
	}
	c.abilities = kept
	if c.waitsByAbility() {
		m.leavePlaces(c)
		m.joinByAbility(c)
	}
	if len(c.held) > 0 {
		c.releases = append(c.releases, only)
		c.looked = len(c.held)
		if len(c.releases) == 1 {
			m.inSteps(func() bool { return m.releaseNext(c) })
		}
	}
}

// releaseNext looks at the next job that a client holds, from the end, and releases the job if the client has ended its
// registration for the queue; false: it has looked at all. Until then the client gets no job (slotFor).
func (m *Machine) releaseNext(c *client) (more bool) {
	if c.left {
		return false
	}
	if c.looked = min(c.looked, len(c.held)); c.looked == 0 {
		c.releases = nil
		m.waiters.Each(c.waitEntries, func(n uint32) { m.offer(n) })
		return false
	}
	m.table.Touched++
	m.actor = c
	c.looked-- // release moves the last held job to the freed position: it has been looked at
	h := c.held[c.looked]
	if slices.Contains(c.releases, 0) || slices.Contains(c.releases, m.table.At(h).Queue) {
		m.releaseLease(h)
	}
	return true
}

// unregistered ends the registration of a client.
func (m *Machine) unregistered(a ability) {
	q := m.queues[a.queue]
	q.workers -= int32(a.times)
	q.able--
	m.dropIdle(a.queue) // it may have been purged while it had workers
}

// joinByAbility appends a client to the wait lists of the queues for which it is registered.
func (m *Machine) joinByAbility(c *client) {
	m.looked += len(c.abilities)
	for _, a := range c.abilities {
		m.join(c, a.queue, m.queues[a.queue], false)
	}
}

// sleep makes a worker wait to be woken.
func (m *Machine) sleep(c *client, op *core.Sleep) {
	before := m.wakeAcked(c)
	m.leaveWaitLists(c)
	c.sleepTag = op.Tag
	if n := m.workFor(c); n != 0 {
		m.wake(c, n)
	} else {
		c.sleeping = true
		m.joinByAbility(c)
		for _, h := range c.held {
			m.endWorkerLimit(h)
		}
	}
	m.offer(before)
}

// endWorkerLimit extends a lease to the time that the job itself allows.
func (m *Machine) endWorkerLimit(h uint32) {
	e := m.table.At(h)
	own := m.leaseFor(e)
	if e.Granted == 0 || own != 0 && e.Granted >= own {
		return
	}
	until := e.LeasedAt.Add(time.Duration(own) * time.Millisecond)
	if own != 0 && until <= m.table.Timers.At(e.StateTimer) {
		return // the lease was extended
	}
	m.table.Timers.Remove(&e.StateTimer)
	if e.Granted = own; e.Granted != 0 {
		e.StateTimer = m.table.Timers.Add(until, timer.Owner{Kind: table.TimerState, Handle: h})
	}
}

// workFor returns a queue with a job for a sleeping worker, or zero.
func (m *Machine) workFor(c *client) uint32 {
	if m.table.InState[core.Ready] == 0 {
		return 0
	}
	for _, a := range c.abilities {
		m.looked++
		if q := m.queues[a.queue]; m.stopped == nil && m.runnable(q) != 0 && m.slotFor(q, c, &asleep) {
			return a.queue
		}
	}
	return 0
}

// asleep is the lease that a woken worker will request.
var asleep = core.Lease{Holder: core.HeldByConn}
