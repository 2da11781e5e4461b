package core

import "time"

// Retention says how long and how many finished jobs of a queue stay readable, beyond what a job asks for itself. Zero
// in one field means no limit; the zero Retention keeps no jobs.
type Retention struct {
	For   time.Duration
	Count int
}

// KeepDone sets the Retention of a queue, or, if Queue is empty, of all queues without a Retention of their own; the
// zero Retention removes it. Jobs that end as done or failed from now on stay as Done, with their outcome, and can be
// inspected, found and cancelled. A submission with the id of such a job replaces it. Jobs beyond Count are removed at
// once, the oldest first; For applies to jobs that finish from now on. It is not stored: callers set it at each start.
// Reply: Accepted, or Failed with ErrInvalid.
//
// It is not JobPolicy.RetainFor: that one belongs to a job from its submission on, so its workers and clients can rely
// on it. This one is what an operator wants to look back at, and may take away again.
type KeepDone struct {
	changing
	Tag       uint64
	Queue     string
	Retention Retention
}

// ListFinished lists the jobs that ended most recently, the newest first: of all queues, of one queue, or one job. The
// process remembers the last MaxFinished of them. Reply: Answered with Finished.
type ListFinished struct {
	reading
	Tag    uint64
	Queue  string
	Ref    Ref
	Offset int
	Limit  int // zero: 100
}

// MaxFinished is how many ended jobs the process remembers.
const MaxFinished = 1000

// FinishedJob is a job that has ended. Its Event is that of its end: Kind is EventDone, EventFailed, EventCancelled or
// EventExpired, and Detail is cut to MaxFinishedDetail bytes. Number, Trace, Since and Dropped are not kept.
type FinishedJob struct {
	Event
	Origin    Protocol
	CreatedAt Instant
	LeasedAt  Instant // start of the last lease; zero: never leased
	Attempts  uint32
	Fails     uint32
}

// MaxFinishedDetail is the number of bytes of Event.Detail that a FinishedJob keeps.
const MaxFinishedDetail = 255

// TagOf implements Op.
func (o *KeepDone) TagOf() uint64 { return o.Tag }

// TagOf implements Op.
func (o *ListFinished) TagOf() uint64 { return o.Tag }
