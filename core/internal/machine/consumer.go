package machine

import (
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

	last      []string // queues of the last request, if all of them existed
	lastAt    core.Instant
	lastEpoch uint64
}

// demand says why a worker counts for a queue.
type demand struct {
	askedAt core.Instant // last request
	waits   int          // waiting leases
	holds   int          // jobs
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
			m.forgetRequests(k, func(*demand) bool { return true })
		}
	}
	m.settle(k)
}

// adoptConsumer makes a connection and the worker to which it transfers its leases one worker.
func (m *Machine) adoptConsumer(c *client, worker string) {
	if c.own != nil && c.own.name != worker && len(c.held) == 0 {
		m.attach(c, &c.own, m.consumers.named(worker))
	}
}

// forgetRequests ends the demands without waiting leases and jobs for which old returns true.
func (m *Machine) forgetRequests(k *consumer, old func(*demand) bool) {
	for q, d := range k.queues {
		if d.waits == 0 && d.holds == 0 && old(d) {
			q.consumers--
			delete(k.queues, q)
			k.last = nil
		}
	}
}

// settle starts the timer of a worker if one of its demands may become too old, and forgets a worker without demands.
func (m *Machine) settle(k *consumer) {
	if len(m.consumers.byName) > maxIdleConsumers && k.name != "" && k.clients == 0 && k.jobs == 0 {
		m.forgetRequests(k, func(*demand) bool { return true })
	}
	if len(k.queues) == 0 {
		m.table.Timers.Remove(&k.timer)
		m.consumers.drop(k)
		return
	}
	if k.timer == 0 {
		m.startConsumerTimer(k)
	}
}

func (m *Machine) startConsumerTimer(k *consumer) {
	first := core.Instant(0)
	for _, d := range k.queues {
		if d.waits == 0 && d.holds == 0 && (first == 0 || d.askedAt < first) {
			first = d.askedAt
		}
	}
	if first != 0 {
		k.timer = m.table.Timers.Add(first.Add(seenFor), timer.Owner{Kind: table.TimerConsumer, Handle: k.number})
	}
}

// consumerTimeout ends the demands of a worker that are too old.
func (m *Machine) consumerTimeout(number uint32) {
	k := m.consumers.all[number]
	k.timer = 0
	m.forgetRequests(k, m.isOld)
	m.settle(k)
}

// demandFor finds or creates the demand of a worker for a queue, which is fresh now.
func (m *Machine) demandFor(k *consumer, q *jobQueue) *demand {
	d := k.queues[q]
	if d == nil {
		d = &demand{}
		k.queues[q] = d
		q.consumers++
	}
	d.askedAt = m.table.Now
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
		m.demandFor(k, q).waits++
	}
}

// waitEnds ends the count of a waiting lease. The client still has its entries in the wait lists.
func (m *Machine) waitEnds(c *client) {
	if k := c.waitConsumer(); k != nil {
		m.waiters.Each(c.waitEntries, func(n uint32) { m.demandFor(k, m.queues[n]).waits-- })
		m.settle(k)
	}
}

// leaseStarted counts a lease.
func (m *Machine) leaseStarted(k *consumer, q *jobQueue) {
	if k != nil {
		m.demandFor(k, q).holds++
		k.jobs++
	}
}

// leaseEnded ends the count of a lease, if it was counted. The end of a lease by a client shows that the worker is
// still there.
func (m *Machine) leaseEnded(k *consumer, q *jobQueue) {
	if k == nil || k.queues[q] == nil || k.queues[q].holds == 0 {
		return
	}
	d := k.queues[q]
	d.holds--
	k.jobs--
	if m.actor != nil {
		d.askedAt = m.table.Now
	}
	if d.holds > 0 {
		return
	}
	closed := k.conns == 0 && k.name == "" // a connection of its own
	m.forgetRequests(k, func(d *demand) bool { return closed || m.isOld(d) })
	m.settle(k)
}

// leaseRestored counts a lease that was granted by an earlier process or another node, which says nothing about
// requests.
func (m *Machine) leaseRestored(name string, q *jobQueue) {
	k := m.consumers.named(name)
	asked := core.Instant(0)
	if d := k.queues[q]; d != nil {
		asked = d.askedAt
	}
	m.leaseStarted(k, q)
	k.queues[q].askedAt = asked
}

// isOld reports whether the last request was too long ago.
func (m *Machine) isOld(d *demand) bool { return d.askedAt.Add(seenFor) <= m.table.Now }

// shiftConsumers adapts to a change of the wall clock by the span by.
func (m *Machine) shiftConsumers(by core.Instant) {
	for _, k := range m.consumers.all {
		if k == nil {
			continue
		}
		k.lastAt += by
		for _, d := range k.queues {
			d.askedAt += by
		}
	}
}
