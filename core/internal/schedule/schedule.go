package schedule

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"broker/core"
	"broker/core/crontab"
	"broker/core/internal/slot"
	"broker/core/internal/table"
	"broker/core/internal/timer"
)

// schedule is a stored schedule with its position: all runs up to at are done or left out, and next is due next.
type schedule struct {
	core.Schedule // without NextAt
	times         crontab.Schedule
	slot          uint32 // in Schedules.slots, for the timer
	deadline      timer.ID
	at, next      core.Instant
	reported      core.Instant // the run whose refusal was reported
	countedTo     core.Instant // at most MaxMissed of the runs up to then are still due
	countFrom     uint64       // the Backlog counts no job with a lower number
	live          []uint64     // jobs that may be unfinished; with a Backlog only
	definition    []byte       // as stored
	moved         bool         // its position has to be stored
	unusable      error        // why this broker cannot use its stored times; nil: it can
	unconfirmed   bool         // it comes from the configuration, which has not confirmed it since the start
}

// Host is what schedules need from the machine.
type Host interface {
	// Valid reports whether a job could be submitted.
	Valid(j *core.Job) bool
	// Submit submits a job, or coalesces it with the job that holds its unique key. It returns the number of the job.
	Submit(j *core.Job) (seq uint64, joined bool, err error)
}

// Schedules holds all schedules. Not safe for concurrent use.
type Schedules struct {
	table   *table.Table
	host    Host
	byName  map[string]*schedule
	slots   slot.Map[schedule]     // for their deadlines
	sorted  []string               // names; nil when out of date
	moved   []uint32               // slots of schedules whose position has to be stored
	reports []core.ScheduleRun     // for the listener
	dead    map[uint64]string      // jobs that a Backlog counts again if they leave the dead set; value: the schedule
	running map[uint64][]*schedule // jobs of recent runs that have not ended, or are dead

	restored map[uint64]string // restored jobs with the names of their schedules; until they are counted
}

// New returns empty Schedules, which submit jobs to host.
func New(t *table.Table, host Host) *Schedules {
	return &Schedules{table: t, host: host, byName: map[string]*schedule{}, restored: map[uint64]string{}}
}

// maxTimesBytes limits the texts of a schedule's times.
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

// ParseTimes parses the times of a schedule. It may read a time zone from a file.
func ParseTimes(s *core.Schedule) (crontab.Schedule, error) {
	if s.Every != 0 {
		if s.Every < time.Microsecond {
			return nil, fmt.Errorf("an interval of %v", s.Every)
		}
		return every{
			every: core.Instant(s.Every / time.Microsecond), offset: core.Instant(s.Offset / time.Microsecond),
		}, nil
	}
	zone, err := time.LoadLocation(s.Zone)
	if err != nil {
		return nil, fmt.Errorf("unknown time zone %q", s.Zone)
	}
	return crontab.Parse(s.Cron, zone)
}

// Put creates or replaces a schedule with parsed times. Call Refusal first.
func (x *Schedules) Put(to *core.Schedule, times crontab.Schedule) core.Schedule {
	s := x.byName[to.Name]
	fresh := s == nil
	if fresh {
		s = &schedule{}
		x.addSchedule(s, to.Name)
	}
	x.replaceSchedule(s, to, times, fresh)
	return s.shown()
}

// TimesOf returns the parsed times if the schedule already has these times; nil: they have to be parsed.
func (x *Schedules) TimesOf(s *core.Schedule) crontab.Schedule {
	if old := x.byName[s.Name]; old != nil && old.unusable == nil && sameTimes(&old.Schedule, s) {
		return old.times
	}
	return nil
}

// Refusal returns why a schedule is refused, or nil.
func (x *Schedules) Refusal(op *core.PutSchedule) error {
	old := x.byName[op.Schedule.Name]
	switch {
	case old != nil && op.Create:
		return core.ErrDuplicate
	case old == nil && op.Revision != 0:
		return core.ErrNoSchedule
	case old != nil && op.Revision != 0 && op.Revision != old.Revision:
		return core.ErrConflict
	case old == nil && len(x.byName) >= core.MaxSchedules:
		return core.ErrFull
	case old != nil && old.FromConfig && !op.Schedule.FromConfig:
		return core.ErrConfigured
	}
	return x.scheduleRefusal(&op.Schedule)
}

// scheduleRefusal returns what is invalid in a new schedule, or nil.
func (x *Schedules) scheduleRefusal(s *core.Schedule) error {
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
	case !x.host.Valid(s.Job):
		return invalidSchedule("the job of a schedule has names or tags that are too long")
	}
	return nil
}

// scheduleFormRefusal returns errors that every version of the broker has refused. Stored schedules are checked only
// for these: limits that were reduced later must not prevent a store from opening.
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

