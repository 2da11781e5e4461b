package schedule

import (
	"errors"
	"slices"
	"strconv"
	"time"

	"broker/core"
)

// maxScheduleRuns is the maximum number of jobs that one RunSchedule submits, and the default.
const maxScheduleRuns = 1000

// retryRun is the delay before a refused run is tried again.
const retryRun = time.Second

// Due runs a schedule whose deadline has come. If more runs are due, the next deadline has already passed, so Tick
// limits the work.
func (x *Schedules) Due(slot uint32) {
	s := x.slots.At(slot)
	s.deadline = 0
	if _, again := x.runDue(s, x.table.Now); again {
		x.arm(s, x.table.Now.Add(retryRun))
	} else {
		x.arm(s, s.next)
	}
}

// Skip clears the deadline of a schedule that became due while no change is allowed.
func (x *Schedules) Skip(slot uint32) { x.slots.At(slot).deadline = 0 }

// runDue makes the first run that is due up to an instant. It reports whether a job was submitted, and whether the run
// was refused and has to be tried again.
func (x *Schedules) runDue(s *schedule, upTo core.Instant) (submitted, again bool) {
	due := s.firstRun(upTo)
	if due != s.next {
		x.reportRun(s, core.ScheduleRun{DueAt: s.next, Result: core.RunMissed})
	}
	if due == 0 { // all of them are too old
		x.advance(s, upTo)
		x.storePosition(s)
		return false, false
	}
	if s.backlogged(x) {
		x.reportRun(s, core.ScheduleRun{DueAt: due, Result: core.RunBacklogged})
		x.advance(s, upTo)
		x.storePosition(s)
		return false, false
	}
	seq, err := x.spawn(s)
	switch {
	case err == nil:
		s.LastAt, s.LastSeq = due, seq
		x.reportRun(s, core.ScheduleRun{DueAt: due, Seq: s.LastSeq})
	case worthRetry(err):
		x.reportRefusal(s, due, err)
		if s.next != due {
			s.next = due
			x.storePosition(s)
		}
		return false, true
	default:
		x.reportRefusal(s, due, err)
	}
	x.advance(s, due)
	x.storePosition(s)
	return err == nil, false
}

// firstRun returns the first run to make among the runs due up to an instant; zero if all of them are too old. At least
// one run must be due.
func (s *schedule) firstRun(upTo core.Instant) core.Instant {
	switch s.Missed {
	case core.MissedSkip:
		due := s.next
		if oldest := upTo.Add(-core.MissedGrace); due < oldest {
			due = s.after(oldest - 1)
		}
		if due == 0 || due > upTo {
			return 0
		}
		return s.lastRun(due, upTo)
	case core.MissedOne:
		return s.lastRun(s.next, upTo)
	case core.MissedAll:
	}
	if s.MaxMissed == 0 || s.countedTo == upTo {
		return s.next
	}
	s.countedTo = upTo
	due := s.next
	for range s.MaxMissed {
		if due = s.after(due); due == 0 || due >= upTo {
			return s.next
		}
	}
	due = upTo
	for range s.MaxMissed {
		due = s.lastRun(s.next, due-1)
	}
	return due
}

// lastRun returns the last run up to an instant. from is a run at or before it.
func (s *schedule) lastRun(from, upTo core.Instant) core.Instant {
	for from < upTo { // the last run is from or later, and none is between upTo here and the original one
		middle := from + (upTo-from)/2
		if next := s.after(middle); next != 0 && next <= upTo {
			from = next
		} else {
			upTo = middle
		}
	}
	return from
}

// worthRetry reports whether the reason of a refusal is not the job itself and may end soon.
func worthRetry(err error) bool {
	return errors.Is(err, core.ErrFull) || errors.Is(err, core.ErrDiskFull) || errors.Is(err, core.ErrDraining)
}

// backlogged reports whether as many jobs of a schedule wait as its backlog allows.
func (s *schedule) backlogged(x *Schedules) bool {
	if s.Backlog == 0 {
		return false
	}
	waiting := 0
	s.live = slices.DeleteFunc(s.live, func(seq uint64) bool {
		h := x.table.Handle(seq)
		if h == 0 {
			return true
		}
		switch state := x.table.At(h).State; {
		case state == core.Dead:
			x.countIfRevived(s, seq)
			return true
		case !state.Unfinished():
			return true
		case state != core.Leased:
			waiting++
		}
		return false
	})
	return waiting >= s.Backlog
}

