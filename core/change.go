package core

import (
	"strings"
	"time"
)

// Update changes the named fields of a job that is not finished, or dead; what is nil stays as it is. A lease that runs
// goes on as it was granted. Reply: Accepted, with the new epoch in Lease.Epoch, or Failed with ErrNotFound, ErrConflict,
// ErrFinished, ErrDiskFull (a new body), or ErrInvalid: a value that no job may have, or ReadyAt of a job that is leased
// or dead.
type Update struct {
	changing
	Tag uint64
	Ref Ref
	If  Condition
	Set JobChange
}

// JobChange names the fields of a job that change.
type JobChange struct {
	Priority *int32
	Type     *string // empty: the name of its queue
	Tags     *[]string
	Body     *Body

	// ReadyAt moves a job that waits to the place of that instant in its queue: before its equals if it is early, after a
	// wait if it is yet to come. A pointer to zero means now.
	ReadyAt *Instant

	ExpiresAt   *Instant // the retention of an outcome that was to end with it follows
	LeaseFor    *time.Duration
	MaxAttempts *uint32
	MaxFails    *uint32
	Attempts    *uint32 // hand-outs counted so far
	Fails       *uint32 // failures counted so far; what was known of the last one is forgotten
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

// Body is the bytes of a job with what they are.
type Body struct {
	Bytes  []byte
	Format Format
}

// Move puts a job into a queue, under the same identity: its dependents go on waiting for it. It ends the job's lease, if
// there is one, for which Authority is needed; a dead job comes back to life. Afterwards the job is blocked, scheduled or
// ready, as After and ReadyAt say. Reply as Update, and Failed with ErrNotLeased or ErrNotHolder as Complete, ErrFull,
// ErrNotUnique (the unique key is taken in that queue), or ErrInvalid as AddDependencies and for a callback that waits for
// its batch.
type Move struct {
	changing
	Tag       uint64
	Ref       Ref
	If        Condition
	Authority FinishAuthority
	Queue     string  // empty: the one it is in
	ReadyAt   Instant // zero: now
	After     []Ref   // not nil: it waits for these instead of those that it waits for; its parent stays
	Set       JobChange
}

// AddDependencies makes a job that is blocked, scheduled or ready wait for more jobs. A number that was given out and is
// gone stands for a job that is done, as in a submission. Reply: Accepted, with the number of jobs that it now waits for
// in N, or Failed with ErrNotFound (also for a name in After that nobody has), ErrConflict, ErrFinished, or ErrInvalid:
// another state, too many dependencies, a dependency on itself, directly or through others.
type AddDependencies struct {
	changing
	Tag   uint64
	Ref   Ref
	If    Condition
	After []Ref
}

// RemoveDependencies makes a blocked job wait for fewer jobs; the last one gone, it is scheduled or ready. All removes
// every one, also those that are gone without being done; without it, a job marked broken stays blocked. Names that it
// does not wait for are passed over. Reply as AddDependencies.
type RemoveDependencies struct {
	changing
	Tag   uint64
	Ref   Ref
	If    Condition
	After []Ref
	All   bool
}

// TransferLease gives a leased job to a worker with an id, from a connection or another worker: its connection may close
// then. The grant starts anew, for LeaseFor or, if that is zero, as for any worker. Reply: Accepted, with the new grant in
// Lease, or Failed with ErrNotFound, ErrNotLeased (also when Epoch is not that of the present lease), or ErrInvalid
// without a worker.
type TransferLease struct {
	changing
	Tag      uint64
	Ref      Ref
	Epoch    uint32
	Worker   string
	LeaseFor time.Duration
}

// Dependents says what a cancel does about jobs that wait for the cancelled one.
type Dependents uint8

// DependentsBreak: they stay Blocked and are marked broken. DependentsRefuse: nothing is cancelled, unless all of them
// are cancelled together.
const (
	DependentsBreak Dependents = iota
	DependentsRefuse
)

// Cancel removes a job in any state, and those of Also with it; watchers get Ended with Cause Cancelled. Names in Also that
// nobody has are passed over, and If is asked of Ref alone. Reply: Accepted, with the number of jobs removed in N, or
// Failed with ErrNotFound, ErrConflict or ErrHasDependents.
type Cancel struct {
	changing
	Tag        uint64
	Ref        Ref
	If         Condition
	Dependents Dependents
	Also       []Ref
}

// Enqueue makes a scheduled, retrying, blocked or dead job ready now. Reply: Accepted, or Failed with ErrNotFound,
// ErrConflict, or ErrInvalid in other states.
type Enqueue struct {
	changing
	Tag uint64
	Ref Ref
	If  Condition
}

// Bury moves an unfinished job to the dead set, with a new age; a dead one only gets the new age. Reply as Enqueue.
type Bury struct {
	changing
	Tag uint64
	Ref Ref
	If  Condition
}

// TagOf implements Op.
func (o *Update) TagOf() uint64 { return o.Tag }

// TagOf implements Op.
func (o *Move) TagOf() uint64 { return o.Tag }

// TagOf implements Op.
func (o *AddDependencies) TagOf() uint64 { return o.Tag }

// TagOf implements Op.
func (o *RemoveDependencies) TagOf() uint64 { return o.Tag }

// TagOf implements Op.
func (o *TransferLease) TagOf() uint64 { return o.Tag }

// TagOf implements Op.
func (o *Cancel) TagOf() uint64 { return o.Tag }

// TagOf implements Op.
func (o *Enqueue) TagOf() uint64 { return o.Tag }

// TagOf implements Op.
func (o *Bury) TagOf() uint64 { return o.Tag }
