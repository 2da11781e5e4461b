package machine

import (
	"maps"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"broker/core"
	"broker/core/internal/queue"
)

// queueNames keeps the numbers of queues in order, so that a new queue and a page of a list are cheap with hundreds of thousands
// of queues.
type queueNames struct {
	all    queue.List // by name
	rows   queue.List // visible ones, by name
	folded queue.List // all, by name ignoring case, then by name
}

// nameQueue adds a queue to all lists.
func (m *Machine) nameQueue(n uint32, q *jobQueue) {
	m.names[q.name] = n
	m.inOrder.all.Push(n, m.byName)
	m.inOrder.folded.Push(n, m.byFoldedName)
	m.inOrder.rows.Push(n, m.byName)
}

// unnameQueue removes a queue from all lists.
func (m *Machine) unnameQueue(n uint32, q *jobQueue) {
	m.hide(n, q)
	delete(m.names, q.name)
	m.inOrder.all.Remove(n, m.byName)
	m.inOrder.folded.Remove(n, m.byFoldedName)
}

// hide removes a queue from the list of rows until a client names it or a job is ready in it.
func (m *Machine) hide(n uint32, q *jobQueue) {
	if !q.hidden {
		q.hidden = true
		m.inOrder.rows.Remove(n, m.byName)
	}
}

// show reverts hide.
func (m *Machine) show(n uint32, q *jobQueue) {
	if q.hidden {
		q.hidden = false
		m.inOrder.rows.Push(n, m.byName)
	}
}

func (m *Machine) nameBefore(a, b uint32) bool { return m.queues[a].name < m.queues[b].name }

func (m *Machine) foldedNameBefore(a, b uint32) bool {
	x, y := m.queues[a].name, m.queues[b].name
	if c := compareFold(x, y); c != 0 {
		return c < 0
	}
	return x < y
}

// sortedQueues returns the numbers of all queues in byte order of their names.
func (m *Machine) sortedQueues() []uint32 { return m.inOrder.all.Slice(0, m.inOrder.all.Len(), nil) }

// queueFold is the first queue with this name ignoring case, or zero.
func (m *Machine) queueFold(name string) uint32 {
	before := func(n uint32) bool { return compareFold(m.queues[n].name, name) < 0 }
	n := m.inOrder.folded.At(m.inOrder.folded.Search(before))
	if n == 0 || compareFold(m.queues[n].name, name) != 0 {
		return 0
	}
	return n
}

// compareFold orders texts ignoring case. It is zero if strings.EqualFold is true, if both are UTF-8.
func compareFold(a, b string) int {
	for a != "" && b != "" {
		x, i := utf8.DecodeRuneInString(a)
		y, j := utf8.DecodeRuneInString(b)
		if x != y || x == utf8.RuneError {
			if c := int(foldRune(x, i, a[0])) - int(foldRune(y, j, b[0])); c != 0 {
				return c
			}
		}
		a, b = a[i:], b[j:]
	}
	return len(a) - len(b)
}

// foldRune is the smallest character that is equal to r ignoring case. A byte that is not UTF-8 (the first, for a RuneError of
// size 1) is a character of its own, after all others.
func foldRune(r rune, size int, first byte) rune {
	if r == utf8.RuneError && size == 1 {
		return utf8.MaxRune + 1 + rune(first)
	}
	least := r
	for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
		least = min(least, f)
	}
	return least
}

// queuePage is how many queues a list looks up at once, maxRowsAtOnce for how many it allocates room at most.
const (
	queuePage     = 256
	maxRowsAtOnce = 1024
)

func (m *Machine) listQueues(c *client, op *core.ListQueues) {
	if op.Busiest {
		m.listBusiest(c, op)
		return
	}
	rows := make([]core.QueueInfo, 0, m.rowsAtOnce(op.Limit))
	m.eachRow(op.Prefix, op.After, op.Offset, op.Limit, func(n uint32) { rows = append(rows, m.queueInfo(n)) })
	m.reply(c, core.Reply{Kind: core.Queues, Tag: op.Tag, Queues: rows, Commit: m.metaCommit()})
}

func (m *Machine) listQueueValues(c *client, op *core.ListQueueValues) {
	values := make([]core.QueueValue, 0, m.rowsAtOnce(op.Limit))
	m.eachRow(op.Prefix, op.After, 0, op.Limit, func(n uint32) {
		q := m.queues[n]
		values = append(values, core.QueueValue{Name: q.name, Value: m.measure(q, op.Of)})
	})
	m.reply(c, core.Reply{Kind: core.Answered, Tag: op.Tag, Commit: m.metaCommit(), Answer: &core.Answer{QueueValues: values}})
}

