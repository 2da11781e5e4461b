package schedule

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"broker/core"
	"broker/core/internal/record"
	"broker/core/internal/table"
)

// Prefix and PositionPrefix are prefixes of the names of meta entries. A schedule has two entries: its definition and,
// written with each run, its position. In the order of names, positions follow definitions.
const (
	Prefix         = "core/schedule/"
	PositionPrefix = "core/schedule_position/"
)

// believable is how far a position may be ahead of the clock. A position further ahead comes from a wrong clock.
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

	CountFrom uint64    `json:"count_from,omitempty"`
	Recent    []runMeta `json:"recent,omitempty"`
}

// encode is the definition of a schedule as stored.
func (s *schedule) encode() []byte {
	bare := *s.Job
	bare.Seq, bare.Body = 0, nil
	job, _ := record.AppendJob(nil, &bare, 0)
	return table.Encode(scheduleMeta{
		Cron: s.Cron, Zone: s.Zone, Every: s.Every, Offset: s.Offset, Job: job, Body: s.Job.Body,
		Backlog: s.Backlog, Missed: s.Missed, MaxMissed: s.MaxMissed, Paused: s.Paused, FromConfig: s.FromConfig,
	})
}

// storeSchedule stores the definition of a schedule if it has changed, with the open batch.
func (x *Schedules) storeSchedule(s *schedule) {
	if definition := s.encode(); !bytes.Equal(definition, s.definition) {
		s.definition = definition
		s.Revision++
		x.table.LogMeta(core.MetaEntry{Name: Prefix + s.Name, Value: definition})
		x.storePosition(s)
	}
}

// storePosition stores the position of a schedule with the open batch.
func (x *Schedules) storePosition(s *schedule) {
	if !x.table.Persists() {
		return
	}
	x.table.MetaChanged()
	if !s.moved {
		s.moved = true
		x.moved = append(x.moved, s.slot)
	}
}

// Seal adds the positions that have changed.
func (x *Schedules) Seal(into []core.MetaEntry) []core.MetaEntry {
	for _, slot := range x.moved {
		if s := x.slots.At(slot); s != nil && s.moved {
			s.moved = false
			into = append(into, core.MetaEntry{Name: PositionPrefix + s.Name, Value: table.Encode(positionMeta{
				At: s.at, Next: s.next, LastAt: s.LastAt, LastSeq: s.LastSeq, Runs: s.Runs, Revision: s.Revision,
				CountFrom: s.countFrom, Recent: s.storedRuns(),
			})})
		}
	}
	x.moved = x.moved[:0]
	return into
}

// Restore restores the definition of a schedule.
func (x *Schedules) Restore(name string, value []byte) error {
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
	s := &schedule{definition: bytes.Clone(value)}
	s.Schedule = core.Schedule{
		Name: strings.TrimPrefix(name, Prefix), Cron: d.Cron, Zone: d.Zone, Every: d.Every, Offset: d.Offset, Job: j,
		Backlog: d.Backlog, Missed: d.Missed, MaxMissed: min(d.MaxMissed, core.MaxMissed), Paused: d.Paused,
		FromConfig: d.FromConfig,
	}
	// otherwise a schedule that was removed from the file could run before the file is read
	s.unconfirmed = s.FromConfig
	if err := scheduleFormRefusal(&s.Schedule); err != nil {
		return err
	}
	// for example, the system no longer has its time zone
	if s.times, s.unusable = ParseTimes(&s.Schedule); s.unusable != nil {
		s.times = never{}
	}
	x.addSchedule(s, s.Name)
	return nil
}

// RestorePosition restores the position of a schedule.
func (x *Schedules) RestorePosition(name string, value []byte) error {
	s := x.byName[strings.TrimPrefix(name, PositionPrefix)]
	if s == nil {
		return errors.New("the position of an unknown schedule")
	}
	var p positionMeta
	if err := json.Unmarshal(value, &p); err != nil {
		return err
	}
	s.at, s.next, s.LastAt, s.LastSeq, s.Runs, s.Revision = p.At, p.Next, p.LastAt, p.LastSeq, p.Runs, p.Revision
	s.countFrom = p.CountFrom
	x.restoreRuns(s, p.Recent)
	return nil
}

// Restored gives schedules with a Backlog their jobs, and sets the deadlines of all schedules.
func (x *Schedules) Restored() {
	for _, seq := range slices.Sorted(maps.Keys(x.restored)) {
		if s := x.byName[x.restored[seq]]; s != nil && s.Backlog > 0 && seq >= s.countFrom {
			s.live = append(s.live, seq)
		}
	}
	x.restored = map[uint64]string{}
	for s := range x.slots.All() {
		if s.unusable != nil { // keep its position: its times may be usable at the next start
			x.reportRun(s, core.ScheduleRun{DueAt: s.next, Result: core.RunRefused, Err: s.unusable})
			continue
		}
		x.resetIfFromFuture(s)
		x.arm(s, s.next)
	}
}

// resetIfFromFuture resets the position of a schedule if it comes from a clock that was far ahead.
func (x *Schedules) resetIfFromFuture(s *schedule) bool {
	if s.unusable != nil || s.at <= x.table.Now.Add(believable) {
		return false
	}
	x.advance(s, x.table.Now)
	return true
}

// RestoredJob records that a restored job was submitted by a schedule, until Restored.
func (x *Schedules) RestoredJob(seq uint64, name string) { x.restored[seq] = strings.Clone(name) }

// ForgetRestored undoes RestoredJob.
func (x *Schedules) ForgetRestored(seq uint64) { delete(x.restored, seq) }

// HasChanges reports whether positions have to be stored.
func (x *Schedules) HasChanges() bool { return len(x.moved) > 0 }

// Show shows everything about schedules that affects decisions, for comparisons in tests. It is not a method, so that
// the linker leaves it out of the program.
func Show(x *Schedules) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(x.byName)) {
		s := x.byName[name]
		fmt.Fprintf(&b, " schedule %s %s %v %v %v %v %v", name, s.definition, s.at, s.next, s.Recent, s.live,
			x.table.Timers.At(s.deadline))
	}
	return b.String()
}

// ClockSetBack adapts the schedules when the wall clock was set back.
func (x *Schedules) ClockSetBack() {
	for s := range x.slots.All() {
		if x.resetIfFromFuture(s) {
			x.storePosition(s)
			x.arm(s, s.next)
		}
	}
}
