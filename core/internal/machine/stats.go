package machine

import (
	"encoding/binary"
	"errors"

	"broker/core"
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

// Stats is a snapshot of the counters.
func (m *Machine) Stats() *core.Stats {
	s := m.stats
	s.Jobs = m.table.InState
	s.Queues, s.Batches, s.History = m.table.QueueCount(), len(m.batches), m.history.Days(m.table.Now)
	return &s
}

// resetCounters sets the counts of one protocol's clients and jobs to zero.
func (m *Machine) resetCounters(c *client, op *core.ResetCounters) {
	gone := counters(&m.stats.ByWorker[op.Origin])
	for i, n := range counters(&m.stats.Totals) {
		*n -= *gone[i]
	}
	m.stats.ByOrigin[op.Origin], m.stats.ByWorker[op.Origin] = core.Totals{}, core.Totals{}
	m.history.Forget(op.Origin)
	if m.opts.Persist {
		m.table.AddMeta(m.sealStats) // with the open batch, even if that is otherwise empty
	}
	m.reply(c, core.Reply{Kind: core.Accepted, Tag: op.Tag, Commit: m.table.Promise()})
}

// counters lists the fields of t in an order that reaches the disk: new ones go to the end of storedTotals.each.
func counters(t *core.Totals) [8]*uint64 {
	return [...]*uint64{&t.Submitted, &t.Leased, &t.Done, &t.Failed, &t.Dead, &t.Expired, &t.Cancelled, &t.Released}
}

// storedTotals is the stored form of the counters.
type storedTotals struct {
	Totals   core.Totals
	ByOrigin [len(core.Protocols)]core.Totals
	ByWorker [len(core.Protocols)]core.Totals
}

// each calls fn for every counter in the order in which they are stored: append new ones; a store with fewer leaves them at zero.
func (t *storedTotals) each(fn func(*uint64)) {
	group := func(x *core.Totals) {
		for _, n := range counters(x) {
			fn(n)
		}
	}
	group(&t.Totals)
	for i := range t.ByOrigin {
		group(&t.ByOrigin[i])
		group(&t.ByWorker[i])
	}
}

// totalsBytes is what the counters of a broker with some millions of jobs take.
const totalsBytes = 512

// encode encodes the counters as varints: it runs with every commit, and encoding/json would be noticeable.
func (t *storedTotals) encode() []byte {
	b := make([]byte, 0, totalsBytes) // it grows at each commit otherwise
	t.each(func(n *uint64) { b = binary.AppendUvarint(b, *n) })
	return b
}

func (t *storedTotals) decode(b []byte) error {
	bad := false
	t.each(func(n *uint64) {
		v, used := binary.Uvarint(b)
		bad = bad || used < 0 || used == 0 && len(b) > 0
		*n, b = v, b[max(used, 0):]
	})
	if bad {
		return errors.New("not a row of counters")
	}
	return nil
}

// sealStats adds the entries of the counters.
func (m *Machine) sealStats(into []core.MetaEntry) []core.MetaEntry {
	m.statsDirty = false
	t := storedTotals{Totals: m.stats.Totals, ByOrigin: m.stats.ByOrigin, ByWorker: m.stats.ByWorker}
	return m.history.Seal(append(into, core.MetaEntry{Name: totalsMeta, Value: t.encode()}))
}
