package machine

import (
	"encoding/binary"
	"errors"
	"strings"
	"time"

	"broker/core"
)

// historyDays is the number of days of finishes to keep.
const historyDays = 180

const historyMeta = "core/history/"

// day counts the finishes of one UTC day, by protocol of the worker.
type day struct {
	date  string // 2006-01-02
	by    [len(core.Protocols)]dayCount
	dirty bool
}

type dayCount struct{ processed, failed uint64 }

// countDay adds a finish to the history of today.
func (m *Machine) countDay(by core.Protocol, failed bool) {
	if m.now >= m.dayEnds || m.today == nil {
		m.newDay()
	}
	m.today.by[by].processed++
	if failed {
		m.today.by[by].failed++
	}
	m.today.dirty = true
}

// newDay finds or makes the entry of today and removes old ones.
func (m *Machine) newDay() {
	t := m.now.Time()
	m.dayEnds = core.InstantOf(t.Truncate(24 * time.Hour).Add(24 * time.Hour))
	date := t.Format(time.DateOnly)
	if n := len(m.history); n > 0 && m.history[n-1].date >= date { // later than now: the clock was wrong before a restart
		m.today = m.history[n-1]
		return
	}
	m.today = &day{date: date}
	m.history = append(m.history, m.today)
	oldest := m.oldestDay()
	for m.history[0].date < oldest {
		m.writeMeta([]core.MetaEntry{{Name: historyMeta + m.history[0].date}})
		m.history = m.history[1:]
	}
}

// oldestDay is the first day to keep.
func (m *Machine) oldestDay() string {
	return m.now.Add(-(historyDays - 1) * 24 * time.Hour).Time().Format(time.DateOnly)
}

// days is the history for replies: newest day first, all protocols together.
func (m *Machine) days() (all []core.Day) {
	oldest := m.oldestDay()
	for i := len(m.history) - 1; i >= 0 && m.history[i].date >= oldest; i-- {
		d := core.Day{Date: m.history[i].date}
		for _, c := range m.history[i].by {
			d.Processed += c.processed
			d.Failed += c.failed
		}
		if d.Processed > 0 {
			all = append(all, d)
		}
	}
	return all
}

// forgetDays removes the finishes of one protocol from the history.
func (m *Machine) forgetDays(of core.Protocol) {
	for _, d := range m.history {
		d.dirty = d.dirty || d.by[of] != dayCount{}
		d.by[of] = dayCount{}
	}
}

// sealDays adds the entries of changed days: today, and another one around midnight.
func (m *Machine) sealDays(into []core.MetaEntry) []core.MetaEntry {
	for _, d := range m.history {
		if d.dirty {
			d.dirty = false
			into = append(into, core.MetaEntry{Name: historyMeta + d.date, Value: d.encode()})
		}
	}
	return into
}

func (d *day) encode() (b []byte) {
	for _, c := range d.by {
		b = binary.AppendUvarint(binary.AppendUvarint(b, c.processed), c.failed)
	}
	return b
}

// restoreDay restores a stored day; days come in the order of their names.
func (m *Machine) restoreDay(name string, b []byte) error {
	d := &day{date: strings.TrimPrefix(name, historyMeta)}
	for i := range d.by {
		for _, n := range []*uint64{&d.by[i].processed, &d.by[i].failed} {
			v, used := binary.Uvarint(b)
			if used < 0 || used == 0 && len(b) > 0 {
				return errors.New("not a day's counters")
			}
			*n, b = v, b[used:]
		}
	}
	m.history = append(m.history, d)
	return nil
}
