package core

import "time"

// Missed says what happens to the runs of a schedule that were missed because the broker was not running or refused the
// job. On disk; never renumbered.
type Missed uint8

// MissedSkip: they are left out, except the newest one if it was due at most MissedGrace ago. MissedOne: one job
// replaces all of them, however old they are. MissedAll: each run gets its job, in order.
const (
	MissedSkip Missed = iota
	MissedOne
	MissedAll
)

// MissedGrace is how late a run may be without counting as missed.
const MissedGrace = time.Minute

// MinEvery is the shortest interval of a schedule.
const MinEvery = time.Millisecond

// Schedule submits a job again and again: at the times of Cron, or at a fixed interval. A run's job and the schedule's
// position are stored in one commit, so a crash or restart neither repeats nor loses a run.
type Schedule struct {
	Name string

	Cron   string        // in the syntax of package crontab
	Zone   string        // time zone of Cron; empty: UTC; Local: that of the broker's process
	Every  time.Duration // instead of Cron: due when the time since 1970, less Offset, is a multiple of this
	Offset time.Duration

	// Job is the template. Its times are relative to the run: spans, not instants. If the template has an ID, each run
	// appends a hyphen and the number of the run. The template cannot be ephemeral, nor be linked to other jobs or a
	// batch.
	Job *Job

	// runs are left out while this many jobs of the schedule wait, counted from when Backlog was set; 0: no limit
	Backlog   int
	Missed    Missed
	MaxMissed int  // MissedAll: only this many of the newest overdue runs get a job; 0: no limit
	Paused    bool // no run is due; runs that were due meanwhile are missed

	// FromConfig marks a schedule of the configuration file: only operations with FromConfig replace or remove it, and
	// after a start it runs once a PutSchedule has confirmed it.
	FromConfig bool

	NextAt   Instant // next run; zero: never. In a PutSchedule it replaces the first time of Cron or Every
	LastAt   Instant // when the last run was due
	LastSeq  uint64  // job of the last run
	Runs     uint64  // number of the last run; a run that is left out does not count, unless a job with its ID exists
	Revision uint64  // changes with each PutSchedule and PauseSchedule that changes something

	Recent []RecentRun // the last MaxRecentRuns, the newest last; ignored in a PutSchedule
}

// MaxRecentRuns is how many runs a schedule remembers.
const MaxRecentRuns = 20

// RecentRun is a run of a schedule, and what became of its job.
type RecentRun struct {
	DueAt     Instant // zero: a client has asked for it
	At        Instant // when it was submitted, refused or left out
	Seq       uint64  // its job; zero: it has none
	StartedAt Instant // of the last lease of the job; zero: it was not leased
	EndedAt   Instant // zero: the job has not ended
	// what happened to it; one RunMissed or RunBacklogged stands for all runs that were left out then
	Result RunResult
	// EventDone, EventFailed, EventDead, EventCancelled or EventExpired; zero: the job has not ended
	End EventKind
}

// PutSchedule creates or replaces a schedule. The position of an existing schedule is kept unless its times change;
// LastAt, LastSeq and Runs are ignored, and so is Paused if the configuration file replaces a schedule that it has set
// itself. Reply: Answered with the schedule in Schedules, or Failed with ErrDuplicate (Create, and it exists),
// ErrConflict (Revision is not zero and differs from the schedule's), ErrNoSchedule (Revision is not zero and there is
// no schedule), ErrFull (there are MaxSchedules), ErrInvalid (the text says why), or ErrConfigured.
type PutSchedule struct {
	changing
	Tag      uint64
	Schedule Schedule
	Create   bool
	Revision uint64
}

// PauseSchedule pauses or resumes a schedule, including schedules of the configuration file. Reply: Accepted, or
// Failed with ErrNoSchedule.
type PauseSchedule struct {
	changing
	Tag    uint64
	Name   string
	Paused bool
}

// RemoveSchedule removes a schedule; jobs that it submitted stay. FromConfig must equal the schedule's. Reply:
// Accepted, or Failed with ErrNoSchedule or ErrConfigured.
type RemoveSchedule struct {
	changing
	Tag        uint64
	Name       string
	FromConfig bool
}

// RunSchedule submits a job of a schedule now, even if the schedule is paused; its position does not change. With UpTo,
// RunSchedule submits instead the jobs of all runs that are due up to UpTo, at most Limit (zero: 1,000), as if UpTo
// were now, and moves the position. Reply: Submitted with Seq (of the last job, zero with UpTo when no run was due)
// and, with UpTo, the number of jobs in N; or Failed with ErrNoSchedule or as a submission. With UpTo, a refused run is
// not an error: see Runs.
type RunSchedule struct {
	changing
	Tag   uint64
	Name  string
	UpTo  Instant
	Limit int
}

// ListSchedules lists the schedules whose names start with Prefix and follow After, in byte order; at most Limit, zero
// for all. Reply: Answered with Schedules. Their jobs belong to the core and must not be changed.
type ListSchedules struct {
	reading
	Tag           uint64
	Prefix, After string
	Limit         int
}

// RunResult says what happened to a run of a schedule. On disk; never renumbered.
type RunResult uint8

// RunSubmitted: Seq is the job. RunRefused: Err is the reason; reported once, also if the run is retried. RunMissed:
// the runs from DueAt on were missed and are left out. RunBacklogged: the runs from DueAt until now are left out
// because the schedule's Backlog is reached.
const (
	RunSubmitted RunResult = iota
	RunRefused
	RunMissed
	RunBacklogged
)

// ScheduleRun reports a run of a schedule.
type ScheduleRun struct {
	Name, Queue, Type string
	Cron              string
	Every             time.Duration
	DueAt             Instant
	Result            RunResult
	Seq               uint64
	Err               error
}

// The TagOf methods.

func (o *PutSchedule) TagOf() uint64    { return o.Tag }
func (o *PauseSchedule) TagOf() uint64  { return o.Tag }
func (o *RemoveSchedule) TagOf() uint64 { return o.Tag }
func (o *RunSchedule) TagOf() uint64    { return o.Tag }
func (o *ListSchedules) TagOf() uint64  { return o.Tag }
