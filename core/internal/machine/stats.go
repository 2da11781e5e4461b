package machine

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"time"

	"broker/core"
)

// historyDays is how many days of finishes are kept.
const historyDays = 180

// Names of the marks in which counters are stored.
const (
	totalsMark  = "core/totals"
	historyMark = "core/history"
	seqMark     = "core/seq"
)

// count adds to the totals of the server, of the job's protocol and of the client's.
func (m *Machine) count(origin, by core.Protocol, add func(*core.Totals)) {
	add(&m.stats.Totals)
	add(&m.stats.ByOrigin[origin])
	add(&m.stats.ByWorker[by])
	m.statsDirty = m.opts.Persist
}

// countDay adds a finish to the history of today.
func (m *Machine) countDay(_ core.Protocol, failed bool) {
	if m.now >= m.dayEnds || m.today == nil {
		t := m.now.Time()
		date := t.Format(time.DateOnly)
		if m.today = m.history[date]; m.today == nil {
			m.today = &core.Day{Date: date}
			m.history[date] = m.today
			m.dropOldDays()
		}
		m.dayEnds = core.InstantOf(t.Truncate(24 * time.Hour).Add(24 * time.Hour))
	}
	m.today.Processed++
	if failed {
		m.today.Failed++
	}
}

func (m *Machine) dropOldDays() {
	oldest := m.now.Add(-historyDays * 24 * time.Hour).Time().Format(time.DateOnly)
	for date := range m.history {
		if date <= oldest {
			delete(m.history, date)
		}
	}
}

// Stats is a snapshot of the counters.
func (m *Machine) Stats() *core.Stats {
	s := m.stats
	s.Queues, s.Groups = len(m.names), len(m.groups)
	for d := 0; d < historyDays; d++ {
		date := m.now.Add(time.Duration(-d) * 24 * time.Hour).Time().Format(time.DateOnly)
		if day := m.history[date]; day != nil {
			s.History = append(s.History, *day)
		}
	}
	return &s
}

// resetCounters sets the finishes of one protocol to zero; the history goes with them.
func (m *Machine) resetCounters(c *client, op *core.ResetCounters) {
	m.stats.ByOrigin[op.Origin], m.stats.ByWorker[op.Origin] = core.Totals{}, core.Totals{}
	m.stats.Totals = core.Totals{}
	clear(m.history)
	m.today = nil
	m.statsDirty = m.opts.Persist
	m.reply(c, core.Reply{Kind: core.Accepted, Tag: op.Tag, Commit: m.promise()})
}

// storedTotals is what is stored of the counters.
type storedTotals struct {
	Totals   core.Totals
	ByOrigin [len(core.Protocols)]core.Totals
	ByWorker [len(core.Protocols)]core.Totals
}

// each calls fn for every counter, in an order that reaches the disk: new ones go to the end, and a store that has
// fewer leaves them at zero.
func (t *storedTotals) each(fn func(*uint64)) {
	group := func(x *core.Totals) {
		for _, n := range []*uint64{
			&x.Submitted, &x.Leased, &x.Done, &x.Failed, &x.Dead, &x.Expired, &x.Cancelled, &x.Released,
		} {
			fn(n)
		}
	}
	group(&t.Totals)
	for i := range t.ByOrigin {
		group(&t.ByOrigin[i])
		group(&t.ByWorker[i])
	}
}

// encode writes the counters as varints: this happens with every commit, which encoding/json would be felt in.
func (t *storedTotals) encode() (b []byte) {
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

// sealStats writes the marks of the counters.
func (m *Machine) sealStats(into []core.Mark) []core.Mark {
	m.statsDirty = false
	t := storedTotals{Totals: m.stats.Totals, ByOrigin: m.stats.ByOrigin, ByWorker: m.stats.ByWorker}
	into = append(into, core.Mark{Name: totalsMark, Value: t.encode()})
	if m.today != nil {
		into = append(into, core.Mark{Name: historyMark + "/" + m.today.Date, Value: mustEncode(*m.today)})
	}
	return into
}

func mustEncode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic("machine: counters cannot be encoded: " + err.Error())
	}
	return b
}
