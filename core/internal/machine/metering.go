package machine

import (
	"broker/core"
	"broker/core/internal/table"
	"broker/core/internal/telemetry"
)

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
