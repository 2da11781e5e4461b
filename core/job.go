package core

import "time"

// Protocol says which front-end a job or a client came from. The numbers reach the disk and are never reused.
type Protocol uint8

// The protocols in the order in which they were given numbers.
const (
	Internal Protocol = iota // the broker itself: cron, console
	Workq
	Gearman
	Faktory
	HTTP
)

// Protocols lists all of them, for tables and metrics.
var Protocols = [...]Protocol{Internal, Workq, Gearman, Faktory, HTTP}

func (p Protocol) String() string {
	switch p {
	case Internal:
		return "internal"
	case Workq:
		return "workq"
	case Gearman:
		return "gearman"
	case Faktory:
		return "faktory"
	case HTTP:
		return "http"
	}
	return "unknown"
}

// Format says what a body is. On disk; never renumbered.
type Format uint8

// A body is bytes that mean something to the worker alone, or a JSON array of arguments.
const (
	Raw Format = iota
	Args
)

// Backoff is the wait between an explicit failure and the next try. On disk; never renumbered.
type Backoff uint8

// At once (Workq's way), or Faktory's growing formula: c⁴ + 15 + rand(0..29)·(c+1) seconds for the c-th retry from 0.
const (
	BackoffNone Backoff = iota
	BackoffFaktory
)

// Exhausted says what becomes of a job whose failures have reached MaxFails. On disk; never renumbered.
type Exhausted uint8

// Finished as failed (kept only as Retain says), or moved to the dead set for DeadFor.
const (
	ExhaustedFinish Exhausted = iota
	ExhaustedBury
)

// LeaseEnd says what a lease that ran out means to the job. On disk; never renumbered.
type LeaseEnd uint8

// An attempt only: ready again at the original position, or finished as failed once Attempts has reached MaxAttempts.
// Or a failure like any other, with its back-off (ErrType "ReservationExpired").
const (
	LeaseEndAttempt LeaseEnd = iota
	LeaseEndFail
)

// UniquePolicy says what a second submission with the same queue and UniqueKey meets. On disk; never renumbered.
type UniquePolicy uint8

// UniqueCoalesce answers with the job that is there; UniqueRefuse answers ErrNotUnique.
const (
	UniqueNone UniquePolicy = iota
	UniqueCoalesce
	UniqueRefuse
)

// Job is what a client submitted: the part that never changes after admission. What happens to it later (state,
// attempts, failures, progress, result) is in [JobInfo].
type Job struct {
	Seq uint64 // given on admission, never reused; 0 in a submission
	ID  string // the client's own id; empty: the core mints one, see Job.Identity

	Queue      string
	Type       string // what to run; empty in a submission: same as Queue
	Body       []byte
	Format     Format
	Origin     Protocol
	Tags       []string // to find it by; at most MaxTags of MaxTagBytes
	Attributes []byte   // the front-end's own fields, opaque to the core, carried unchanged

	Priority    int32         // higher first, 0 is normal
	CreatedAt   Instant       // zero in a submission: now
	ReadyAt     Instant       // not before; zero: at once
	ExpiresAt   Instant       // gone after, whatever the state; zero: never
	StartBefore Instant       // dropped if not handed out by then; zero: never
	LeaseFor    time.Duration // a worker's time to finish; zero: as the worker's protocol says

	MaxAttempts uint32        // hand-outs before it is finished as failed; zero: no limit
	MaxFails    uint32        // failures at which it is exhausted; zero and one: the first is final
	Backoff     Backoff       // wait between a failure and the next try
	Exhausted   Exhausted     // what happens at MaxFails
	LeaseEnd    LeaseEnd      // what a lease that ran out means
	DeadFor     time.Duration // stay in the dead set; zero: for ever

	UniqueKey   string // one live job per queue and key; empty: none
	Unique      UniquePolicy
	UniqueUntil Instant // the key is free after this instant even if the job lives; zero: as long as the job lives
	UniqueStart bool    // the key is free once the job is handed out

	RetainUntil Instant       // keep the outcome until then (Workq ttl); zero: not by instant
	RetainFor   time.Duration // keep the outcome for so long after the end; zero: not by span
	Ephemeral   bool          // somebody waits for it on a connection; never stored, gone with the last waiter

	// ScheduledOrder keeps Workq's order among equals: plain jobs first, then scheduled ones by their time. Without it
	// a job takes its place in the queue when it becomes due.
	ScheduledOrder bool

	Parent uint64   // held until this job is finished, and the parent is closed only when all its children are
	After  []uint64 // blocked until every one of these is closed as done
	Batch  uint64   // batch this job belongs to; zero: none

	Schedule    string // name of the schedule that submitted it; the core's to fill
	CallbackFor uint64 // batch whose callback this is; the core's to fill
	PriorFails  uint32 // failures counted elsewhere before this submission
}

// Identity is the name of the job in every protocol that names jobs by text: the client's own id, or the minted one.
func (j *Job) Identity() string {
	if j.ID != "" {
		return j.ID
	}
	return MintedID(j.Seq, j.CreatedAt)
}

// Kept reports whether the outcome outlives the job's end.
func (j *Job) Kept() bool { return j.RetainUntil != 0 || j.RetainFor != 0 }

// Failure is what is known of the last explicit failure of a job, or of a reservation that ran out.
type Failure struct {
	Type      string   // error class; cut by the front-end to its own limit
	Message   string   //
	Group     string   // what failures of many jobs have in common, as the front-end names it
	Backtrace []string //
	FailedAt  Instant  // the first failure, kept over later ones
	NextAt    Instant  // when the retry is due; zero when there is none
	Count     uint32   // failures so far, this one included
	Exception bool     // Gearman WORK_EXCEPTION: Data holds its bytes
	Data      []byte   // bytes a Gearman exception or a Workq fail carried
}

// Outcome is how a job ended, as the clients that waited for it are told.
type Outcome struct {
	Success bool
	Result  []byte   // data chunks followed by the bytes of the completion, or the bytes of a Workq fail
	Failure *Failure // nil when Success, and when nothing is known (lease ran out, expired, cancelled)
	Cause   Cause
}

// Cause says why a job ended.
type Cause uint8

// By a worker's word, by attempts or lease used up, by its time to live, by somebody's order.
const (
	Finished Cause = iota
	LeaseRanOut
	Expired
	Cancelled
)

// What a reservation that ran out is recorded as, where the job's policy counts it as a failure. Clients of Faktory
// know these words.
const (
	ReservationExpired        = "ReservationExpired"
	ReservationExpiredMessage = "Faktory job reservation expired"
)

// Why a job is dead whose leases ended one after the other without a word of the worker: it may be what kills workers.
const (
	Poisonous        = "Poison"
	PoisonousMessage = "%d leases in a row ended without an answer from the worker"
)

// PoisonAfter is the default for how many such leases there may be.
const PoisonAfter = 20
