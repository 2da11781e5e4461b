package sim

import (
	"fmt"
	"slices"
	"time"

	"broker/core"
)

// plan is the model of a schedule. All schedules here catch up on every missed run.
type plan struct {
	made  core.Commit  // the schedule is acknowledged once this is on disk
	gone  core.Commit  // its removal is acknowledged once this is on disk; zero: it was not removed
	next  core.Instant // the first run after the runs on disk
	runs  []planRun    // runs from next on
	loose bool         // the clock was set far back: the next run is unknown
	anew  bool         // the first entry of runs may be any run and is not on disk; the position on disk is unknown
}

// planRun is a run of a schedule. Later runs up to the instant through were left out.
type planRun struct {
	through core.Instant
	made    core.Commit
}

const planEvery = 20 * time.Second

func planName(i int) string { return "plan " + string(rune('a'+i)) }

// planAfter returns the first run after an instant.
func planAfter(at core.Instant) core.Instant {
	every := core.Instant(planEvery / time.Microsecond)
	return (at/every + 1) * every
}

// due returns when the next run is due.
func (p *plan) due() core.Instant {
	if n := len(p.runs); n > 0 {
		return planAfter(p.runs[n-1].through)
	}
	return p.next
}

// schedule puts, pauses, removes or runs one of two schedules.
func (w *world) schedule() error {
	name, tag := planName(w.rng.IntN(2)), w.newTag()
	var op core.Op
	switch w.rng.IntN(6) {
	case 0:
		op = &core.RemoveSchedule{Tag: tag, Name: name}
	case 1:
		op = &core.PauseSchedule{Tag: tag, Name: name, Paused: w.rng.IntN(3) == 0}
	case 2:
		op = &core.RunSchedule{Tag: tag, Name: name}
	default:
		op = &core.PutSchedule{Tag: tag, Schedule: core.Schedule{
			Name: name, Every: planEvery, Missed: core.MissedAll, Backlog: 3,
			Job: &core.Job{
				Queue: queueName(w.rng.IntN(4)), Origin: core.Faktory, Body: []byte("planned"),
				LeaseFor: 5 * time.Second,
			},
		}}
	}
	return w.do(w.anyClient(), op, tag, func(r core.Reply) {
		w.note("%T %s: kind %d, %v, commit %d", op, name, r.Kind, r.Err, r.Commit)
		if r.Kind == core.Failed {
			return
		}
		p := w.model.plans[name]
		switch op.(type) {
		case *core.PutSchedule:
			if p == nil || p.gone != 0 {
				w.model.plans[name] = &plan{made: w.commitOf(r, true), next: r.Schedules[0].NextAt}
			}
		case *core.RemoveSchedule:
			p.gone = w.commitOf(r, true)
		case *core.RunSchedule:
			w.planned(r.Seq)
		}
	})
}

// planned adds a job that a schedule has submitted to the model.
func (w *world) planned(seq uint64) {
	if seq == 0 || w.model.jobs[seq] != nil {
		return
	}
	made := w.commitOf(core.Reply{Commit: w.openCommit()}, true)
	p := &promise{seq: seq, made: made, leaseFor: 5 * time.Second, unknown: true, finishes: true}
	write(&p.bodies, "planned", made)
	if i := w.look(seq); i != nil {
		write(&p.queues, i.Queue, made)
		p.limited = w.model.inForce(i.Queue, core.PolicyExpiresIn) != nil // set at its run, which may be a while ago
	}
	w.model.add(p)
}

