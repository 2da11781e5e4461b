package machine

import (
	"fmt"

	"broker/core"
	"broker/core/internal/batch"
	"broker/core/internal/limit"
	"broker/core/internal/schedule"
	"broker/core/internal/table"
	"broker/core/internal/telemetry"
)

// Parts are what a machine consists of, for comparisons in tests; see machinetest.
type Parts struct {
	Table     *table.Table
	Limits    *limit.Rules
	Batches   *batch.Batches
	Schedules *schedule.Schedules
	Meters    *telemetry.Meters
	Queues    []*limit.Queue // by number; nil: none
	Settings  []string       // of the queues: what only the machine knows about them
}

// PartsOf returns the parts of a machine. It is not a method, so that the linker leaves it out of the program.
func PartsOf(m *Machine) Parts {
	p := Parts{Table: m.table, Limits: m.limits, Batches: m.batches, Schedules: m.schedules, Meters: m.meters}
	for _, q := range m.queues {
		if q == nil {
			p.Queues, p.Settings = append(p.Queues, nil), append(p.Settings, "")
			continue
		}
		p.Queues = append(p.Queues, &q.Queue)
		p.Settings = append(p.Settings, fmt.Sprint(
			q.paused, q.pausedFor, m.table.Timers.At(q.pauseTimer), q.lifetime, q.stored,
			q.idleTimer != 0,
		))
	}
	return p
}

// limitsHost is the machine as limits see it.
type limitsHost struct{ m *Machine }

var _ limit.Host = limitsHost{}

// QueueFor implements limit.Host.
func (x limitsHost) QueueFor(name string) uint32 { return x.m.queueForLimits(name) }

// Offer implements limit.Host.
func (x limitsHost) Offer(queue uint32) bool {
	x.m.offer(queue)
	q := x.m.queues[queue]
	return q != nil && !q.waitList.Empty()
}

// DropIdle implements limit.Host.
func (x limitsHost) DropIdle(queue uint32) { x.m.dropIdle(queue) }

// Client implements limit.Host.
func (x limitsHost) Client(slot uint32) core.ClientID { return x.m.clients[slot].id }

// HolderName implements limit.Host.
func (x limitsHost) HolderName(e *table.Entry) string { return x.m.holderName(e) }

// putLimit is PutLimit.
func (m *Machine) putLimit(c *client, op *core.PutLimit) {
	commit, err := m.limits.Put(&op.Limit)
	m.settingChanged(c, op.Tag, commit, err)
}

// removeLimit is RemoveLimit.
func (m *Machine) removeLimit(c *client, op *core.RemoveLimit) {
	commit, err := m.limits.Remove(op.ID, op.FromConfig)
	m.settingChanged(c, op.Tag, commit, err)
}

// shareQueue is ShareQueue.
func (m *Machine) shareQueue(c *client, op *core.ShareQueue) {
	commit, err := m.limits.Share(&op.Sharing)
	m.settingChanged(c, op.Tag, commit, err)
}

// listLimits is ListLimits.
func (m *Machine) listLimits(c *client, op *core.ListLimits) {
	m.reply(c, core.Reply{
		Kind: core.Answered, Tag: op.Tag, Commit: m.table.MetaCommit(), Answer: m.limits.List(op),
	})
}

// queueForLimits finds or creates a queue for limits. A new queue is not listed until it is used.
func (m *Machine) queueForLimits(name string) uint32 {
	n := m.table.QueueNumber(name)
	if n == 0 {
		n, _ = m.queueNamed(name)
		m.table.Hide(n)
	}
	return n
}

// metersHost is the machine as telemetry sees it.
type metersHost struct{ m *Machine }

var _ telemetry.Host = metersHost{}

// Queue implements telemetry.Host.
func (w metersHost) Queue(name string) *telemetry.Queue {
	if n := w.m.table.QueueNumber(name); n != 0 {
		return &w.m.queues[n].metered
	}
	return nil
}

