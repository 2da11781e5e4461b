package core

import "time"

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

	// The range of Job.Priority: 33 bits with their sign.
	MinPriority = -1 << 32
	MaxPriority = 1<<32 - 1

	MaxTraceBytes    = 1 << 10 // of Job.Trace
	MaxScheduleBytes = 1 << 20 // of the job of a schedule

	// DeadFor is how long the dead set keeps a Faktory job.
	DeadFor = 180 * 24 * time.Hour
)
