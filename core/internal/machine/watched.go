package machine

import (
	"broker/core"
	"broker/core/internal/telemetry"
)

// watched is the machine as telemetry sees it.
type watched struct{ m *Machine }

var _ telemetry.Host = watched{}

// Queue implements telemetry.Host.
func (w watched) Queue(name string) *telemetry.Queue {
	if n := w.m.names[name]; n != 0 {
		return &w.m.queues[n].watch
	}
	return nil
}

// QueueGauges implements telemetry.Host.
func (w watched) QueueGauges(name string) (g telemetry.Gauges) {
	if n := w.m.names[name]; n != 0 {
		q := w.m.queues[n]
		g = telemetry.Gauges{
			Ready: uint32(q.count[core.Ready]), Leased: uint32(q.count[core.Leased]), OldestAt: w.m.oldestReady(q),
		}
	}
	return g
}

// Gauges implements telemetry.Host.
func (w watched) Gauges() telemetry.Gauges {
	return telemetry.Gauges{Ready: uint32(w.m.stats.Jobs[core.Ready]), Leased: uint32(w.m.stats.Jobs[core.Leased])}
}

// RemoveMeta implements telemetry.Host.
func (w watched) RemoveMeta(name string) {
	w.m.metaLog = append(w.m.metaLog, core.MetaEntry{Name: name})
}

// TypeName implements telemetry.Host.
func (w watched) TypeName(kind uint32) string { return w.m.types.names[kind] }

// maxRuns is at how many priorities oldestReady looks.
const maxRuns = 16

// oldestReady is when the ready job of a queue became ready that has waited longest, zero if there is none. The list is in
// the order of that instant within a priority, so that it looks at the first job of each; beyond maxRuns it may miss one.
func (m *Machine) oldestReady(q *jobQueue) (oldest core.Instant) {
	h := q.ready.Front()
	for runs := 0; h != 0 && runs < maxRuns; runs++ {
		e := m.jobs.at(h)
		if at := max(min(e.readyAt, m.now), e.createdAt); oldest == 0 || at < oldest {
			oldest = at
		}
		walk := q.ready.From(func(h uint32) bool {
			x := m.jobs.at(h)
			return x.priority() > e.priority() || x.priority() == e.priority() && (!x.has(scheduledOrder) || e.has(scheduledOrder))
		})
		h = walk.Next()
	}
	return oldest
}

// waitsSince is since when a ready job can be handed out.
func (e *entry) waitsSince(now core.Instant) core.Instant {
	return max(min(e.readyAt, now), e.createdAt, e.leasedAt)
}

// watchFinish counts a job that is done or failed. A job that was not leased has not run.
func (m *Machine) watchFinish(by core.Protocol, e *entry, failed bool) {
	q := m.queues[e.queue]
	m.meters.Finished(&q.watch, failed)
	if e.state == core.Leased {
		m.meters.Ran(&q.watch, e.kind, m.now-e.leasedAt)
	}
	if m.history.NeedsDay(m.now) {
		for _, name := range m.history.NewDay(m.now) {
			m.writeMeta([]core.MetaEntry{{Name: name}})
		}
	}
	m.history.Count(by, failed)
}

// noteFinished remembers a job that has come to its end.
func (m *Machine) noteFinished(h uint32, e *entry, kind core.EventKind, detail string) {
	if e.state == core.Done {
		return // it has ended before, and was kept
	}
	f := m.finished.Next()
	f.Seq, f.Queue, f.Origin, f.Kind, f.CreatedAt, f.At = e.seq, m.queues[e.queue].name, e.origin, kind, e.createdAt, m.now
	f.Attempts, f.Fails, f.Ephemeral, f.Minted = e.attempts, e.fails, e.has(ephemeral), e.id == (digest{})
	f.Type, f.LeasedAt, f.Commit = "", 0, m.changeCommit(e)
	id := ""
	if !f.Minted {
		id = m.identity(h, e)
	}
	f.SetTexts(id, core.CutText(detail, 255))
	if e.kind != 0 {
		f.Type = m.types.names[e.kind]
	}
	if e.attempts > 0 {
		f.LeasedAt = e.leasedAt
	}
	f.Protocol, f.Worker, _ = m.causer(m.actor, e, kind)
}

func (m *Machine) listFinished(c *client, op *core.ListFinished) {
	jobs, commit := m.finished.List(op, pageLimit(op.Limit))
	m.reply(c, core.Reply{
		Kind: core.Answered, Tag: op.Tag, Commit: m.pending(commit), Answer: &core.Answer{Finished: jobs},
	})
}

func (m *Machine) readSeries(c *client, op *core.ReadSeries) {
	series, valid := m.meters.Series(op, m.now)
	if !valid {
		m.failed(c, op.Tag, core.ErrInvalid)
		return
	}
	m.reply(c, core.Reply{Kind: core.Answered, Tag: op.Tag, Answer: &core.Answer{Series: series}})
}

func (m *Machine) readHistograms(c *client, op *core.ReadHistograms) {
	m.reply(c, core.Reply{Kind: core.Answered, Tag: op.Tag, Answer: &core.Answer{Histograms: m.meters.Histograms(op)}})
}
