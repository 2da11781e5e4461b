// Package record is what the machine decides and the store keeps: the unit of durability and, later, of replication.
package record

import (
	"time"

	"broker/core"
)

// Batch is what one commit makes durable, in order. It is self-contained: applied to another store that has all batches
// before it, it gives the same contents.
type CommitBatch struct {
	Changes []Change
	Meta    []core.MetaEntry // a nil Value removes the mark
}

// Change is the last word of a batch about one job.
type Change struct {
	Seq uint64

	// Gone removes all that is stored of the job. Stored tells which of its keys exist (or may).
	Gone      bool
	Stored    Parts
	BodyBytes int // of a job that is gone: whether its body has a key of its own

	Job     *core.Job     // not nil: a job that the store has not seen; written once and never again
	Status  *Status       // not nil: its status has changed since
	Failure *core.Failure // not nil: its last failure; a key of its own, so that a lease does not rewrite it
	Outcome *core.Outcome // not nil: it is done and the outcome is kept
}

// Parts says which keys of a job the store holds.
type Parts uint8

// The job itself always has a key; a large body, a status, a failure and an outcome have keys of
// their own.
const (
	HasStatus Parts = 1 << iota
	HasBody
	HasFailure
	HasOutcome
)

// Status is the part of a job that changes. A job without a stored status is as it was submitted: blocked while After
// or Parent say so, scheduled until its ReadyAt, then ready.
type Status struct {
	State          core.State
	Requeued       bool
	Unlocked       bool // its unique key is free
	Broken         bool // blocked, and a predecessor is gone without being done
	Attempts       uint32
	Fails          uint32
	ReadyAt        core.Instant // its place in the queue; when a retry is due; when it died
	ExpiresAt      core.Instant // if it differs from the job's: end of retention
	LeasedAt       core.Instant // Retrying: when it failed
	FailedAt       core.Instant // of the first failure
	LeaseFor       time.Duration
	Holder         core.Holder
	HolderFrom     core.Protocol
	Worker         string
	Waiting        []uint64 // Blocked: predecessors and parent it still waits for
	Children       uint32   // children not closed yet
	ChildrenBroken bool     // a child is gone without being done
	Closed         bool     // those that waited for it have been told
	Tried          bool     // its batch has counted its first execution
	DoneFailed     bool     // Done, as failed
	Placed         bool     // its place is by ReadyAt alone, whatever Job.ScheduledOrder says
	Progress       core.Progress
}

// Record is what Scan finds of one job.
type Record struct {
	Job        *core.Job // Body is nil if it has a key of its own
	BodyBytes  int
	Stored     Parts
	Status     *Status // nil: as submitted
	StoreBytes int     // of its keys and values, about
}
