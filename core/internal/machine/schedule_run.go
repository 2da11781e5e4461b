package machine

import (
	"errors"
	"slices"
	"strconv"
	"time"

	"broker/core"
)

// maxScheduleRuns is the default for how many jobs one RunSchedule submits at most.
const maxScheduleRuns = 1000

// retryRun is when a run that was refused is tried again.
const retryRun = time.Second

// scheduleDue runs a schedule whose deadline has come. If more runs are due, the next deadline has passed already, so that
// Tick bounds the work.
func (m *Machine) scheduleDue(slot uint32) {
	s := m.schedules.slots[slot]
	s.deadline = 0
	if m.stopped != nil {
		return // nothing that happens now is stored
	}
	if _, again := m.runDue(s, m.table.Now); again {
		m.arm(s, m.table.Now.Add(retryRun))
	} else {
		m.arm(s, s.next)
	}
}

// runDue makes the first run that is due up to an instant. It reports whether a job was submitted, and whether the run was
// refused and has to be tried again.
func (m *Machine) runDue(s *schedule, upTo core.Instant) (submitted, again bool) {
	due := s.firstRun(upTo)
	if due != s.next {
		m.reportRun(s, core.ScheduleRun{DueAt: s.next, Result: core.RunMissed})
	}
	if due == 0 { // all of them are too old
		m.advance(s, upTo)
		m.storePosition(s)
		return false, false
	}
	if s.backlogged(m) {
		m.reportRun(s, core.ScheduleRun{DueAt: due, Result: core.RunBacklogged})
		m.advance(s, upTo)
		m.storePosition(s)
		return false, false
	}
	h, err := m.spawn(s)
	switch {
	case err == nil:
		s.LastAt, s.LastSeq = due, m.table.At(h).Seq
		m.reportRun(s, core.ScheduleRun{DueAt: due, Seq: s.LastSeq})
	case worthRetry(err):
		m.reportRefusal(s, due, err)
		if s.next != due {
			s.next = due
			m.storePosition(s)
		}
		return false, true
	default:
		m.reportRefusal(s, due, err)
	}
	m.advance(s, due)
	m.storePosition(s)
	return err == nil, false
}

// firstRun is the run to make first of those that are due up to an instant; zero if all of them are too old. At least one
// is due.
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

// lastRun is the last run up to an instant. from is a run that is not after it.
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

// worthRetry reports a refusal that is not about the job itself and may be over soon.
func worthRetry(err error) bool {
	return errors.Is(err, core.ErrFull) || errors.Is(err, core.ErrDiskFull) || errors.Is(err, core.ErrDraining)
}

// backlogged reports whether as many jobs of a schedule wait as its backlog allows.
func (s *schedule) backlogged(m *Machine) bool {
	if s.Backlog == 0 {
		return false
	}
	waiting := 0
	s.live = slices.DeleteFunc(s.live, func(seq uint64) bool {
		h := m.table.Handle(seq)
		if h == 0 {
			return true
		}
		switch state := m.table.At(h).State; {
		case state == core.Dead:
			m.countIfRevived(s, seq)
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

// countIfRevived keeps a dead job out of the list that each run walks, and notes its schedule in case the job leaves the dead set.
func (m *Machine) countIfRevived(s *schedule, seq uint64) {
	if m.schedules.dead == nil {
		m.schedules.dead = map[uint64]string{}
	}
	m.schedules.dead[seq] = s.Name
}

// revived lets the Backlog of its schedule count a job that leaves the dead set.
func (m *Machine) revived(seq uint64) {
	name, noted := m.schedules.dead[seq]
	if !noted {
		return
	}
	delete(m.schedules.dead, seq)
	if s := m.schedules.byName[name]; s != nil && s.Backlog > 0 && seq >= s.countFrom {
		s.live = append(s.live, seq)
	}
}

// spawn submits a job of a schedule.
func (m *Machine) spawn(s *schedule) (uint32, error) {
	j := s.nextJob(m.table.Now)
	a := m.admission(&core.Submit{Job: j})
	if a.err != nil {
		if errors.Is(a.err, core.ErrDuplicate) {
			s.Runs++ // else all later runs would be refused too
		}
		return 0, a.err
	}
	s.Runs++
	if a.joins != 0 {
		m.makeDurable(a.joins, m.table.At(a.joins))
		return a.joins, nil
	}
	h := m.admitSubmission(a, j, core.Internal)
	m.admitted(h, m.table.At(h))
	if s.Backlog > 0 {
		s.live = append(s.live, j.Seq)
	}
	m.place(h, m.table.At(h))
	return h, nil
}

// nextJob is the template with its spans turned into instants.
func (s *schedule) nextJob(now core.Instant) *core.Job {
	j := *s.Job
	j.Schedule = s.Name
	if j.ID != "" {
		j.ID += "-" + strconv.FormatUint(s.Runs+1, 10)
	}
	for _, at := range []*core.Instant{&j.ReadyAt, &j.ExpiresAt, &j.StartBefore, &j.UniqueUntil, &j.RetainUntil} {
		if *at != 0 {
			*at += now
		}
	}
	return &j
}

// runSchedule is RunSchedule.
func (m *Machine) runSchedule(c *client, op *core.RunSchedule) {
	s := m.schedules.byName[op.Name]
	if s == nil {
		m.refusedAt(c, op.Tag, core.ErrNoSchedule, m.table.MetaCommit())
		return
	}
	r := core.Reply{Kind: core.Submitted, Tag: op.Tag}
	if op.UpTo != 0 {
		r.N = m.runUpTo(s, op)
		if r.N > 0 {
			r.Seq = s.LastSeq
		}
	} else {
		h, err := m.spawn(s)
		if err != nil {
			m.refusedAt(c, op.Tag, err, m.newest())
			return
		}
		s.LastAt, s.LastSeq = m.table.Now, m.table.At(h).Seq
		r.Seq = s.LastSeq
		m.storePosition(s)
	}
	r.Commit = m.table.MetaCommit()
	m.reply(c, r)
}

// runUpTo makes the runs that are due up to an instant and returns how many jobs it has submitted.
func (m *Machine) runUpTo(s *schedule, op *core.RunSchedule) (jobs int) {
	limit := op.Limit
	if limit <= 0 {
		limit = maxScheduleRuns
	}
	for range min(limit, maxScheduleRuns) {
		if s.next == 0 || s.next > op.UpTo || s.unusable != nil {
			break
		}
		submitted, again := m.runDue(s, op.UpTo)
		if again {
			break
		}
		if submitted {
			jobs++
		}
	}
	m.arm(s, s.next)
	return jobs
}

// reportRefusal reports a run that was refused, once.
func (m *Machine) reportRefusal(s *schedule, due core.Instant, err error) {
	if s.reported != due {
		s.reported = due
		m.reportRun(s, core.ScheduleRun{DueAt: due, Result: core.RunRefused, Err: err})
	}
}

func (m *Machine) reportRun(s *schedule, r core.ScheduleRun) {
	r.Name, r.Cron, r.Every, r.Queue, r.Type = s.Name, s.Cron, s.Every, s.Job.Queue, s.Job.Type
	m.schedules.reports = append(m.schedules.reports, r)
}

// ScheduleRuns takes the reports of runs since the last call.
func (m *Machine) ScheduleRuns() []core.ScheduleRun {
	reports := m.schedules.reports
	m.schedules.reports = nil
	return reports
}
