package machine

import (
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	"broker/core"
	"broker/core/crontab"
	"broker/core/internal/table"
	"broker/core/internal/timer"
)

// schedule is a stored schedule with its position: all runs up to at are done or left out, and next is due next.
type schedule struct {
	core.Schedule // without NextAt
	times         crontab.Schedule
	slot          uint32 // in schedules.slots, for the timer
	deadline      timer.ID
	at, next      core.Instant
	reported      core.Instant // the run whose refusal was reported
	countedTo     core.Instant // no more than MaxMissed of the runs up to then are still due
	countFrom     uint64       // the Backlog counts no job with a lower number
	live          []uint64     // jobs that may be unfinished; with a Backlog only
	definition    []byte       // as stored
	moved         bool         // its position has to be stored
	unusable      error        // why its stored times mean nothing to this broker; nil: they do
	unconfirmed   bool         // it is the configuration's, which has not confirmed it since the start
}

// schedules holds all of them.
type schedules struct {
	byName  map[string]*schedule
	slots   []*schedule
	free    []uint32
	sorted  []string           // names; nil when out of date
	moved   []uint32           // slots of schedules whose position has to be stored
	reports []core.ScheduleRun // for the listener
	dead    map[uint64]string  // jobs that a Backlog counts again if they leave the dead set; value: the schedule
}

// maxTimesBytes bounds the texts of a schedule's times.
const maxTimesBytes = 1000

// every is a crontab.Schedule of any interval.
type every struct{ every, offset core.Instant }

// Next implements crontab.Schedule.
func (v every) Next(t time.Time) time.Time {
	since := core.InstantOf(t) - v.offset
	n := since / v.every
	if since < 0 && since%v.every != 0 {
		n--
	}
	return ((n+1)*v.every + v.offset).Time()
}

// never is a crontab.Schedule without times.
type never struct{}

// Next implements crontab.Schedule.
func (never) Next(time.Time) time.Time { return time.Time{} }

// parseTimes parses the times of a schedule. It may read a time zone from a file.
func parseTimes(s *core.Schedule) (crontab.Schedule, error) {
	if s.Every != 0 {
		if s.Every < time.Microsecond {
			return nil, fmt.Errorf("an interval of %v", s.Every)
		}
		return every{every: core.Instant(s.Every / time.Microsecond), offset: core.Instant(s.Offset / time.Microsecond)}, nil
	}
	zone, err := time.LoadLocation(s.Zone)
	if err != nil {
		return nil, fmt.Errorf("unknown time zone %q", s.Zone)
	}
	return crontab.Parse(s.Cron, zone)
}

// putSchedule is PutSchedule.
func (m *Machine) putSchedule(c *client, op *core.PutSchedule) {
	old := m.schedules.byName[op.Schedule.Name]
	err := m.putRefusal(op, old)
	var times crontab.Schedule
	if err == nil {
		var wanted bool
		if times, wanted, err = m.timesOf(c, &op.Schedule, old); wanted {
			return
		}
	}
	if err != nil {
		m.refusedAt(c, op.Tag, err, m.table.MetaCommit())
		return
	}
	s := old
	if s == nil {
		s = &schedule{}
		m.addSchedule(s, op.Schedule.Name)
	}
	m.replaceSchedule(s, &op.Schedule, times, old == nil)
	m.reply(c, core.Reply{
		Kind: core.Answered, Tag: op.Tag, Commit: m.table.MetaCommit(), Answer: &core.Answer{Schedules: []core.Schedule{s.shown()}},
	})
}

// putRefusal is the reason why a schedule is refused, nil if there is none.
func (m *Machine) putRefusal(op *core.PutSchedule, old *schedule) error {
	switch {
	case old != nil && op.Create:
		return core.ErrDuplicate
	case old == nil && op.Revision != 0:
		return core.ErrNoSchedule
	case old != nil && op.Revision != 0 && op.Revision != old.Revision:
		return core.ErrConflict
	case old == nil && len(m.schedules.byName) >= core.MaxSchedules:
		return core.ErrFull
	case old != nil && old.FromConfig && !op.Schedule.FromConfig:
		return core.ErrConfigured
	}
	return m.scheduleRefusal(&op.Schedule)
}

