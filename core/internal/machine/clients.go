package machine

import (
	"slices"
	"sort"

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
		i.Queues = append(i.Queues, m.queues[a.queue].Name)
	}
	if c.parked && !c.byAbility {
		m.waiters.Each(c.waitEntries, func(n uint32) { i.Queues = append(i.Queues, m.queues[n].Name) })
		slices.Reverse(i.Queues) // entries are in reverse order
	}
	return i
}

// heldJobs describes the first jobs of a list of held jobs.
func (m *Machine) heldJobs(handles []uint32) (held []core.HeldJob) {
	for _, h := range handles[:min(len(handles), core.MaxHeldShown)] {
		e := m.table.At(h)
		held = append(held, core.HeldJob{
			Seq: e.Seq, Queue: m.queues[e.Queue].Name, Type: m.table.TypeOf(e), Protocol: e.HolderFrom, Epoch: e.Epoch,
			LeasedAt: e.LeasedAt, LeaseUntil: m.table.Timers.At(e.StateTimer),
		})
	}
	return held
}

func (m *Machine) listWorkers(c *client, op *core.ListWorkers) {
	names := m.table.Workers.All()
	names = names[sort.Search(len(names), func(i int) bool { return names[i] > op.After }):]
	answer := &core.Answer{Workers: []core.WorkerInfo{}}
	for _, name := range names[:min(len(names), pageLimit(op.Limit))] {
		answer.Workers = append(answer.Workers, core.WorkerInfo{Name: name, Held: m.heldJobs(m.table.LeasesOf(m.table.Workers.NumberOf(name)))})
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

// Disconnected calls fn for every client to be disconnected since the last call.
func (m *Machine) Disconnected(fn func(slot uint32)) {
	for _, slot := range m.disconnected {
		if m.clients[slot] != nil {
			fn(slot)
		}
	}
	m.disconnected = m.disconnected[:0]
}
