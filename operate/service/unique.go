package service

import (
	"time"

	"broker/core"
)

// uniqueWindow is the value of unique_until for a key that outlives its job.
const uniqueWindow = "window"

// onDuplicateReplace is the value of on_duplicate for a submission that changes the existing job with its key.
const onDuplicateReplace = "replace"

// maxDebounce is the maximum of debounce_max_s.
const maxDebounce = 45 * 24 * time.Hour

// debounce is the longest time between the first submission and the due time of the job, in milliseconds; zero: no
// limit.
func debounce(sub *Submission) (ms uint32, err error) {
	switch {
	case sub.DebounceMaxS == 0:
		return 0, nil
	case sub.OnDuplicate != onDuplicateReplace || sub.DelayS == 0 && sub.RunAt.IsZero():
		return 0, invalid("debounce_max_s", "debounce_max_s needs on_duplicate replace, and delay_s or run_at")
	}
	longest, err := span("debounce_max_s", sub.DebounceMaxS)
	if err == nil && longest > maxDebounce {
		err = invalid("debounce_max_s", "debounce_max_s must not be more than %.0f", maxDebounce.Seconds())
	}
	return uint32(max(longest.Milliseconds(), 1)), err
}

// onlySubmitted refuses members that are only allowed in direct submissions, for example in the job of a schedule.
func onlySubmitted(sub *Submission) error {
	if sub.OnDuplicate == onDuplicateReplace || sub.DebounceMaxS != 0 {
		return invalid("on_duplicate", "replace and debounce_max_s are for submissions")
	}
	return nil
}

func setUnique(job *core.Job, sub *Submission, now core.Instant) error {
	if sub.UniqueKey == "" {
		if sub.OnDuplicate != "" || sub.UniqueForS != 0 || sub.UniqueUntil != "" {
			return invalid("unique_key", "on_duplicate, unique_for_s and unique_until need unique_key")
		}
		return nil
	}
	job.UniqueKey, job.Unique = sub.UniqueKey, core.UniqueRefuse
	switch sub.OnDuplicate {
	case "", "refuse":
	case "coalesce":
		job.Unique = core.UniqueCoalesce
	case onDuplicateReplace:
		if job.Unique = core.UniqueReplace; sub.Ephemeral {
			return invalid("on_duplicate", "replace needs a job that is stored")
		}
	default:
		return invalid("on_duplicate", "on_duplicate must be refuse, coalesce or replace")
	}
	switch sub.UniqueUntil {
	case "", "end":
	case "start":
		job.UniqueStart = true
	case uniqueWindow:
		if sub.UniqueForS == 0 || sub.Ephemeral {
			return invalid("unique_until", "unique_until window needs unique_for_s, and a job that is stored")
		}
	default:
		return invalid("unique_until", "unique_until must be end, start or window")
	}
	if sub.UniqueForS != 0 {
		d, err := span("unique_for_s", sub.UniqueForS)
		if err != nil {
			return err
		}
		job.UniqueUntil = now.Add(d)
	}
	return nil
}

// unwatchWindows changes submissions with a window so that they do not watch their job, because the core refuses to let
// a watcher join a job that has ended. It reports whether it has changed any.
func unwatchWindows(ops []core.Op) (changed bool) {
	for i := range ops {
		if op := ops[i].(*core.Submit); op.Window != 0 && op.Job.Unique == core.UniqueCoalesce &&
			op.Watch != core.WatchNone {
			op.Watch, changed = core.WatchNone, true
		}
	}
	return changed
}

// watched returns the number of outcomes that the client gets until deadline. It starts to wait for the jobs that its
// submissions do not watch; those that have ended and are not kept have no outcome.
func (c *session) watched(ops []core.Op, admitted []core.Reply, deadline core.Instant) int {
	for i := range ops {
		if op := ops[i].(*core.Submit); op.Watch == core.WatchNone {
			c.Do(&core.Await{Tag: uint64(i), Ref: core.Ref{Seq: admitted[i].Seq}, Deadline: deadline})
		}
	}
	return len(ops) - c.Drop(func(r *core.Reply) bool { return r.Kind == core.Failed })
}
