package core

import (
	"strings"
	"time"
)

// Update changes fields of an unfinished or dead job; fields that are nil stay unchanged. A current lease continues as
// it was granted. Reply: Accepted, with the new epoch in Lease.Epoch, or Failed with ErrNotFound, ErrConflict,
// ErrFinished, ErrDiskFull (a new body), or ErrInvalid: an invalid value, or ReadyAt for a job that is leased or dead.
type Update struct {
	changing
	Tag uint64
	Ref Ref
	If  Condition
	Set JobChange
}

// JobChange lists the fields of a job to change.
type JobChange struct {
	Priority *int64
	Type     *string // empty: same as the queue's name
	Tags     *[]string
	Body     *Body

	// ReadyAt moves a waiting job to the position of that instant in its queue; a future instant delays it. A pointer
	// to zero means now.
	ReadyAt *Instant

	ExpiresAt   *Instant // if the outcome was kept until the old time, it is kept until the new one
	LeaseFor    *time.Duration
	MaxAttempts *uint32
	MaxFails    *uint32
	Attempts    *uint32 // leases counted so far
	Fails       *uint32 // failures counted so far; the last failure is forgotten
	Backoff     *Backoff
	Exhausted   *Exhausted
	Attributes  *[]byte
}

// String lists the fields that are set.
func (s *JobChange) String() string {
	var names []string
	for _, f := range []struct {
		name string
		set  bool
	}{
		{"priority", s.Priority != nil},
		{"type", s.Type != nil},
		{"tags", s.Tags != nil},
		{"body", s.Body != nil},
		{"ready at", s.ReadyAt != nil},
		{"expires at", s.ExpiresAt != nil},
		{"lease for", s.LeaseFor != nil},
		{"max attempts", s.MaxAttempts != nil},
		{"max fails", s.MaxFails != nil},
		{"attempts", s.Attempts != nil},
		{"fails", s.Fails != nil},
		{"backoff", s.Backoff != nil},
		{"exhausted", s.Exhausted != nil},
		{"attributes", s.Attributes != nil},
	} {
		if f.set {
			names = append(names, f.name)
		}
	}
	return strings.Join(names, ", ")
}

// Body is the body of a job with its format.
type Body struct {
	Bytes  []byte
	Format Format
}

// Move moves a job to a queue. The job keeps its identity, so jobs that depend on it still do. If the job is leased,
// Move ends the lease, which requires Authority. A dead job becomes unfinished again. Afterwards the job is blocked,
// scheduled or ready, depending on After and ReadyAt. Reply as for Update, and Failed with ErrNotLeased or ErrNotHolder
// as Complete, ErrFull, ErrNotUnique (the unique key is taken in that queue), or ErrInvalid: After is too long, names a
// job that was never assigned, or would make the job depend on itself; or the job is a callback that waits for its
// batch.
type Move struct {
	changing
	Tag       uint64
	Ref       Ref
	If        Condition
	Authority FinishAuthority
	Queue     string  // empty: its present queue
	ReadyAt   Instant // zero: now
	After     []Ref   // not nil: replaces its dependencies; its parent stays
	Set       JobChange
}

// TransferLease transfers a lease from a connection or a worker to a worker with an id; the connection may close
// afterwards. The lease starts again, for LeaseFor or, if that is zero, for the usual time. Reply: Accepted, with the
// new grant in Lease, or Failed with ErrNotFound, ErrNotLeased (also if Epoch is not the epoch of the current lease),
// or ErrInvalid without a worker.
type TransferLease struct {
	changing
	Tag      uint64
	Ref      Ref
	Epoch    uint32
	Worker   string
	LeaseFor time.Duration
}

// Dependents says what happens to jobs that depend on a cancelled job.
type Dependents uint8

// DependentsBreak: they stay Blocked and are marked broken. DependentsRefuse: the operation fails unless it cancels
// all dependents too.
const (
	DependentsBreak Dependents = iota
	DependentsRefuse
)

// CancelRunning says what Cancel does to a leased job.
type CancelRunning uint8

// RunningRemove: the job is removed like any other. RunningSignal: the worker keeps the job and is asked to stop:
// replies to Report say so, as do EventCancelRequested and Filter.CancelRequested. The job ends with Cause Cancelled
// once the worker fails it or its lease ends in another way. A completion, a Bury and a Move to another queue still
// work as usual.
const (
	RunningRemove CancelRunning = iota
	RunningSignal
)

// Cancel removes the job in any state, together with the jobs in Also. Watchers get Ended with Cause Cancelled. Unknown
// names in Also are ignored, and If applies to Ref only. Reply: Accepted, with the number of removed jobs in N and,
// with RunningSignal, CancelRequested if workers were asked to stop; or Failed with ErrNotFound, ErrConflict or
// ErrHasDependents.
type Cancel struct {
	changing
	Tag        uint64
	Ref        Ref
	If         Condition
	Dependents Dependents
	Also       []Ref
	Running    CancelRunning
}

// OnlyAsks reports whether a job in this state is not removed, but its worker is asked to stop.
func (o *Cancel) OnlyAsks(state State) bool { return o.Running == RunningSignal && state == Leased }

// Enqueue makes a scheduled, retrying, blocked or dead job ready now. A job that is dead with BrokenFails becomes
// blocked instead if a dependency is no longer dead and not yet done. Reply: Accepted, or Failed with ErrNotFound,
// ErrConflict, or ErrInvalid in other states.
type Enqueue struct {
	changing
	Tag uint64
	Ref Ref
	If  Condition
}

// Bury moves an unfinished job to the dead set; for a dead job it restarts DeadFor. Reply as for Enqueue.
type Bury struct {
	changing
	Tag uint64
	Ref Ref
	If  Condition

	// Group is the failure group of a job that is in none, and DiedAt its time of death, for a job that is put back
	// into the dead set. Zero: no group, and now; also if DiedAt is not past, or DeadFor has passed since.
	Group  string
	DiedAt Instant
}

// The TagOf methods.

func (o *Update) TagOf() uint64        { return o.Tag }
func (o *Move) TagOf() uint64          { return o.Tag }
func (o *TransferLease) TagOf() uint64 { return o.Tag }
func (o *Cancel) TagOf() uint64        { return o.Tag }
func (o *Enqueue) TagOf() uint64       { return o.Tag }
func (o *Bury) TagOf() uint64          { return o.Tag }