// countIfRevived remembers the schedule of a dead job, which leaves the list that each run walks, in case the job
// leaves the dead set.
func (x *Schedules) countIfRevived(s *schedule, seq uint64) {
	if x.dead == nil {
		x.dead = map[uint64]string{}
	}
	x.dead[seq] = s.Name
}

// Revived lets the Backlog of its schedule count a job that leaves the dead set.
func (x *Schedules) Revived(seq uint64) {
	x.runRevived(seq)
	name, noted := x.dead[seq]
	if !noted {
		return
	}
	delete(x.dead, seq)
	if s := x.byName[name]; s != nil && s.Backlog > 0 && seq >= s.countFrom {
		s.live = append(s.live, seq)
	}
}

// Forget removes a job that is gone.
func (x *Schedules) Forget(seq uint64) { delete(x.dead, seq) }

// spawn submits a job of a schedule, and returns its number.
func (x *Schedules) spawn(s *schedule) (uint64, error) {
	seq, joined, err := x.host.Submit(s.nextJob(x.table.Now))
	if err != nil {
		if errors.Is(err, core.ErrDuplicate) {
			s.Runs++ // otherwise all later runs would be refused too
		}
		return 0, err
	}
	s.Runs++
	if s.Backlog > 0 && !joined {
		s.live = append(s.live, seq)
	}
	return seq, nil
}

// nextJob returns a job from the template, with its relative times turned into instants.
func (s *schedule) nextJob(now core.Instant) *core.Job {
	j := *s.Job
	j.Schedule = s.Name
	if j.ID != "" {
		j.ID += "-" + strconv.FormatUint(s.Runs+1, 10)
	}
	if j.ReadyAt != 0 {
		j.ReadyAt += now
	}
	j.Later(func(at core.Instant) core.Instant { return at + now })
	return &j
}

// Run submits one job of a schedule, or all jobs that are due up to UpTo. It returns the number of jobs in the latter
// case, and the Seq of the last job.
func (x *Schedules) Run(op *core.RunSchedule) (jobs int, last uint64, err error) {
	s := x.byName[op.Name]
	if s == nil {
		return 0, 0, core.ErrNoSchedule
	}
	if op.UpTo != 0 {
		if jobs = x.runUpTo(s, op); jobs > 0 {
			last = s.LastSeq
		}
		return jobs, last, nil
	}
	seq, err := x.spawn(s)
	if err != nil {
		return 0, 0, err
	}
	s.LastAt, s.LastSeq = x.table.Now, seq
	x.remember(s, core.RecentRun{Seq: seq})
	return 0, seq, nil
}

// runUpTo makes the runs that are due up to UpTo and returns how many jobs it has submitted.
func (x *Schedules) runUpTo(s *schedule, op *core.RunSchedule) (jobs int) {
	limit := op.Limit
	if limit <= 0 {
		limit = maxScheduleRuns
	}
	for range min(limit, maxScheduleRuns) {
		if s.next == 0 || s.next > op.UpTo || s.unusable != nil {
			break
		}
		submitted, again := x.runDue(s, op.UpTo)
		if again {
			break
		}
		if submitted {
			jobs++
		}
	}
	x.arm(s, s.next)
	return jobs
}

// reportRefusal reports a run that was refused, once.
func (x *Schedules) reportRefusal(s *schedule, due core.Instant, err error) {
	if s.reported != due {
		s.reported = due
		x.reportRun(s, core.ScheduleRun{DueAt: due, Result: core.RunRefused, Err: err})
	}
}

func (x *Schedules) reportRun(s *schedule, r core.ScheduleRun) {
	r.Name, r.Cron, r.Every, r.Queue, r.Type = s.Name, s.Cron, s.Every, s.Job.Queue, s.Job.Type
	x.reports = append(x.reports, r)
	if r.Result != core.RunRefused || s.unusable == nil {
		x.remember(s, core.RecentRun{DueAt: r.DueAt, Seq: r.Seq, Result: r.Result})
	}
}

// Reports takes the reports of runs since the last call.
func (x *Schedules) Reports() []core.ScheduleRun {
	reports := x.reports
	x.reports = nil
	return reports
}