// scheduleRefusal is what is invalid in a new schedule, nil if nothing is.
func (m *Machine) scheduleRefusal(s *core.Schedule) error {
	if err := scheduleFormRefusal(s); err != nil {
		return err
	}
	switch {
	case len(s.Name) > core.MaxQueueName:
		return invalidSchedule("a schedule needs a name of at most 512 bytes")
	case s.Every != 0 && s.Every < core.MinEvery:
		return invalidSchedule("the interval is too short")
	case s.MaxMissed > core.MaxMissed || s.MaxMissed > 0 && s.Missed != core.MissedAll:
		return invalidSchedule("a limit of missed runs is at most 1,000, and needs that all of them are made up for")
	case len(s.Cron) > maxTimesBytes || len(s.Zone) > maxTimesBytes:
		return invalidSchedule("the times are too long")
	case table.PayloadBytes(s.Job) > core.MaxScheduleBytes:
		return invalidSchedule("the job of a schedule is larger than 1 MiB")
	case !m.valid(&core.Submit{Job: s.Job}):
		return invalidSchedule("the job of a schedule has names or tags that are too long")
	}
	return nil
}

// scheduleFormRefusal is what no version of the broker has ever accepted. A stored schedule is checked for this only: a limit
// that has become tighter since must not keep a store from opening.
func scheduleFormRefusal(s *core.Schedule) error {
	switch {
	case s.Name == "":
		return invalidSchedule("a schedule needs a name of at most 512 bytes")
	case (s.Cron == "") == (s.Every == 0):
		return invalidSchedule("a schedule needs either times or an interval")
	case s.Every < 0 || s.Every != 0 && (s.Offset < 0 || s.Zone != ""):
		return invalidSchedule("the interval or its offset is negative, or there is a time zone")
	case s.Missed > core.MissedAll:
		return invalidSchedule("unknown rule for missed runs")
	case s.Backlog < 0 || s.NextAt < 0 || s.MaxMissed < 0:
		return invalidSchedule("negative backlog, next run or limit of missed runs")
	case s.Job == nil:
		return invalidSchedule("a schedule needs a job")
	case s.Job.Ephemeral || s.Job.Parent != 0 || len(s.Job.After) > 0 || s.Job.Batch != 0 || s.Job.CallbackFor != 0:
		return invalidSchedule("the job of a schedule is ephemeral or linked to others")
	}
	return nil
}

func invalidSchedule(what string) error { return fmt.Errorf("%w: %s", core.ErrInvalid, what) }

func (m *Machine) addSchedule(s *schedule, name string) {
	all := &m.schedules
	if n := len(all.free); n > 0 {
		s.slot, all.free = all.free[n-1], all.free[:n-1]
		all.slots[s.slot] = s
	} else {
		s.slot = uint32(len(all.slots))
		all.slots = append(all.slots, s)
	}
	all.byName[strings.Clone(name)] = s
	all.sorted = nil
}

// sameTimes reports whether two schedules are due at the same times.
func sameTimes(a, b *core.Schedule) bool {
	return a.Cron == b.Cron && a.Zone == b.Zone && a.Every == b.Every && a.Offset == b.Offset
}

// replaceSchedule gives a schedule another definition. Its position is kept unless the times change.
func (m *Machine) replaceSchedule(s *schedule, to *core.Schedule, times crontab.Schedule, fresh bool) {
	before := s.Schedule
	s.Schedule, s.times, s.unusable = *to, times, nil
	s.countedTo = 0
	s.NextAt, s.LastAt, s.LastSeq, s.Runs, s.Revision = 0, before.LastAt, before.LastSeq, before.Runs, before.Revision
	if !fresh && before.FromConfig && to.FromConfig {
		s.Paused = before.Paused
	}
	if fresh || before.Backlog == 0 || to.Backlog == 0 {
		s.countFrom, s.live = m.table.NextSeq, nil
	}
	switch {
	case to.NextAt != 0:
		s.at, s.next = m.table.Now, to.NextAt
		m.storePosition(s)
	case fresh || !sameTimes(&before, to):
		m.advance(s, m.table.Now)
	case before.Paused && !s.Paused:
		m.resume(s)
	}
	s.unconfirmed = false
	m.storeSchedule(s)
	m.arm(s, s.next)
}

