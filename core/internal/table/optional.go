package table

import (
	"time"

	"broker/core"
	"broker/core/internal/timer"
)

// CostOf is how much a lease of a job counts.
func (t *Table) CostOf(h uint32) uint32 { return t.Optional(h).leaseCost() }

// leaseCost is CostOf for a job with this Optional, which may be nil.
func (x *Optional) leaseCost() uint32 {
	if x == nil {
		return 1
	}
	return max(x.cost, 1)
}

// Optional holds data that few jobs have, so that only these jobs pay for it.
type Optional struct {
	StartBefore    core.Instant
	StartTimer     timer.ID // set while the job is ready and has StartBefore
	UniqueUntil    core.Instant
	UniqueStart    bool
	StartKey       Digest       // uniqueStart: the key that was freed by the lease
	RetainUntil    core.Instant // only if it differs from ExpiresAt
	RetainFor      time.Duration
	AskedUntil     core.Instant // KeptByQueue: end of the retention that the job itself asks for; zero: none
	TTL            core.Instant // of a dead job: Job.ExpiresAt, which is otherwise in ExpiresAt
	Parent         uint64
	OnBroken       core.OnBroken
	cost           uint32      // Job.Cost; zero: 1
	priorGroup     string      // failure group of Job.Failure, while that is the last failure
	Waiting        []uint64    // its dependencies, in ascending order
	Shortened      core.Commit // commit with the last end of a dependency that did not rewrite the job's record
	Successors     *Dependents // jobs that depend on this one
	Children       *Dependents // jobs blocked until this one is finished
	OpenChildren   int         // children that are not closed
	ChildrenBroken bool        // a child ended without being done
	IsClosed       bool        // its dependents have been notified
	KeepsLinks     bool        // it is dead, and waits again for its dependencies if it leaves the dead set
	WasUnstored    bool        // records of dependents may still say that it is unstored
	ClosesLater    bool        // it is done, its children are closed, and a later step closes it
	Batch          uint64      // batch of which it is a member
	Tried          bool        // its batch has counted its first execution
	CallbackFor    uint64      // batch whose callback it is
	Limits         uint32      // number of its data in package limit; zero: none
	Timeline       uint16      // Job.Timeline
	MovedFrom      string      // JobInfo.MovedFrom
	MovedAfter     uint32      // JobInfo.MovedAfter
	LogChunks      uint8       // slots of the documents of its log
}

// Transient holds data of a job that is not in its entry and not on disk yet.
type Transient struct {
	Progress *core.Progress // nil: none; it is replaced, never changed
	Failure  *core.Failure
	Outcome  *core.Outcome
	Data     []byte               // chunks of the current attempt, for clients that want the whole result
	TooMuch  bool                 // there were more chunks than may be kept
	entries  []core.TimelineEntry // not on disk yet; the first written entries are being written
	written  int
}

// EnsureOptional returns the Optional of a job, and creates it if there is none.
func (t *Table) EnsureOptional(h uint32) *Optional {
	e := t.At(h)
	if !e.Has(HasOptional) {
		e.Set(HasOptional)
		t.optionals[h] = &Optional{}
	}
	return t.optionals[h]
}

// Optional returns the Optional of a job, or nil.
func (t *Table) Optional(h uint32) *Optional {
	if !t.At(h).Has(HasOptional) {
		return nil
	}
	return t.optionals[h]
}

// EnsureTransient returns the Transient of a job, and creates it if there is none.
func (t *Table) EnsureTransient(h uint32) *Transient {
	e := t.At(h)
	if !e.Has(HasTransient) {
		e.Set(HasTransient)
		t.transients[h] = &Transient{}
	}
	return t.transients[h]
}

// ForgetProgress clears the progress of a job whose worker has left it; the progress of a finished job is kept with its
// outcome.
func (t *Table) ForgetProgress(h uint32, e *Entry) {
	if e.Has(HasTransient) {
		t.Transient(h).Progress = nil
	}
}

// Transient returns the Transient of a job, or nil.
func (t *Table) Transient(h uint32) *Transient { return t.transients[h] }
