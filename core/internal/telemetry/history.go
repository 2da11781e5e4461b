package telemetry

import (
	"encoding/binary"
	"errors"
	"strings"
	"time"

	"broker/core"
)

// historyDays is the number of days of finishes to keep.
const historyDays = 180

// HistoryPrefix is the prefix of the names of the meta entries of days. It is on disk and never changes.
const HistoryPrefix = "core/history/"

// History counts the finishes of the last days.
type History struct {
	days    []*day // the oldest first
	today   *day   // the last day; nil: not known yet
	dayEnds core.Instant
}

// day counts the finishes of one UTC day, by protocol of the worker.
type day struct {
	date  string // 2006-01-02
	by    [len(core.Protocols)]dayCount
	dirty bool
}

type dayCount struct{ processed, failed uint64 }

// NeedsDay reports whether NewDay must be called before Count.
func (x *History) NeedsDay(now core.Instant) bool { return now >= x.dayEnds || x.today == nil }

// Count adds a finish to today.
func (x *History) Count(by core.Protocol, failed bool) {
	x.today.by[by].processed++
	if failed {
		x.today.by[by].failed++
	}
	x.today.dirty = true
}

// ClockSet adapts to a change of the wall clock.
func (x *History) ClockSet() { x.today = nil }

// NewDay finds or creates the entry of today. It returns the names of stored entries that are too old.
func (x *History) NewDay(now core.Instant) (old []string) {
	t := now.Time()
	x.dayEnds = core.InstantOf(t.Truncate(24 * time.Hour).Add(24 * time.Hour))
	date := t.Format(time.DateOnly)
	if n := len(x.days); n > 0 && x.days[n-1].date >= date { // later than now: the clock was wrong before a restart
		x.today = x.days[n-1]
		return nil
	}
	x.today = &day{date: date}
	x.days = append(x.days, x.today)
	oldest := oldestDay(now)
	for x.days[0].date < oldest {
		old = append(old, HistoryPrefix+x.days[0].date)
		x.days = x.days[1:]
	}
	return old
}

// oldestDay returns the first day to keep.
func oldestDay(now core.Instant) string {
	return now.Add(-(historyDays - 1) * 24 * time.Hour).Time().Format(time.DateOnly)
}

// Days returns the history for replies: newest day first, all protocols together.
func (x *History) Days(now core.Instant) (all []core.Day) {
	oldest := oldestDay(now)
	for i := len(x.days) - 1; i >= 0 && x.days[i].date >= oldest; i-- {
		d := core.Day{Date: x.days[i].date}
		for _, c := range x.days[i].by {
			d.Processed += c.processed
			d.Failed += c.failed
		}
		if d.Processed > 0 {
			all = append(all, d)
		}
	}
	return all
}

// Forget removes the finishes of one protocol.
func (x *History) Forget(of core.Protocol) {
	for _, d := range x.days {
		d.dirty = d.dirty || d.by[of] != dayCount{}
		d.by[of] = dayCount{}
	}
}

// Seal adds the entries of changed days: today, and around midnight also the previous day.
func (x *History) Seal(into []core.MetaEntry) []core.MetaEntry {
	for _, d := range x.days {
		if d.dirty {
			d.dirty = false
			into = append(into, core.MetaEntry{Name: HistoryPrefix + d.date, Value: d.encode()})
		}
	}
	return into
}

func (d *day) encode() []byte {
	b := make([]byte, 0, 4*len(d.by))
	for _, c := range d.by {
		b = binary.AppendUvarint(binary.AppendUvarint(b, c.processed), c.failed)
	}
	return b
}

// Restore restores a stored day; days come in the order of their names.
func (x *History) Restore(name string, b []byte) error {
	d := &day{date: strings.TrimPrefix(name, HistoryPrefix)}
	for i := range d.by {
		for _, n := range []*uint64{&d.by[i].processed, &d.by[i].failed} {
			v, used := binary.Uvarint(b)
			if used < 0 || used == 0 && len(b) > 0 {
				return errors.New("not a day's counters")
			}
			*n, b = v, b[used:]
		}
	}
	x.days = append(x.days, d)
	return nil
}
