package machine

import (
	"container/list"
	"slices"
	"strings"
	"time"

	"broker/core"
	"broker/core/internal/table"
	"broker/core/internal/timer"
)

// seenFor is how long a worker counts for a queue after its last request for jobs of the queue: the longest time
// between two heartbeats of a Faktory worker.
const seenFor = time.Minute

// requestEvery is how often repeated requests of a worker for the same queues are noted. It costs precision of seenFor.
const requestEvery = 5 * time.Second

// maxIdleConsumers limits the named workers that are remembered without a lease or a waiting request, so that a client
// which sends a new name with each request does not fill the memory.
const maxIdleConsumers = 10_000

// consumers are the workers that take jobs by the names of queues, as all but Gearman's do: they do not register. Each
// counts in jobQueue.consumers of every queue that it waits on, holds a job of, or has asked for jobs of within
// seenFor. A worker is known by its name, or else it is a connection.
type consumers struct {
	all    []*consumer // by number, from 1
	free   []uint32
	byName map[string]*consumer
	epoch  uint64 // number of queues that were removed
}

// consumer is one worker.
type consumer struct {
	number  uint32
	name    string // empty: the worker is a connection
	clients int    // clients that lease jobs for it
	conns   int    // clients of those with a connection
	jobs    int    // leases that are counted
	queues  map[*jobQueue]*demand
	timer   timer.ID // set while a demand may become too old

	asked       list.List // demands in the order of their last requests; see demand.place
	idle        int       // demands without waiting leases and jobs
	forgetting  bool      // steps are left in which the worker forgets idle demands until forgetUntil
	forgetUntil core.Instant

	last      []string // queues of the last request, if all of them existed
	lastAt    core.Instant
	lastEpoch uint64
}

// demand says why a worker counts for a queue.
type demand struct {
	queue   *jobQueue
	askedAt core.Instant // last request
	waits   int          // waiting leases
	holds   int          // jobs

	// Each demand that is idle is in the list of its worker. One that is not leaves the list when it is too old.
	place *list.Element // nil: not in the list
}

// add counts waiting leases and jobs of a demand.
func (k *consumer) add(d *demand, waits, holds int) {
	before := d.waits + d.holds
	d.waits += waits
	d.holds += holds
	k.jobs += holds
	switch after := d.waits + d.holds; {
	case before == 0 && after > 0:
		k.idle--
	case before > 0 && after == 0:
		k.idle++
	}
}

// touch makes a demand the newest of its worker.
func (k *consumer) touch(d *demand, now core.Instant) {
	d.askedAt = now
	if d.place == nil {
		d.place = k.asked.PushBack(d)
	} else {
		k.asked.MoveToBack(d.place)
	}
}

// unlist takes a demand out of the list of its worker.
func (k *consumer) unlist(d *demand) {
	if d.place != nil {
		k.asked.Remove(d.place)
		d.place = nil
	}
}

// oldest is the demand whose last request is the oldest; nil: none is listed.
func (k *consumer) oldest() *demand {
	if e := k.asked.Front(); e != nil {
		return demandAt(e)
	}
	return nil
}

func demandAt(e *list.Element) *demand {
	return e.Value.(*demand)
}

func newConsumers() consumers {
	return consumers{all: make([]*consumer, 1), byName: map[string]*consumer{}}
}

func (x *consumers) add(name string) *consumer {
	k := &consumer{name: strings.Clone(name), queues: map[*jobQueue]*demand{}}
	if n := len(x.free); n > 0 {
		k.number, x.free = x.free[n-1], x.free[:n-1]
		x.all[k.number] = k
	} else {
		k.number = uint32(len(x.all))
		x.all = append(x.all, k)
	}
	if name != "" {
		x.byName[k.name] = k
	}
	return k
}

// named returns the worker with a name.
func (x *consumers) named(name string) *consumer {
	if k := x.byName[name]; k != nil {
		return k
	}
	return x.add(name)
}

// drop forgets a worker that counts for no queue.
func (x *consumers) drop(k *consumer) {
	if k.clients > 0 || k.jobs > 0 || len(k.queues) > 0 || x.all[k.number] != k {
		return
	}
	if k.name != "" {
		delete(x.byName, k.name)
	}
	x.all[k.number] = nil
	x.free = append(x.free, k.number)
}