// rowsAtOnce is how many rows to allocate for a list with a limit.
func (m *Machine) rowsAtOnce(limit int) int {
	if limit <= 0 {
		limit = m.inOrder.rows.Len()
	}
	return min(limit, m.inOrder.rows.Len(), maxRowsAtOnce)
}

// eachRow shows the queues whose names start with prefix and come behind after to visit, from an offset and as many as limit
// says; zero: all.
func (m *Machine) eachRow(prefix, after string, offset, limit int, visit func(n uint32)) {
	from := m.inOrder.rows.Search(func(n uint32) bool {
		name := m.queues[n].name
		return name < prefix || after != "" && name <= after
	}) + offset
	if limit <= 0 {
		limit = m.inOrder.rows.Len()
	}
	for numbers := []uint32(nil); limit > 0; limit -= len(numbers) {
		numbers = m.inOrder.rows.Slice(from, min(limit, queuePage), numbers[:0])
		for _, n := range numbers {
			if !strings.HasPrefix(m.queues[n].name, prefix) {
				return
			}
			visit(n)
		}
		if len(numbers) == 0 {
			return
		}
		from += len(numbers)
	}
}

// measure is a number of a queue. Queues without ready jobs have the largest one as core.QueueNextAt.
func (m *Machine) measure(q *jobQueue, of core.QueueMeasure) int64 {
	switch of {
	case core.QueueReady:
		return int64(q.class[classHigh]) + int64(q.class[classNormal]) + int64(q.class[classLow])
	case core.QueueScheduled:
		return int64(q.count[core.Scheduled])
	case core.QueueLeased:
		return int64(q.count[core.Leased])
	case core.QueueRetrying:
		return int64(q.count[core.Retrying])
	case core.QueueBlocked:
		return int64(q.count[core.Blocked])
	case core.QueueDone:
		return int64(q.count[core.Done])
	case core.QueueDead:
		return int64(q.count[core.Dead])
	case core.QueueNextAt:
		if h := q.ready.Front(); h != 0 {
			return int64(min(m.jobs.at(h).readyAt, m.now))
		}
	}
	return math.MaxInt64
}

// listBusiest lists the queues that have a meter.
func (m *Machine) listBusiest(c *client, op *core.ListQueues) {
	names := m.meters.Names()
	numbers := make([]uint32, 0, len(names))
	for _, name := range names {
		if n := m.names[name]; n != 0 && !m.queues[n].hidden {
			numbers = append(numbers, n)
		}
	}
	slices.SortFunc(numbers, func(a, b uint32) int { return strings.Compare(m.queues[a].name, m.queues[b].name) })
	rows := make([]core.QueueInfo, len(numbers))
	for i, n := range numbers {
		rows[i] = m.queueInfo(n)
	}
	m.reply(c, core.Reply{Kind: core.Queues, Tag: op.Tag, Queues: rows, Commit: m.metaCommit()})
}

func (m *Machine) inspectQueue(c *client, op *core.InspectQueue) {
	n := m.names[op.Queue]
	if n == 0 || m.queues[n].hidden {
		m.noQueue(c, op.Tag)
		return
	}
	info := m.queueInfo(n)
	if q := m.queues[n]; q.policy != nil && q.policy.sharing.Key.Kind != core.KeyNone {
		sharing := q.policy.sharing
		sharing.Weights = maps.Clone(sharing.Weights)
		info.Sharing = &sharing
	}
	m.reply(c, core.Reply{Kind: core.Queues, Tag: op.Tag, Queues: []core.QueueInfo{info}, Commit: m.metaCommit()})
}

func (m *Machine) queueInfo(n uint32) core.QueueInfo {
	q := m.queues[n]
	i := core.QueueInfo{
		Name: q.name, High: q.class[classHigh], Normal: q.class[classNormal], Low: q.class[classLow],
		Scheduled: q.count[core.Scheduled], Leased: q.count[core.Leased], Retrying: q.count[core.Retrying],
		Blocked: q.count[core.Blocked], Done: q.count[core.Done], Dead: q.count[core.Dead],
		Workers: q.workers, Waiting: q.waitList.Counted(), Paused: q.paused, PausedUntil: q.pausedUntil,
		PausedFor: q.pausedFor, KnownSince: q.knownSince, Limits: q.limits, Counts: q.counts,
	}
	i.InRate, i.OutRate = m.meters.Rates(&q.watch)
	if at := m.oldestReady(q); at != 0 {
		i.OldestAge = m.now.Sub(at)
	}
	if h := q.ready.Front(); h != 0 {
		i.NextEnqueuedAt = min(m.jobs.at(h).readyAt, m.now)
	}
	return i
}
