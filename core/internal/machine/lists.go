package machine

import (
	"slices"
	"strings"

	"broker/core"
	"broker/core/internal/table"
	"broker/core/internal/telemetry"
)

func (m *Machine) listQueues(c *client, op *core.ListQueues) {
	if op.Busiest {
		m.listBusiest(c, op)
		return
	}
	rows := make([]core.QueueInfo, 0, m.table.RowsAtOnce(op.Limit))
	m.table.EachRow(op.Prefix, op.After, op.Offset, op.Limit, func(n uint32) { rows = append(rows, m.queueInfo(n)) })
	m.reply(c, core.Reply{Kind: core.Queues, Tag: op.Tag, Queues: rows, Commit: m.table.MetaCommit()})
}

func (m *Machine) listQueueValues(c *client, op *core.ListQueueValues) {
	values := make([]core.QueueValue, 0, m.table.RowsAtOnce(op.Limit))
	m.table.EachRow(op.Prefix, op.After, 0, op.Limit, func(n uint32) {
		q := m.queues[n]
		values = append(values, core.QueueValue{Name: q.Name, Value: m.table.Measure(&q.Queue.Queue, op.Of)})
	})
	m.reply(c, core.Reply{
		Kind: core.Answered, Tag: op.Tag, Commit: m.table.MetaCommit(), Answer: &core.Answer{QueueValues: values},
	})
}

// listBusiest lists the queues with a meter.
func (m *Machine) listBusiest(c *client, op *core.ListQueues) {
	names := m.meters.Names()
	numbers := make([]uint32, 0, len(names))
	for _, name := range names {
		if n := m.table.QueueNumber(name); n != 0 && !m.queues[n].Hidden {
			numbers = append(numbers, n)
		}
	}
	slices.SortFunc(numbers, func(a, b uint32) int { return strings.Compare(m.queues[a].Name, m.queues[b].Name) })
	rows := make([]core.QueueInfo, len(numbers))
	for i, n := range numbers {
		rows[i] = m.queueInfo(n)
	}
	m.reply(c, core.Reply{Kind: core.Queues, Tag: op.Tag, Queues: rows, Commit: m.table.MetaCommit()})
}

func (m *Machine) inspectQueue(c *client, op *core.InspectQueue) {
	n := m.table.QueueNumber(op.Queue)
	if n == 0 || m.queues[n].Hidden {
		m.noQueue(c, op.Tag)
		return
	}
	info := m.queueInfo(n)
	info.Sharing = m.queues[n].SharingOf()
	if rule := m.queues[n].spent; rule != nil {
		info.Spent = new(*rule)
	}
	m.reply(c, core.Reply{Kind: core.Queues, Tag: op.Tag, Queues: []core.QueueInfo{info}, Commit: m.table.MetaCommit()})
}

func (m *Machine) queueInfo(n uint32) core.QueueInfo {
	q := m.queues[n]
	i := core.QueueInfo{
		Name: q.Name, High: q.Class[table.ClassHigh], Normal: q.Class[table.ClassNormal], Low: q.Class[table.ClassLow],
		Scheduled: q.Count[core.Scheduled], Leased: q.Count[core.Leased], Retrying: q.Count[core.Retrying],
		Blocked: q.Count[core.Blocked], Done: q.Count[core.Done], Dead: q.Count[core.Dead],
		Workers: int(q.able + q.consumers), Registrations: int(q.workers), Waiting: q.waitList.Counted(),
		Paused: q.paused, PausedUntil: m.table.Timers.At(q.pauseTimer), PausedFor: q.pausedFor,
		KnownSince: q.knownSince, Max: q.max, Throttle: q.Throttle(), Counts: q.counts.all(),
	}
	i.InRate, i.OutRate = m.meters.Rates(&q.metered)
	if at := m.table.OldestReady(&q.Queue.Queue); at != 0 {
		i.OldestAge = m.table.Now.Sub(at)
	}
	if h := q.Ready.Front(); h != 0 {
		i.NextEnqueuedAt = min(m.table.At(h).ReadyAt, m.table.Now)
	}
	return i
}

// A page also ends when it has looked at maxPage numbers of clients or workers, whether they are in use or not.

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
	for slot, looks := from, 0; slot < len(m.clients); slot++ {
		if looks++; looks > maxPage || len(answer.Clients) == limit {
			answer.NextClient = core.ClientID(slot - 1) // its slot counts only
			break
		}
		m.table.Touched++
		cl := m.clients[slot]
		if cl == nil || cl.left || cl.unlisted || op.Protocol != core.Internal && cl.protocol != op.Protocol {
			continue
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
	limit, answer := pageLimit(op.Limit), &core.Answer{Workers: []core.WorkerInfo{}}
	last := uint64(m.table.Workers.Last())
	for n, looks := op.Cursor+1, 0; n <= last; n++ {
		if looks++; looks > maxPage || len(answer.Workers) == limit {
			answer.NextWorker = n - 1
			break
		}
		m.table.Touched++
		if held := m.table.LeasesOf(uint32(n)); len(held) > 0 {
			answer.Workers = append(answer.Workers,
				core.WorkerInfo{Name: m.table.Workers.NameOf(uint32(n)), Held: m.heldJobs(held)})
		}
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
		if c := m.clients[slot]; c != nil && !c.left {
			fn(slot)
		}
	}
	m.disconnected = m.disconnected[:0]
}

// totalsMeta is the name of the meta entry with the counters.
const totalsMeta = "core/totals"

// count adds to the totals of the server, of the job's protocol and of the client's protocol.
func (m *Machine) count(origin, by core.Protocol, add func(*core.Totals)) {
	add(&m.stats.Totals)
	add(&m.stats.ByOrigin[origin])
	add(&m.stats.ByWorker[by])
	m.statsDirty = m.opts.Persist
}

// Stats returns a snapshot of the counters.
func (m *Machine) Stats() *core.Stats {
	s := m.stats
	s.Jobs = m.table.InState
	s.Queues, s.Batches, s.History = m.table.QueueCount(), m.batches.Count(), m.history.Days(m.table.Now)
	return &s
}

// resetCounters sets the counts of one protocol's clients and jobs to zero.
func (m *Machine) resetCounters(c *client, op *core.ResetCounters) {
	gone := telemetry.Counters(&m.stats.ByWorker[op.Origin])
	for i, n := range telemetry.Counters(&m.stats.Totals) {
		*n -= *gone[i]
	}
	m.stats.ByOrigin[op.Origin], m.stats.ByWorker[op.Origin] = core.Totals{}, core.Totals{}
	m.history.Forget(op.Origin)
	if m.opts.Persist {
		m.table.AddMeta(m.sealStats) // with the open batch, even if that is otherwise empty
	}
	m.reply(c, core.Reply{Kind: core.Accepted, Tag: op.Tag, Commit: m.table.Promise()})
}

// sealStats adds the entries of the counters.
func (m *Machine) sealStats(into []core.MetaEntry) []core.MetaEntry {
	m.statsDirty = false
	t := telemetry.Totals{Totals: m.stats.Totals, ByOrigin: m.stats.ByOrigin, ByWorker: m.stats.ByWorker}
	return m.history.Seal(append(into, core.MetaEntry{Name: totalsMeta, Value: t.Encode()}))
}