func (m *Machine) pauseSchedule(c *client, op *core.PauseSchedule) {
	s := m.schedules.byName[op.Name]
	if s == nil {
		m.refusedAt(c, op.Tag, core.ErrNoSchedule, m.table.MetaCommit())
		return
	}
	if s.Paused != op.Paused {
		s.Paused = op.Paused
		if !op.Paused {
			m.resume(s)
		}
		m.storeSchedule(s)
		m.arm(s, s.next)
	}
	m.reply(c, core.Reply{Kind: core.Accepted, Tag: op.Tag, Commit: m.table.MetaCommit()})
}

// advance notes that all runs up to at are done or left out.
func (m *Machine) advance(s *schedule, at core.Instant) { s.at, s.next = at, s.after(at) }

// after is the first instant after at; zero if there is none.
func (s *schedule) after(at core.Instant) core.Instant {
	return core.InstantOf(s.times.Next(at.Time()))
}

// arm sets the deadline of a schedule.
func (m *Machine) arm(s *schedule, at core.Instant) {
	m.table.Timers.Remove(&s.deadline)
	if at != 0 && !s.Paused && !s.unconfirmed && s.unusable == nil {
		s.deadline = m.table.Timers.Add(at, timer.Owner{Kind: table.TimerSchedule, Handle: s.slot})
	}
}

// resume leaves out the runs that were due while a schedule was paused, unless missed runs are made up for.
func (m *Machine) resume(s *schedule) {
	if s.unusable == nil && s.Missed == core.MissedSkip && s.next != 0 && s.next <= m.table.Now {
		m.advance(s, m.table.Now)
	}
}

func (m *Machine) removeSchedule(c *client, op *core.RemoveSchedule) {
	s := m.schedules.byName[op.Name]
	switch {
	case s == nil:
		m.refusedAt(c, op.Tag, core.ErrNoSchedule, m.table.MetaCommit())
		return
	case s.FromConfig != op.FromConfig:
		m.refusedAt(c, op.Tag, core.ErrConfigured, m.table.MetaCommit())
		return
	}
	all := &m.schedules
	m.table.Timers.Remove(&s.deadline)
	all.slots[s.slot] = nil
	all.free = append(all.free, s.slot)
	delete(all.byName, op.Name)
	all.sorted = nil
	m.table.LogMeta(core.MetaEntry{Name: schedulePrefix + op.Name})
	m.table.LogMeta(core.MetaEntry{Name: positionPrefix + op.Name})
	m.reply(c, core.Reply{Kind: core.Accepted, Tag: op.Tag, Commit: m.table.Promise()})
}

func (m *Machine) listSchedules(c *client, op *core.ListSchedules) {
	all := &m.schedules
	if all.sorted == nil {
		all.sorted = make([]string, 0, len(all.byName))
		for name := range all.byName {
			all.sorted = append(all.sorted, name)
		}
		slices.Sort(all.sorted)
	}
	rows := []core.Schedule{}
	from := sort.SearchStrings(all.sorted, op.Prefix)
	for _, name := range all.sorted[from:] {
		if !strings.HasPrefix(name, op.Prefix) || op.Limit > 0 && len(rows) == op.Limit {
			break
		}
		if name > op.After {
			rows = append(rows, all.byName[name].shown())
		}
	}
	m.reply(c, core.Reply{Kind: core.Answered, Tag: op.Tag, Commit: m.table.MetaCommit(), Answer: &core.Answer{Schedules: rows}})
}

// shown is a schedule as clients see it.
func (s *schedule) shown() core.Schedule {
	row := s.Schedule
	if row.NextAt = s.next; s.Paused {
		row.NextAt = 0
	}
	return row
}
