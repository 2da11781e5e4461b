package core

import (
	"slices"
	"time"
)

// IsValid reports whether Max, Min, MaxBytes and LeaseFor are valid.
func (o *Lease) IsValid() bool {
	return o.Max >= 0 && o.Max <= MaxLeases && o.Min >= 0 && o.Min <= max(o.Max, 1) && o.MaxBytes >= 0 &&
		o.LeaseFor >= 0
}

// IsValid reports whether a submission is valid before a job gets the number next. An ephemeral job needs a waiting
// client and cannot be in a batch, because batches are stored. All dependencies must have existed.
func (o *Submit) IsValid(next uint64) bool {
	j := o.Job
	if len(j.Queue) > MaxQueueName || len(j.ID) > MaxIDBytes || len(j.After) > MaxAfter ||
		len(j.Trace) > MaxTraceBytes ||
		!validTags(j.Tags) || !validPriority(j.Priority) ||
		j.SeqOrder && j.ScheduledOrder || j.Tallies > AllTallies || j.Own > JobFields ||
		j.Failure != nil && j.PriorFails == 0 ||
		j.Cost > MaxCost || j.OnBroken > BrokenDrops || j.OnBroken != BrokenWaits && j.Ephemeral {
		return false
	}
	if j.Unique == UniqueReplace && (j.Ephemeral || j.UniqueKey == "") ||
		o.DebounceMs > 0 && j.Unique != UniqueReplace {
		return false
	}
	if o.Window != 0 && (j.Ephemeral || j.Unique == UniqueNone || j.UniqueKey == "") {
		return false
	}
	if j.Ephemeral && (o.Watch == WatchNone || o.Watch == WatchOutcome || j.Batch != 0) {
		return false
	}
	for _, seq := range j.After {
		if seq >= next {
			return false
		}
	}
	return j.Parent < next
}

// IsValid reports whether the values are valid for any job.
func (s *JobChange) IsValid() bool {
	return (s.Type == nil || len(*s.Type) <= MaxQueueName) &&
		(s.Tags == nil || validTags(*s.Tags)) &&
		(s.Body == nil || len(s.Body.Bytes) <= MaxBodyBytes && s.Body.Format <= Args) &&
		(s.Priority == nil || validPriority(*s.Priority)) &&
		(s.LeaseFor == nil || *s.LeaseFor >= 0) &&
		(s.Backoff == nil || *s.Backoff <= BackoffFaktory) &&
		(s.Exhausted == nil || *s.Exhausted <= ExhaustedBury)
}

// validPriority reports whether a job may have this priority.
func validPriority(p int64) bool { return p >= MinPriority && p <= MaxPriority }

// validTags reports whether a job may have these tags.
func validTags(tags []string) bool {
	return len(tags) <= MaxTags &&
		!slices.ContainsFunc(tags, func(t string) bool { return t == "" || len(t) > MaxTagBytes })
}

// Limits of the core; front-ends have stricter limits of their own.
const (
	MaxQueueName = 512     // bytes
	MaxIDBytes   = 1024    // bytes of a client's own job id
	MaxBodyBytes = 1 << 30 // bytes of a job's body
	MaxAfter     = 10_000  // predecessors of one job
	MaxAtomic    = 1_010   // operations of one Atomic: a thousand of a client, and some of the front-end
	MaxSchedules = 100_000 // schedules
	MaxMissed    = 1_000   // Schedule.MaxMissed
	MaxTags      = 100     // tags of one job
	MaxTagBytes  = 255     // bytes of a tag
	MaxWatchers  = 1_000   // clients that wait for one job: all of them are told at once

	// The range of Job.Priority: 33 bits with their sign.
	MinPriority = -1 << 32
	MaxPriority = 1<<32 - 1

	MaxTraceBytes    = 1 << 10 // of Job.Trace
	MaxScheduleBytes = 1 << 20 // of the job of a schedule

	// DeadFor is how long the dead set keeps a Faktory job.
	DeadFor = 180 * 24 * time.Hour
)