// consumerOf returns the worker for which a client leases jobs. A client without a connection of its own makes one
// request, so its worker is known by the name in the lease, or by its address.
func (m *Machine) consumerOf(c *client, op *core.Lease) *consumer {
	switch {
	case op.Holder == core.HeldByWorker:
		if c.named == nil || c.named.name != op.Worker {
			m.attach(c, &c.named, m.consumers.named(op.Worker))
		}
		return c.named
	case c.own != nil:
	case c.closable:
		m.attach(c, &c.own, m.consumers.add(""))
	default:
		m.attach(c, &c.own, m.consumers.named("\x00"+c.address))
	}
	return c.own
}

// attach makes a client work for a worker; place is client.own or client.named.
func (m *Machine) attach(c *client, place **consumer, k *consumer) {
	k.clients++
	if c.closable {
		k.conns++
	}
	m.detachConsumer(c, place)
	*place = k
}

// detachConsumer ends the work of a client for a worker. A worker without connections counts only for the queues whose
// jobs it holds.
func (m *Machine) detachConsumer(c *client, place **consumer) {
	k := *place
	if k == nil {
		return
	}
	*place = nil
	k.clients--
	if c.closable {
		if k.conns--; k.conns == 0 {
			m.forgetRequests(k, m.table.Now)
		}
	}
	m.settle(k)
}

// adoptConsumer makes a connection and the worker to which it transfers its leases one worker. What the connection
// waits for counts for that worker from now on.
func (m *Machine) adoptConsumer(c *client, worker string) {
	if c.own == nil || c.own.name == worker || len(c.held) > 0 {
		return
	}
	m.waitEnds(c)
	m.attach(c, &c.own, m.consumers.named(worker))
	m.waitsAgain(c)
}

// forgetRequests ends the idle demands whose last request was not after a time, in steps. settle follows.
func (m *Machine) forgetRequests(k *consumer, until core.Instant) {
	k.forgetUntil = max(k.forgetUntil, until)
	if !k.forgetting {
		k.forgetting = true
		m.inSteps(func() bool { return m.forgetNext(k) })
	}
}

// forgetNext does the next part of forgetRequests.
func (m *Machine) forgetNext(k *consumer) (more bool) {
	d := k.oldest()
	if d == nil || d.askedAt > k.forgetUntil {
		k.forgetting, k.forgetUntil = false, 0
		m.settle(k)
		return false
	}
	m.table.Touched++
	if d.waits+d.holds == 0 {
		m.forget(k, d)
	} else {
		k.unlist(d)
	}
	return true
}

// forget ends an idle demand.
func (m *Machine) forget(k *consumer, d *demand) {
	k.unlist(d)
	k.idle--
	d.queue.consumers--
	delete(k.queues, d.queue)
	k.last = nil
}

// settle starts the timer of a worker if one of its demands may become too old, and forgets a worker without demands.
func (m *Machine) settle(k *consumer) {
	if len(m.consumers.byName) > maxIdleConsumers && k.name != "" && k.clients == 0 && k.jobs == 0 && k.idle > 0 {
		m.forgetRequests(k, m.table.Now)
	}
	switch {
	case len(k.queues) == 0:
		m.table.Timers.Remove(&k.timer)
		m.consumers.drop(k)
	case k.idle > 0 && k.timer == 0 && !k.forgetting:
		k.timer = m.table.Timers.Add(k.oldest().askedAt.Add(seenFor),
			timer.Owner{Kind: table.TimerConsumer, Handle: k.number})
	}
}

// consumerTimeout ends the demands of a worker that are too old.
func (m *Machine) consumerTimeout(number uint32) {
	k := m.consumers.all[number]
	k.timer = 0
	m.forgetRequests(k, m.table.Now.Add(-seenFor))
}

// demandFor finds or creates the demand of a worker for a queue, which is fresh now.
func (m *Machine) demandFor(k *consumer, q *jobQueue) *demand {
	d := m.demandOf(k, q)
	k.touch(d, m.table.Now)
	return d
}

