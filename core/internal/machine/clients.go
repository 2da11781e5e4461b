package machine

import (
	"slices"
	"strings"

	"broker/core"
)

// pageLimit returns the number of rows to return for a requested limit.
func pageLimit(asked int) int {
	if asked <= 0 {
		return 100
	}
	return min(asked, maxPage)
}

func (m *Machine) listClients(c *client, op *core.ListClients) {
	limit, answer := pageLimit(op.Limit), &core.Answer{Clients: []core.ClientInfo{}}
	from := 1
	if op.After != 0 {
		from = int(Slot(op.After)) + 1
	}
	for slot := from; slot < len(m.clients); slot++ {
		cl := m.clients[slot]
		if cl == nil || cl.unlisted || op.Protocol != core.Internal && cl.protocol != op.Protocol {
			continue
		}
		if len(answer.Clients) == limit {
			answer.NextClient = answer.Clients[limit-1].ID
			break
		}
		answer.Clients = append(answer.Clients, m.clientInfo(cl))
	}
	m.reply(c, core.Reply{Kind: core.Answered, Tag: op.Tag, Answer: answer})
}

func (m *Machine) clientInfo(c *client) core.ClientInfo {
	i := core.ClientInfo{
		ID: c.id, Protocol: c.protocol, Address: c.address, Identity: c.identity, Name: c.name, Worker: c.worker,
		OpenedAt: c.openedAt, Parked: c.parked, Sleeping: c.sleeping, Held: m.heldJobs(c.held),
	}
	for _, a := range c.abilities {
		i.Queues = append(i.Queues, m.queues[a.queue].name)
	}
	if c.parked && !c.byAbility {
		m.waiters.Each(c.waitEntries, func(n uint32) { i.Queues = append(i.Queues, m.queues[n].name) })
		slices.Reverse(i.Queues) // entries are in reverse order
	}
	return i
}

// heldJobs describes the first jobs of a list of held jobs.
func (m *Machine) heldJobs(handles []uint32) (held []core.HeldJob) {
	for _, h := range handles[:min(len(handles), core.MaxHeldShown)] {
		e := m.jobs.at(h)
		held = append(held, core.HeldJob{
			Seq: e.seq, Queue: m.queues[e.queue].name, Type: m.typeOf(e), Protocol: e.holderFrom, Epoch: e.epoch,
			LeasedAt: e.leasedAt, LeaseUntil: m.timers.At(e.stateTimer),
		})
	}
	return held
}

func (m *Machine) listWorkers(c *client, op *core.ListWorkers) {
	names := make([]string, 0, len(m.workers.number))
	for name := range m.workers.number {
		if name > op.After {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, strings.Compare)
	answer := &core.Answer{Workers: []core.WorkerInfo{}}
	for _, name := range names[:min(len(names), pageLimit(op.Limit))] {
		answer.Workers = append(answer.Workers, core.WorkerInfo{Name: name, Held: m.heldJobs(m.leases[m.workers.number[name]])})
	}
	m.reply(c, core.Reply{Kind: core.Answered, Tag: op.Tag, Answer: answer})
}

// disconnect closes a client's connection once the lock is released.
func (m *Machine) disconnect(c *client, op *core.DisconnectClient) {
	other := m.client(op.Client)
	switch {
	case other == nil:
		m.failed(c, op.Tag, core.ErrNotFound)
	case !other.closable:
		m.failed(c, op.Tag, core.ErrInvalid)
	default:
		m.disconnected = append(m.disconnected, other.slot)
		m.reply(c, core.Reply{Kind: core.Accepted, Tag: op.Tag})
	}
}

// Disconnected calls fn for every client whose connection is to be closed since the last call.
func (m *Machine) Disconnected(fn func(slot uint32)) {
	for _, slot := range m.disconnected {
		if m.clients[slot] != nil {
			fn(slot)
		}
	}
	m.disconnected = m.disconnected[:0]
}

// holdNamed adds a lease to the list of its worker.
func (m *Machine) holdNamed(h uint32, e *entry, name string) {
	e.holder = m.workers.acquire(name)
	for int(e.holder) >= len(m.leases) {
		m.leases = append(m.leases, nil)
	}
	e.heldAt = uint32(len(m.leases[e.holder]))
	m.leases[e.holder] = append(m.leases[e.holder], h)
}

// dropNamed removes a lease from the list of its worker.
func (m *Machine) dropNamed(e *entry) {
	list := &m.leases[e.holder]
	m.swapOut(list, e.heldAt)
	if m.workers.release(e.holder) && cap(*list) > 64 {
		*list = nil
	}
}

// swapOut removes the job at an index of a list of held jobs; the last one takes its place.
func (m *Machine) swapOut(list *[]uint32, at uint32) {
	held := *list
	last := held[len(held)-1]
	held[at] = last
	m.jobs.at(last).heldAt = at
	*list = held[:len(held)-1]
}
