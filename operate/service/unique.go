package service

import "broker/core"

// uniqueWindow is the value of unique_until for a key that outlives its job.
const uniqueWindow = "window"

func setUnique(job *core.Job, sub *Submission, at string, now core.Instant) error {
	if sub.UniqueKey == "" {
		if sub.OnDuplicate != "" || sub.UniqueForS != 0 || sub.UniqueUntil != "" {
			return invalid(at+"unique_key", "on_duplicate, unique_for_s and unique_until need unique_key")
		}
		return nil
	}
	job.UniqueKey, job.Unique = sub.UniqueKey, core.UniqueRefuse
	switch sub.OnDuplicate {
	case "", "refuse":
	case "coalesce":
		job.Unique = core.UniqueCoalesce
	default:
		return invalid(at+"on_duplicate", "on_duplicate must be refuse or coalesce")
	}
	switch sub.UniqueUntil {
	case "", "end":
	case "start":
		job.UniqueStart = true
	case uniqueWindow:
		if sub.UniqueForS == 0 || sub.Ephemeral {
			return invalid(at+"unique_until", "unique_until window needs unique_for_s, and a job that is stored")
		}
	default:
		return invalid(at+"unique_until", "unique_until must be end, start or window")
	}
	if sub.UniqueForS != 0 {
		d, err := span(at+"unique_for_s", sub.UniqueForS)
		if err != nil {
			return err
		}
		job.UniqueUntil = now.Add(d)
	}
	return nil
}
