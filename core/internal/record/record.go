// Package record defines the data that the machine passes to the store: commit batches, which are the unit of
// durability, and the stored encoding of jobs, statuses, failures and outcomes.
package record

import (
	"time"

	"broker/core"
)

// CommitBatch holds the changes that one commit makes durable. It is self-contained: applied to another store after all
// earlier batches, it produces the same content.
type CommitBatch struct {
	Changes []Change
	Meta    []core.MetaEntry // a nil Value removes the entry

	Documents []core.MetaEntry // a nil Value removes the document
}

// Change is the net effect of a batch on one job.
type Change struct {
	Seq uint64

	// Gone removes everything stored about the job.
	Gone bool

	// Stored and BodyBytes describe the job in the store before this change, if it is Gone or rewritten: which of its
	// keys exist or may exist, and the size of the body, which tells whether the body has a key of its own.
	Stored Parts

	// KeepBody says that the body of Job equals the stored body, so that a large body is not written again; Job.Body
	// must be set.
	KeepBody bool

	// TimelineSlots is the number of slots, from 0, that the timeline of a removed job has used.
	TimelineSlots uint16

	BodyBytes int

	// Job, if not nil, is written: the job is new to the store, or Stored has Rewritten and it replaces the stored one.
	Job *core.Job

	Status  *Status       // not nil: its status has changed
	Failure *core.Failure // not nil: its last failure; under a key of its own, so that a lease does not rewrite it
	Outcome *core.Outcome // not nil: it is done, and its outcome is kept

	// Timeline holds new entries of the job's timeline, each with its slot, which may be the slot of an older entry.
	Timeline []TimelineSlot
}

// TimelineSlot is an entry of a timeline with its slot.
type TimelineSlot struct {
	Slot  uint16
	Entry core.TimelineEntry
}

// Parts is the set of keys that the store has for a job.
type Parts uint8

// Keys besides that of the job itself, which always exists. HasBody is set for a body larger than InlineBytes.
const (
	HasStatus Parts = 1 << iota
	HasBody
	HasFailure
	HasOutcome

	// Rewritten is not a key. It says that the job itself was written more than once, so its keys need ordinary
	// deletes. It must be set from the first Change that replaces a stored job. The record stores it, so a scan finds
	// it again.
	Rewritten
)

// Status is the part of a job that changes often. A job without a stored status is as submitted: blocked by After or
// Parent, scheduled until ReadyAt, then ready.
type Status struct {
	State          core.State
	Holder         core.Holder
	HolderFrom     core.Protocol
	LostLeases     uint8 // leases in a row that ended without a reply from the worker
	Requeued       bool
	Unlocked       bool  // its unique key was freed early
	Broken         bool  // blocked, and a dependency ended without being done
	Rerun          bool  // Leased: it runs again when this lease ends
	ChildrenBroken bool  // a child ended without being done
	Closed         bool  // its successors have been released
	Tried          bool  // its batch has counted its first execution
	DoneFailed     bool  // Done, as failed
	KeptByQueue    bool  // Done: kept by the retention of its queue
	LogChunks      uint8 // slots of the documents of its log
	Placed         bool  // ordered only by ReadyAt, regardless of Job.ScheduledOrder

	Attempts   uint32
	Fails      uint32
	Children   uint32 // children that are not closed
	EpochAhead uint32 // the job's epoch minus Attempts, modulo 2³²
	Entries    uint32 // of its timeline, so far
	// Leased: milliseconds from LeasedAt until its worker was asked to stop, plus 1; zero: it was not asked
	StopAfter uint32

	ReadyAt   core.Instant // its position in the queue; when a retry is due; when it died
	ExpiresAt core.Instant // if it differs from the job's: end of retention
	LeasedAt  core.Instant // Retrying: when it failed
	FailedAt  core.Instant // of the first failure
	LeaseFor  time.Duration
	// LeaseUntil is the end of the lease if that is not LeaseFor after LeasedAt, because the lease was extended or
	// shortened; otherwise zero. It is on the clock of LeasedAt.
	LeaseUntil core.Instant
	Worker     string
	Group      string         // Retrying, Dead: failure group
	Version    string         // Leased, Retrying, Dead: core.Lease.Version
	Waiting    []uint64       // Blocked: its dependencies and its parent; jobs in it that are closed by now are done
	Unstored   []uint64       // jobs in Waiting that are not stored: if one is missing, it was lost and not done
	Progress   *core.Progress // nil: none was reported
	Tally      *core.Tally    // nil: nothing was counted
	Moved      *Moved         // nil: it has not moved by a rule
}

// Moved is the part of a status of a job that has moved to another queue by a rule.
type Moved struct {
	Queue string // replaces Job.Queue if not empty
	From  string // JobInfo.MovedFrom
	After uint32 // JobInfo.MovedAfter
}

// Record is the result of a scan of the store for one job.
type Record struct {
	Job       *core.Job // Body is nil if it has a key of its own
	BodyBytes int
	Stored    Parts
	Status    *Status // nil: as submitted
}