func (x *Schedules) addSchedule(s *schedule, name string) {
	s.slot = x.slots.Add(s)
	x.byName[strings.Clone(name)] = s
	x.sorted = nil
}

// sameTimes reports whether two schedules are due at the same times.
func sameTimes(a, b *core.Schedule) bool {
	return a.Cron == b.Cron && a.Zone == b.Zone && a.Every == b.Every && a.Offset == b.Offset
}

// replaceSchedule gives a schedule another definition. Its position is kept unless the times change.
func (x *Schedules) replaceSchedule(s *schedule, to *core.Schedule, times crontab.Schedule, fresh bool) {
	before := s.Schedule
	s.Schedule, s.times, s.unusable = *to, times, nil
	s.countedTo = 0
	s.NextAt, s.LastAt, s.LastSeq, s.Runs, s.Revision = 0, before.LastAt, before.LastSeq, before.Runs, before.Revision
	s.Recent = before.Recent
	if !fresh && before.FromConfig && to.FromConfig {
		s.Paused = before.Paused
	}
	if fresh || before.Backlog == 0 || to.Backlog == 0 {
		s.countFrom, s.live = x.table.NextSeq, nil
	}
	switch {
	case to.NextAt != 0:
		s.at, s.next = x.table.Now, to.NextAt
		x.storePosition(s)
	case fresh || !sameTimes(&before, to):
		x.advance(s, x.table.Now)
	case before.Paused && !s.Paused:
		x.resume(s)
	}
	s.unconfirmed = false
	x.storeSchedule(s)
	x.arm(s, s.next)
}

// Pause pauses or resumes a schedule.
func (x *Schedules) Pause(op *core.PauseSchedule) error {
	s := x.byName[op.Name]
	if s == nil {
		return core.ErrNoSchedule
	}
	if s.Paused != op.Paused {
		s.Paused = op.Paused
		if !op.Paused {
			x.resume(s)
		}
		x.storeSchedule(s)
		x.arm(s, s.next)
	}
	return nil
}

// advance records that all runs up to at are done or left out.
func (x *Schedules) advance(s *schedule, at core.Instant) { s.at, s.next = at, s.after(at) }

// after returns the first due time after at; zero: none.
func (s *schedule) after(at core.Instant) core.Instant {
	return core.InstantOf(s.times.Next(at.Time()))
}

// arm sets the deadline of a schedule.
func (x *Schedules) arm(s *schedule, at core.Instant) {
	x.table.Timers.Remove(&s.deadline)
	if at != 0 && !s.Paused && !s.unconfirmed && s.unusable == nil {
		s.deadline = x.table.Timers.Add(at, timer.Owner{Kind: table.TimerSchedule, Handle: s.slot})
	}
}

// resume leaves out the runs that were due while the schedule was paused, unless the schedule catches up on missed
// runs.
func (x *Schedules) resume(s *schedule) {
	if s.unusable == nil && s.Missed == core.MissedSkip && s.next != 0 && s.next <= x.table.Now {
		x.advance(s, x.table.Now)
	}
}

// Remove removes a schedule.
func (x *Schedules) Remove(op *core.RemoveSchedule) error {
	s := x.byName[op.Name]
	switch {
	case s == nil:
		return core.ErrNoSchedule
	case s.FromConfig != op.FromConfig:
		return core.ErrConfigured
	}
	x.table.Timers.Remove(&s.deadline)
	x.slots.Remove(s.slot)
	for i := range s.Recent {
		x.forgetRun(s, &s.Recent[i])
	}
	delete(x.byName, op.Name)
	x.sorted = nil
	x.table.LogMeta(core.MetaEntry{Name: Prefix + op.Name})
	x.table.LogMeta(core.MetaEntry{Name: PositionPrefix + op.Name})
	return nil
}

// List lists schedules by name.
func (x *Schedules) List(op *core.ListSchedules) []core.Schedule {
	if x.sorted == nil {
		x.sorted = slices.Sorted(maps.Keys(x.byName))
	}
	rows := []core.Schedule{}
	from, _ := slices.BinarySearch(x.sorted, op.Prefix)
	for _, name := range x.sorted[from:] {
		if !strings.HasPrefix(name, op.Prefix) || op.Limit > 0 && len(rows) == op.Limit {
			break
		}
		if name > op.After {
			rows = append(rows, x.byName[name].shown())
		}
	}
	return rows
}

// shown is a schedule as clients see it.
func (s *schedule) shown() core.Schedule {
	row := s.Schedule
	row.Recent = slices.Clone(s.Recent)
	if row.NextAt = s.next; s.Paused {
		row.NextAt = 0
	}
	return row
}
