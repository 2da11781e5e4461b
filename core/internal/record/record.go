// Package record defines what the machine decides and the store keeps: commit batches, which are the unit of durability, and the
// stored encoding of jobs, statuses, failures and outcomes.
package record

import (
	"time"

	"broker/core"
)

// CommitBatch is what one commit makes durable. It is self-contained: applied to another store with all batches before it, it
// produces the same contents.
type CommitBatch struct {
	Changes []Change
	Meta    []core.MetaEntry // a nil Value removes the entry

	Documents []core.MetaEntry // likewise
}

// Change is the net effect of a batch on one job.
type Change struct {
	Seq uint64

	// Gone removes everything that is stored of the job.
	Gone bool

	// Stored and BodyBytes say what the store has of the job before this change, if it is Gone or rewritten: which of its
	// keys exist (or may), and the size of the body, from which follows whether that has a key of its own.
	Stored Parts

	// KeepBody says that the body of Job is the stored one, so that a large one is not written again; Job.Body must be set.
	KeepBody bool

	// TimelineSlots is how many places the timeline of a job has that is gone, from 0.
	TimelineSlots uint16

	BodyBytes int

	// Job, if not nil, is written: the job is new to the store, or Stored has Rewritten and it replaces the stored one.
	Job *core.Job

	Status  *Status       // not nil: its status has changed
	Failure *core.Failure // not nil: its last failure; under a key of its own, so that a lease does not rewrite it
	Outcome *core.Outcome // not nil: it is done, and its outcome is kept

	// Timeline are new entries of the job's timeline, each with its place, which may be that of an older one.
	Timeline []TimelineSlot
}

// TimelineSlot is an entry of a timeline at its place.
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

	// Rewritten is not a key: the job itself was written more than once, so that its keys need ordinary deletes. It must be
	// set from the first Change on that replaces a stored job. A scan finds it again, since the record holds it.
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
	Unlocked       bool  // its unique key was released early
	Broken         bool  // blocked, and a dependency is gone without being done
	Rerun          bool  // Leased: it runs again when this lease ends
	ChildrenBroken bool  // a child is gone without being done
	Closed         bool  // its successors have been released
	Tried          bool  // its batch has counted its first execution
	DoneFailed     bool  // Done, as failed
	KeptByQueue    bool  // Done: kept by the retention of its queue
	LogChunks      uint8 // places of the documents of its log
	Placed         bool  // ordered by ReadyAt alone, regardless of Job.ScheduledOrder

	Attempts   uint32
	Fails      uint32
	Children   uint32 // children that are not closed
	EpochAhead uint32 // the job's epoch less Attempts, modulo 2³²
	Entries    uint32 // of its timeline, so far
	StopAfter  uint32 // Leased: how many milliseconds after LeasedAt its worker was asked to stop, and 1; zero: it was not

	ReadyAt   core.Instant // its position in the queue; when a retry is due; when it died
	ExpiresAt core.Instant // if it differs from the job's: end of retention
	LeasedAt  core.Instant // Retrying: when it failed
	FailedAt  core.Instant // of the first failure
	LeaseFor  time.Duration
	Worker    string
	Group     string         // Retrying, Dead: failure group
	Waiting   []uint64       // Blocked: its dependencies and its parent; those that are closed by now are done
	Unstored  []uint64       // those of Waiting that are not in the store: if one is missing, it was lost and not done
	Progress  *core.Progress // nil: none was reported
	Tally     *core.Tally    // nil: nothing was counted
	Queue     string         // in place of Job.Queue, which may be another one; empty: it is that
}

// Record is what a scan of the store returns for one job.
type Record struct {
	Job        *core.Job // Body is nil if it has a key of its own
	BodyBytes  int
	Stored     Parts
	Status     *Status // nil: as submitted
	StoreBytes int     // approximate size of its keys and values
}
