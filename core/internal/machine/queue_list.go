package machine

import (
	"slices"
	"strings"

	"broker/core"
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
	m.reply(c, core.Reply{Kind: core.Answered, Tag: op.Tag, Commit: m.table.MetaCommit(), Answer: &core.Answer{QueueValues: values}})
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
		Paused: q.paused, PausedUntil: q.pausedUntil, PausedFor: q.pausedFor, KnownSince: q.knownSince,
		Limits: q.Limits, Counts: q.counts.all(),
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