// demandOf finds or creates the demand of a worker for a queue. A new one must become fresh or get a job.
func (m *Machine) demandOf(k *consumer, q *jobQueue) *demand {
	d := k.queues[q]
	if d == nil {
		d = &demand{queue: q}
		k.queues[q] = d
		k.idle++
		q.consumers++
	}
	return d
}

// noteRequest notes the queues for which a client asks.
func (m *Machine) noteRequest(c *client, op *core.Lease) {
	if op.Queues == nil || len(c.abilities) > 0 {
		return // it is registered
	}
	k := m.consumerOf(c, op)
	now := m.table.Now
	fresh := k.lastEpoch == m.consumers.epoch && now < k.lastAt.Add(requestEvery)
	if fresh && slices.Equal(k.last, op.Queues) {
		return
	}
	k.last, k.lastAt, k.lastEpoch = k.last[:0], now, m.consumers.epoch
	for _, name := range op.Queues {
		if n := m.table.QueueNumber(name); n != 0 {
			m.demandFor(k, m.queues[n])
			k.last = append(k.last, m.queues[n].Name) // the name in the request may be part of a large buffer
		}
	}
}

// requestEnds starts the timer of a request that got no job and does not wait.
func (m *Machine) requestEnds(c *client, op *core.Lease) {
	if k := c.own; op.Holder != core.HeldByWorker && k != nil {
		m.settle(k)
	} else if k = c.named; op.Holder == core.HeldByWorker && k != nil {
		m.settle(k)
	}
}

// waitConsumer returns the worker for which a client waits; nil: it waits by its registrations.
func (c *client) waitConsumer() *consumer {
	switch {
	case !c.parked || c.byAbility:
		return nil
	case c.lease.Holder == core.HeldByWorker:
		return c.named
	}
	return c.own
}

// waitStarted counts a waiting lease of a client.
func (m *Machine) waitStarted(c *client, q *jobQueue) {
	if k := c.waitConsumer(); k != nil {
		k.add(m.demandFor(k, q), 1, 0)
	}
}

// waitEnds ends the count of a waiting lease. The client still has its entries in the wait lists.
func (m *Machine) waitEnds(c *client) {
	if k := c.waitConsumer(); k != nil {
		m.waiters.Each(c.waitEntries, func(n uint32) { k.add(m.demandFor(k, m.queues[n]), -1, 0) })
		m.settle(k)
	}
}

// waitsAgain counts what a client waits for; see waitEnds.
func (m *Machine) waitsAgain(c *client) {
	m.waiters.Each(c.waitEntries, func(n uint32) { m.waitStarted(c, m.queues[n]) })
}

// leaseStarted counts a lease.
func (m *Machine) leaseStarted(k *consumer, q *jobQueue) {
	if k != nil {
		k.add(m.demandFor(k, q), 0, 1)
	}
}

// leaseEnded ends the count of a lease, if it was counted. The end of a lease by a client shows that the worker is
// still there.
func (m *Machine) leaseEnded(k *consumer, q *jobQueue) {
	if k == nil || k.queues[q] == nil || k.queues[q].holds == 0 {
		return
	}
	d := k.queues[q]
	k.add(d, 0, -1)
	if m.actor != nil {
		k.touch(d, m.table.Now)
	}
	if d.holds > 0 {
		return
	}
	isClosed := k.conns == 0 && k.name == "" // a connection of its own
	if d.waits == 0 && (isClosed || d.place == nil || d.askedAt.Add(seenFor) <= m.table.Now) {
		m.forget(k, d)
	}
	m.settle(k)
}

// leaseRestored counts a lease that was granted by an earlier process or another node, which says nothing about
// requests.
func (m *Machine) leaseRestored(name string, q *jobQueue) {
	k := m.consumers.named(name)
	k.add(m.demandOf(k, q), 0, 1)
}

// shiftConsumers adapts to a change of the wall clock by the span by.
func (m *Machine) shiftConsumers(by core.Instant) {
	for _, k := range m.consumers.all {
		if k == nil {
			continue
		}
		k.lastAt += by
		k.forgetUntil += by
		for _, d := range k.queues {
			d.askedAt += by
		}
	}
}
