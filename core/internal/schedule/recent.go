package schedule

import (
	"slices"

	"broker/core"
)

// runMeta is a run as stored. Spans are in microseconds: positions are written with each run.
type runMeta struct {
	Due     core.Instant   `json:"d,omitempty"`
	At      core.Instant   `json:"a"`
	Seq     uint64         `json:"q,omitempty"`
	Result  core.RunResult `json:"r,omitempty"`
	End     core.EventKind `json:"e,omitempty"`
	Started core.Instant   `json:"s,omitempty"` // since At, plus one
	Ended   core.Instant   `json:"t,omitempty"` // since At
}

// remember adds a run to the recent runs of its schedule. A run that was refused and tried again is one run.
func (x *Schedules) remember(s *schedule, r core.RecentRun) {
	r.At = x.table.Now
	if n := len(s.Recent); n > 0 && r.DueAt != 0 && s.Recent[n-1].DueAt == r.DueAt &&
		s.Recent[n-1].Result == core.RunRefused {
		s.Recent = s.Recent[:n-1]
	}
	if len(s.Recent) == core.MaxRecentRuns {
		x.forgetRun(s, &s.Recent[0])
		s.Recent = slices.Delete(s.Recent, 0, 1)
	}
	s.Recent = append(s.Recent, r)
	x.awaitEnd(s, r.Seq)
	x.storePosition(s)
}

// awaitEnd lets RunEnded find the run of a job, which several schedules may have joined.
func (x *Schedules) awaitEnd(s *schedule, seq uint64) {
	if seq == 0 {
		return
	}
	if x.running == nil {
		x.running = map[uint64][]*schedule{}
	}
	x.running[seq] = append(x.running[seq], s)
}

// forgetRun undoes awaitEnd.
func (x *Schedules) forgetRun(s *schedule, r *core.RecentRun) {
	of := x.running[r.Seq]
	switch i := slices.Index(of, s); {
	case i < 0:
	case len(of) == 1:
		delete(x.running, r.Seq)
	default:
		x.running[r.Seq] = slices.Delete(of, i, i+1)
	}
}

// RunEnded records how the job of a run has ended. Dead counts as an end, although the job may come back.
func (x *Schedules) RunEnded(seq uint64, end core.EventKind, startedAt core.Instant) {
	if len(x.running) == 0 {
		return
	}
	removed := end == core.EventCancelled || end == core.EventExpired
	x.eachRun(seq, func(r *core.RecentRun) {
		if r.End != core.EventDead || !removed { // otherwise the failure is more interesting
			r.End, r.StartedAt, r.EndedAt = end, startedAt, x.table.Now
		}
	})
	if end != core.EventDead {
		delete(x.running, seq)
	}
}

// eachRun changes the runs of a job. Runs of several schedules may have joined it by its unique key.
func (x *Schedules) eachRun(seq uint64, change func(r *core.RecentRun)) {
	for _, s := range x.running[seq] {
		for i := range s.Recent {
			if r := &s.Recent[i]; r.Seq == seq {
				change(r)
				x.storePosition(s)
			}
		}
	}
}

// runRevived records that the job of a run is no longer dead.
func (x *Schedules) runRevived(seq uint64) {
	x.eachRun(seq, func(r *core.RecentRun) { r.End, r.StartedAt, r.EndedAt = 0, 0, 0 })
}

// storedRuns returns the runs of a schedule in the stored form.
func (s *schedule) storedRuns() []runMeta {
	runs := make([]runMeta, len(s.Recent))
	for i, r := range s.Recent {
		runs[i] = runMeta{Due: r.DueAt, At: r.At, Seq: r.Seq, Result: r.Result, End: r.End}
		if r.StartedAt != 0 {
			runs[i].Started = r.StartedAt - r.At + 1
		}
		if r.EndedAt != 0 {
			runs[i].Ended = r.EndedAt - r.At
		}
	}
	return runs
}

// restoreRuns restores runs from the stored form.
func (x *Schedules) restoreRuns(s *schedule, runs []runMeta) {
	for i := range s.Recent {
		x.forgetRun(s, &s.Recent[i])
	}
	s.Recent = nil
	for _, r := range runs[max(0, len(runs)-core.MaxRecentRuns):] {
		run := core.RecentRun{DueAt: r.Due, At: r.At, Seq: r.Seq, Result: r.Result, End: r.End}
		if r.Started != 0 {
			run.StartedAt = r.At + r.Started - 1
		}
		if r.End != 0 {
			run.EndedAt = r.At + r.Ended
		}
		s.Recent = append(s.Recent, run)
		if r.End == 0 || r.End == core.EventDead {
			x.awaitEnd(s, r.Seq)
		}
	}
}
