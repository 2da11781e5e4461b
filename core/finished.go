package core

import "time"

// Retention says how long the finished jobs of a queue stay readable, beyond what a job asks for itself: for a time, and at
// most so many of them; zero is no bound. The zero Retention keeps none.
type Retention struct {
	For   time.Duration
	Count int
}

// KeepDone sets the Retention of a queue, or of all queues that have none of their own if Queue is empty; the zero Retention
// removes it. Jobs that end as done or failed later stay as Done, with their outcome, and can be inspected, found and
// cancelled. A submission with the id of such a job takes its place. Jobs beyond Count go at once, the oldest first; For holds
// for jobs that finish from now on. It is not stored: callers set it at each start. Reply: Accepted, or Failed with ErrInvalid.
type KeepDone struct {
	changing
	Tag       uint64
	Queue     string
	Retention Retention
}

// ListFinished lists the jobs that have ended last, the newest first: those of a queue, or the last end of one job, if that is
// set. MaxFinished of them are remembered while the process runs. Reply: Answered with Finished.
type ListFinished struct {
	reading
	Tag    uint64
	Queue  string
	Ref    Ref
	Offset int
	Limit  int // zero: 100
}

// MaxFinished is how many jobs are remembered that have ended.
const MaxFinished = 1000

// FinishedJob is a job that has ended.
type FinishedJob struct {
	Seq        uint64
	ID         string // empty if only the store had it
	Queue      string
	Type       string
	Origin     Protocol
	Ephemeral  bool
	Kind       EventKind // EventDone, EventFailed, EventCancelled or EventExpired
	Detail     string    // as Event.Detail, cut to 255 bytes
	CreatedAt  Instant
	LeasedAt   Instant // start of the last lease; zero: it was not leased
	FinishedAt Instant
	Attempts   uint32
	Fails      uint32
	Protocol   Protocol // of the worker, or of the client that has removed it
	Worker     string
}

// TagOf implements Op.
func (o *KeepDone) TagOf() uint64 { return o.Tag }

// TagOf implements Op.
func (o *ListFinished) TagOf() uint64 { return o.Tag }
