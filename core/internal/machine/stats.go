package machine

import (
	"broker/core"
	"broker/core/internal/telemetry"
)

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
