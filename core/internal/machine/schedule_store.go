package machine

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"broker/core"
	"broker/core/internal/record"
	"broker/core/internal/table"
)

// A schedule has two meta entries: its definition and, written with each run, its position. By name, positions follow
// definitions.
const (
	schedulePrefix = "core/schedule/"
	positionPrefix = "core/schedule_position/"
)

// believable is how far a position may be ahead of the clock. One that is further ahead comes from a clock that was wrong.
const believable = time.Hour

// scheduleMeta is the definition of a schedule as stored.
type scheduleMeta struct {
	Cron       string        `json:"cron,omitempty"`
	Zone       string        `json:"zone,omitempty"`
	Every      time.Duration `json:"every,omitempty"`
	Offset     time.Duration `json:"offset,omitempty"`
	Job        []byte        `json:"job"` // record.AppendJob, without the body
	Body       []byte        `json:"body,omitempty"`
	Backlog    int           `json:"backlog,omitempty"`
	Missed     core.Missed   `json:"missed,omitempty"`
	MaxMissed  int           `json:"max_missed,omitempty"`
	Paused     bool          `json:"paused,omitempty"`
	FromConfig bool          `json:"from_config,omitempty"`
}

// positionMeta is the position of a schedule as stored.
type positionMeta struct {
	At       core.Instant `json:"at"`
	Next     core.Instant `json:"next,omitempty"`
	LastAt   core.Instant `json:"last_at,omitempty"`
	LastSeq  uint64       `json:"last_seq,omitempty"`
	Runs     uint64       `json:"runs,omitempty"`
	Revision uint64       `json:"revision,omitempty"`

	CountFrom uint64 `json:"count_from,omitempty"`
}

// encode is the definition of a schedule as stored.
func (s *schedule) encode() []byte {
	bare := *s.Job
	bare.Seq, bare.Body = 0, nil
	return table.Encode(scheduleMeta{
		Cron: s.Cron, Zone: s.Zone, Every: s.Every, Offset: s.Offset, Job: record.AppendJob(nil, &bare, 0), Body: s.Job.Body,
		Backlog: s.Backlog, Missed: s.Missed, MaxMissed: s.MaxMissed, Paused: s.Paused, FromConfig: s.FromConfig,
	})
}

// storeSchedule stores the definition of a schedule if it has changed, with the open batch.
func (m *Machine) storeSchedule(s *schedule) {
	if definition := s.encode(); !bytes.Equal(definition, s.definition) {
		s.definition = definition
		s.Revision++
		m.table.LogMeta(core.MetaEntry{Name: schedulePrefix + s.Name, Value: definition})
		m.storePosition(s)
	}
}

// storePosition stores the position of a schedule with the open batch.
func (m *Machine) storePosition(s *schedule) {
	if !m.opts.Persist {
		return
	}
	m.table.MetaChanged()
	if !s.moved {
		s.moved = true
		m.schedules.moved = append(m.schedules.moved, s.slot)
	}
}

// sealSchedules adds the positions that have changed.
func (m *Machine) sealSchedules(into []core.MetaEntry) []core.MetaEntry {
	for _, slot := range m.schedules.moved {
		if s := m.schedules.slots[slot]; s != nil && s.moved {
			s.moved = false
			into = append(into, core.MetaEntry{Name: positionPrefix + s.Name, Value: table.Encode(positionMeta{
				At: s.at, Next: s.next, LastAt: s.LastAt, LastSeq: s.LastSeq, Runs: s.Runs, Revision: s.Revision,
				CountFrom: s.countFrom,
			})})
		}
	}
	m.schedules.moved = m.schedules.moved[:0]
	return into
}

// restoreSchedule restores the definition of a schedule.
func (m *Machine) restoreSchedule(name string, value []byte) error {
	var d scheduleMeta
	if err := json.Unmarshal(value, &d); err != nil {
		return err
	}
	j := new(core.Job)
	if _, _, err := record.DecodeJob(d.Job, 0, j, nil, nil); err != nil {
		return err
	}
	if j.Body = d.Body; len(j.Body) == 0 {
		j.Body = nil
	}
	s := &schedule{definition: append([]byte(nil), value...)}
	s.Schedule = core.Schedule{
		Name: strings.TrimPrefix(name, schedulePrefix), Cron: d.Cron, Zone: d.Zone, Every: d.Every, Offset: d.Offset, Job: j,
		Backlog: d.Backlog, Missed: d.Missed, MaxMissed: min(d.MaxMissed, core.MaxMissed), Paused: d.Paused, FromConfig: d.FromConfig,
	}
	s.unconfirmed = s.FromConfig // else one that was removed from the file could run before the file is read
	if err := scheduleFormRefusal(&s.Schedule); err != nil {
		return err
	}
	if s.times, s.unusable = parseTimes(&s.Schedule); s.unusable != nil { // such as a time zone that the system no longer has
		s.times = never{}
	}
	m.addSchedule(s, s.Name)
	return nil
}

// restorePosition restores the position of a schedule.
func (m *Machine) restorePosition(name string, value []byte) error {
	s := m.schedules.byName[strings.TrimPrefix(name, positionPrefix)]
	if s == nil {
		return errors.New("the position of an unknown schedule")
	}
	var p positionMeta
	if err := json.Unmarshal(value, &p); err != nil {
		return err
	}
	s.at, s.next, s.LastAt, s.LastSeq, s.Runs, s.Revision = p.At, p.Next, p.LastAt, p.LastSeq, p.Runs, p.Revision
	s.countFrom = p.CountFrom
	return nil
}

// restoredSchedules gives the schedules that have a backlog their jobs, and arms all.
func (m *Machine) restoredSchedules() {
	for _, seq := range slices.Sorted(maps.Keys(m.restoring.scheduled)) {
		if s := m.schedules.byName[m.restoring.scheduled[seq]]; s != nil && s.Backlog > 0 && seq >= s.countFrom {
			s.live = append(s.live, seq)
		}
	}
	for _, s := range m.schedules.slots {
		if s.unusable != nil { // its position stays as it is: its times may be known at the next start
			m.reportRun(s, core.ScheduleRun{DueAt: s.next, Result: core.RunRefused, Err: s.unusable})
			continue
		}
		m.resetIfFromFuture(s)
		m.arm(s, s.next)
	}
}

// resetIfFromFuture lets a schedule start anew if its position comes from a clock that was far ahead.
func (m *Machine) resetIfFromFuture(s *schedule) bool {
	if s.unusable != nil || s.at <= m.table.Now.Add(believable) {
		return false
	}
	m.advance(s, m.table.Now)
	return true
}

// clockSetBack is for a wall clock that was set back.
func (m *Machine) clockSetBack() {
	for _, s := range m.schedules.slots {
		if s != nil && m.resetIfFromFuture(s) {
			m.storePosition(s)
			m.arm(s, s.next)
		}
	}
}