// QueueGauges implements telemetry.Host.
func (w metersHost) QueueGauges(name string) (g telemetry.Gauges) {
	if n := w.m.table.QueueNumber(name); n != 0 {
		q := w.m.queues[n]
		g = telemetry.Gauges{
			Ready: uint32(q.Count[core.Ready]), Leased: uint32(q.Count[core.Leased]),
			OldestAt: w.m.table.OldestReady(&q.Queue.Queue),
		}
	}
	return g
}

// Gauges implements telemetry.Host.
func (w metersHost) Gauges() telemetry.Gauges {
	return telemetry.Gauges{
		Ready: uint32(w.m.table.InState[core.Ready]), Leased: uint32(w.m.table.InState[core.Leased]),
	}
}

// RemoveMeta implements telemetry.Host.
func (w metersHost) RemoveMeta(name string) {
	w.m.table.AddMeta(func(open []core.MetaEntry) []core.MetaEntry { return append(open, core.MetaEntry{Name: name}) })
}

// TypeName implements telemetry.Host.
func (w metersHost) TypeName(kind uint32) string { return w.m.table.Types.NameOf(kind) }

// measureFinish counts a job that is done or failed. A job that was never leased has not run.
func (m *Machine) measureFinish(by core.Protocol, e *table.Entry, failed bool) {
	q := m.queues[e.Queue]
	m.meters.Finished(&q.metered, failed)
	if e.State == core.Leased {
		m.meters.Ran(&q.metered, e.Kind, m.table.Now-e.LeasedAt)
	}
	if m.history.NeedsDay(m.table.Now) {
		for _, name := range m.history.NewDay(m.table.Now) {
			m.table.WriteMeta([]core.MetaEntry{{Name: name}})
		}
	}
	m.history.Count(by, failed)
}

// noteFinished adds a job to the list of jobs that ended most recently.
func (m *Machine) noteFinished(h uint32, e *table.Entry, kind core.EventKind, detail string) {
	if e.State == core.Done {
		return // it had already ended, and was kept
	}
	m.schedules.RunEnded(e.Seq, kind, leasedAt(e))
	f := m.finished.Next()
	f.FinishedJob = core.FinishedJob{
		Event:  core.Event{At: m.table.Now, Kind: kind, Queue: m.queues[e.Queue].Name, Seq: e.Seq, Over: true},
		Origin: e.Origin, CreatedAt: e.CreatedAt, LeasedAt: leasedAt(e), Attempts: e.Attempts, Fails: e.Fails,
	}
	if e.Kind != 0 {
		f.Type = m.table.Types.NameOf(e.Kind)
	}
	f.Protocol, f.Worker, _ = m.causer(m.actor, e, kind)
	f.Minted, f.Commit = e.ID == (table.Digest{}), m.table.ChangeCommit(e)
	if f.SetTexts("", ""); !f.Minted || detail != "" {
		id := ""
		if !f.Minted {
			id = m.identity(h, e)
		}
		f.SetTexts(id, core.CutText(detail, core.MaxFinishedDetail))
	}
}

// leasedAt is the start of a job's last lease; zero: it was not leased.
func leasedAt(e *table.Entry) core.Instant {
	if e.Attempts > 0 {
		return e.LeasedAt
	}
	return 0
}

func (m *Machine) listFinished(c *client, op *core.ListFinished) {
	jobs, commit := m.finished.List(op, pageLimit(op.Limit))
	m.reply(c, core.Reply{
		Kind: core.Answered, Tag: op.Tag, Commit: m.table.Pending(commit), Answer: &core.Answer{Finished: jobs},
	})
}

func (m *Machine) readSeries(c *client, op *core.ReadSeries) {
	series, valid := m.meters.Series(op, m.table.Now)
	if !valid {
		m.failed(c, op.Tag, core.ErrInvalid)
		return
	}
	m.reply(c, core.Reply{Kind: core.Answered, Tag: op.Tag, Answer: &core.Answer{Series: series}})
}

func (m *Machine) readHistograms(c *client, op *core.ReadHistograms) {
	m.reply(c, core.Reply{Kind: core.Answered, Tag: op.Tag, Answer: &core.Answer{Histograms: m.meters.Histograms(op)}})
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