// ScheduleRan implements core.Listener: every run must be the one after the last.
func (w *world) ScheduleRan(r core.ScheduleRun) {
	w.note("schedule %s runs for %d: %d, job %d, %v", r.Name, r.DueAt, r.Result, r.Seq, r.Err)
	p := w.model.plans[r.Name]
	switch {
	case p == nil || p.gone != 0 || r.Result == core.RunMissed:
		w.fail(fmt.Errorf("schedule %s ran at %d with %d, and is not known", r.Name, r.DueAt, r.Result))
		return
	case r.Result == core.RunRefused:
		return // it is tried again
	case p.loose:
		p.next, p.runs, p.loose, p.anew = r.DueAt, nil, false, true
	case r.DueAt != p.due():
		w.fail(fmt.Errorf("schedule %s ran for %d, was due at %d", r.Name, r.DueAt, p.due()))
	}
	run := planRun{through: r.DueAt, made: w.commitOf(core.Reply{Commit: w.openCommit()}, true)}
	if r.Result == core.RunBacklogged {
		run.through = w.clk.Now()
	}
	p.runs = append(p.runs, run)
	w.planned(r.Seq)
}

// farBack reports whether the clock was once so far ahead that schedules may be reset.
func (w *world) farBack() bool { return w.clk.most.Sub(w.clk.Now()) > 55*time.Minute }

// loosenPlans adapts the plans after the clock was set.
func (w *world) loosenPlans() {
	for _, p := range w.model.plans {
		p.loose = p.loose || w.farBack()
	}
}

func (w *world) fail(err error) {
	if w.violation == nil {
		w.violation = err
	}
}

// plansFlushed records which runs are on disk.
func (m *model) plansFlushed(committed core.Commit) {
	for name, p := range m.plans {
		if p.made == soon {
			p.made = committed
		}
		if p.gone == soon || p.gone != 0 && p.gone <= committed {
			delete(m.plans, name)
			continue
		}
		for len(p.runs) > 0 && (p.runs[0].made == soon || p.runs[0].made <= committed) {
			p.next, p.runs, p.anew = planAfter(p.runs[0].through), p.runs[1:], false
		}
	}
}

// plansAfterCrash compares the positions of schedules with the runs in the model; committed is the newest announced
// commit. No run on disk may be repeated, and no other run may be left out.
func (w *world) plansAfterCrash(committed core.Commit) error {
	known := map[string]*plan{}
	for _, s := range w.ask(&core.ListSchedules{}).Schedules {
		if s.Paused {
			w.ask(&core.PauseSchedule{Name: s.Name})
			s = w.ask(&core.ListSchedules{Prefix: s.Name}).Schedules[0]
		}
		known[s.Name] = &plan{next: s.NextAt, loose: w.farBack()}
		if err := w.checkRecentRuns(&s); err != nil {
			return err
		}
		p := w.model.plans[s.Name]
		switch {
		case p == nil && w.mode == 0:
			return fmt.Errorf("schedule %s came back though its removal was acknowledged", s.Name)
		case p == nil || p.made > committed || p.loose || p.anew || w.farBack():
		case s.NextAt != p.next &&
			!slices.ContainsFunc(p.runs, func(r planRun) bool { return planAfter(r.through) == s.NextAt }):
			return fmt.Errorf("schedule %s is due at %d, on disk at %d, runs %v", s.Name, s.NextAt, p.next, p.runs)
		}
	}
	for name, p := range w.model.plans {
		if known[name] == nil && p.made <= committed && p.gone == 0 {
			return fmt.Errorf("schedule %s was acknowledged by commit %d of %d and is lost", name, p.made, committed)
		}
	}
	w.model.plans = known
	return nil
}

// checkRecentRuns compares the last runs of a schedule after a crash with their jobs: both were stored by the same
// commits.
func (w *world) checkRecentRuns(s *core.Schedule) error {
	if len(s.Recent) > core.MaxRecentRuns {
		return fmt.Errorf("schedule %s remembers %d runs", s.Name, len(s.Recent))
	}
	for _, r := range s.Recent {
		if r.Seq == 0 {
			continue
		}
		state := core.Gone
		if i := w.look(r.Seq); i != nil {
			state = i.State
		}
		waits := state.Unfinished() && state != core.Dead
		switch {
		case r.End == 0 && !waits, r.End == core.EventDead && waits,
			r.End != 0 && r.End != core.EventDead && state.Unfinished():
			return fmt.Errorf("schedule %s: the run for %d ended with %d, and its job %d is %v", s.Name, r.DueAt, r.End,
				r.Seq, state)
		}
	}
	return nil
}
