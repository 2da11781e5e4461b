package machine

import (
	"slices"
	"strings"

	"broker/core"
	"broker/core/internal/find"
	"broker/core/internal/table"
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
	i.InRate, i.OutRate, i.Measured = m.meters.Rates(&q.metered)
	if at := m.table.OldestReady(&q.Queue.Queue); at != 0 {
		i.OldestAge = m.table.Now.Sub(at)
	}
	if h := q.Ready.Front(); h != 0 {
		i.NextEnqueuedAt = min(m.table.At(h).ReadyAt, m.table.Now)
	}
	return i
}

// A page also ends when it has looked at maxPage numbers of clients or workers, whether they are in use or not, and
// names of queues of clients.

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
		names := len(answer.Clients[len(answer.Clients)-1].Queues)
		looks += names
		m.table.Touched += names
	}
	m.reply(c, core.Reply{Kind: core.Answered, Tag: op.Tag, Answer: answer})
}

func (m *Machine) clientInfo(c *client) core.ClientInfo {
	i := core.ClientInfo{
		ID: c.id, Protocol: c.protocol, Address: c.address, Identity: c.identity, Name: c.name, Worker: c.worker,
		OpenedAt: c.openedAt, Parked: c.parked, Sleeping: c.sleeping, Held: m.heldJobs(c.held),
	}
	for _, a := range c.abilities[:min(len(c.abilities), core.MaxQueuesShown)] {
		i.Queues = append(i.Queues, m.queues[a.queue].Name)
	}
	if c.parked && !c.byAbility {
		m.waiters.First(c.waitEntries, core.MaxQueuesShown, func(n uint32) {
			i.Queues = append(i.Queues, m.queues[n].Name)
		})
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

// noneFound is the answer of a search without results; read-only.
var noneFound core.Answer

// findJobs lists jobs.
func (m *Machine) findJobs(c *client, op *core.Find) {
	// workers ask for this very often
	if op.Filter.CancelRequested && m.table.StopCount() == 0 && op.Cursor == "" && !op.WithCount {
		m.reply(c, core.Reply{Kind: core.Listed, Tag: op.Tag, Commit: m.table.JobGone(), Answer: &noneFound})
		return
	}
	s, err := find.New(m.table, findHost{m}, m.effort, &m.climbs, op)
	if err != nil {
		m.failed(c, op.Tag, err)
		return
	}
	if op.Filter.NeedsRecords() { // the engine continues outside the lock
		m.replyWith(c, core.Reply{Kind: core.Listed, Tag: op.Tag, Commit: m.table.JobGone(), Answer: &core.Answer{}},
			Work{Needs: FoundByRecords, Find: op})
		return
	}
	page := m.findPage(s, pageLimit(op.Limit), op.Brief)
	r := core.Reply{
		Kind: core.Listed, Tag: op.Tag, Jobs: page.Jobs, Commit: page.Commit,
		Answer: &core.Answer{NextCursor: page.Next, Stopped: page.Stopped},
	}
	if op.WithCount {
		r.Count, r.CountExact = s.Count()
	}
	if op.WithFailures > 0 && s.CountsFailures() {
		r.Failures = s.Failures(op.WithFailures)
	}
	if op.Brief {
		m.reply(c, r)
		return
	}
	m.replyWith(c, r, Work{Needs: FoundJobs})
}

// Page is one page of a list of jobs.
type Page struct {
	Jobs    []core.JobInfo
	Cursors []string // after each of Jobs
	Next    string   // start of the next page; empty: the last page
	Stopped bool     // the page is short because the limit of examined jobs was reached
	Commit  core.Commit
}

// FindPage finds up to limit jobs as far as the index can tell: it ignores the conditions of the filter for which
// NeedsRecords is true.
func (m *Machine) FindPage(now core.Instant, op *core.Find, cursor string, limit int) (Page, error) {
	m.setNow(now)
	again := *op
	again.Cursor = cursor
	s, err := find.New(m.table, findHost{m}, m.effort, &m.climbs, &again)
	if err != nil {
		return Page{}, err
	}
	p := m.findPage(s, limit, false)
	for i := range p.Jobs {
		h := m.table.Handle(p.Jobs[i].Seq)
		p.Cursors = append(p.Cursors, s.CursorAt(h))
		if op.Filter.FailedBy != "" {
			p.Jobs[i].Timeline = m.table.TimelineOf(h)
		}
	}
	return p, nil
}

// findPage fills a page.
func (m *Machine) findPage(s *find.Search, limit int, brief bool) (p Page) {
	p.Commit = m.table.JobGone()
	p.Jobs = make([]core.JobInfo, 0, min(limit, 64))
	p.Next, p.Stopped = s.Page(limit, func(h uint32) {
		p.Jobs = append(p.Jobs, m.jobInfo(h, brief))
		p.Commit = max(p.Commit, m.table.JobCommit(m.table.At(h)))
	})
	return p
}

// findHost is the machine as a search sees it.
type findHost struct{ m *Machine }

// ConnName implements find.Host.
func (c findHost) ConnName(slot uint32) string { return c.m.clients[slot].name }

// IsConnName implements find.Host.
func (c findHost) IsConnName(name string) bool {
	return slices.ContainsFunc(c.m.clients, func(x *client) bool { return x != nil && x.name == name })
}

// BatchParent implements find.Host.
func (c findHost) BatchParent(number uint64) (parent uint64, is bool) {
	if g := c.m.batches.Find(number); g != nil {
		return g.ParentNumber(), true
	}
	return 0, false
}
