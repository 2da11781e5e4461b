package core

import "time"

// Protocol is the front-end of a job or a client. The numbers are stored and never reused.
type Protocol uint8

// The protocols, in the order of their numbers.
const (
	Internal Protocol = iota // the broker itself: schedules
	Workq
	Gearman
	Faktory
	HTTP
	Qless
	Conveyor
	Beanstalk
	SQS
)

// Protocols lists all protocols, for tables and metrics.
var Protocols = [...]Protocol{Internal, Workq, Gearman, Faktory, HTTP, Qless, Conveyor, Beanstalk, SQS}

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
	case Qless:
		return "qless"
	case Conveyor:
		return "conveyor"
	case Beanstalk:
		return "beanstalk"
	case SQS:
		return "sqs"
	}
	return "unknown"
}

// ProtocolNames are the names of the protocols that clients speak.
func ProtocolNames() []string {
	names := make([]string, 0, len(Protocols)-1)
	for _, p := range Protocols {
		if p != Internal {
			names = append(names, p.String())
		}
	}
	return names
}

// QueueLifetime says how long a queue is known that only its jobs have created.
type QueueLifetime uint8

// QueueWhileUsed: until some minutes after its last job. QueueUntilRestart: until the process ends. QueueForGood: after a
// restart too, if one of its jobs was stored. QueueWhileHeld: while it has jobs or HoldQueue keeps it.
const (
	QueueWhileUsed QueueLifetime = iota
	QueueUntilRestart
	QueueForGood
	QueueWhileHeld
)

// QueueLifetime is how long clients of the protocol expect the queues of their jobs to be listed.
func (p Protocol) QueueLifetime() QueueLifetime {
	switch p {
	case Workq:
		return QueueWhileUsed
	case Faktory:
		return QueueForGood
	case Beanstalk:
		return QueueWhileHeld
	case Internal, Gearman, HTTP, Qless, Conveyor, SQS:
	}
	return QueueUntilRestart
}

// ReusesIDs reports whether clients of the protocol may submit a job with the ID of a finished one of theirs that is kept
// for its outcome only. The new job replaces it.
func (p Protocol) ReusesIDs() bool { return p == Faktory }

// Format says what a body contains. Stored; never renumbered.
type Format uint8

// Raw: bytes that only the worker interprets. Args: a JSON array of arguments.
const (
	Raw Format = iota
	Args
)

// Backoff is the delay between a failure and the next try. Stored; never renumbered.
type Backoff uint8

// BackoffNone: no delay (as in Workq). BackoffFaktory: c⁴ + 15 + rand(0..29)·(c+1) seconds for the c-th retry, from 0.
const (
	BackoffNone Backoff = iota
	BackoffFaktory
)

// Exhausted says what happens to a job whose failures have reached MaxFails. Stored; never renumbered.
type Exhausted uint8

// ExhaustedFinish: it ends as failed (kept only as Retain says). ExhaustedBury: it moves to the dead set for DeadFor.
const (
	ExhaustedFinish Exhausted = iota
	ExhaustedBury
)

// LeaseEnd says what happens to a job whose lease expires. Stored; never renumbered.
type LeaseEnd uint8

// LeaseEndAttempt: it is ready again at its original position, or ends as failed once Attempts has reached MaxAttempts.
// LeaseEndFail: that is a failure like any other, with its backoff (error type "ReservationExpired").
const (
	LeaseEndAttempt LeaseEnd = iota
	LeaseEndFail
)

// OnBroken says what happens to a job that waits for others, when one of them ends without being done or is dead, or one of that
// one's children is. Stored; never renumbered.
type OnBroken uint8

// BrokenWaits: it waits until a client releases it, or the dead job is put back and done. BrokenReleases: the job runs, as if it did
// not depend on that one. BrokenFails: it is dead, with the failure DependencyFailed. BrokenDrops: it is cancelled.
const (
	BrokenWaits OnBroken = iota
	BrokenReleases
	BrokenFails
	BrokenDrops
)

// UniquePolicy says what happens to a second submission with the same queue and UniqueKey. Stored; never renumbered.
type UniquePolicy uint8

// UniqueCoalesce: the reply names the existing job. UniqueRefuse: ErrNotUnique. UniqueReplace, which is never stored: the existing
// job, if it waits, takes body, attributes, tags, priority and ReadyAt of the new one, and the reply names it; otherwise ErrNotUnique.
const (
	UniqueNone UniquePolicy = iota
	UniqueCoalesce
	UniqueRefuse
	UniqueReplace
)

// Refuses reports whether a submission is refused if a job that it cannot change has its key.
func (u UniquePolicy) Refuses() bool { return u == UniqueRefuse || u == UniqueReplace }

// Job is what a client submitted. Its later state (attempts, failures, progress, result) is in [JobInfo].
type Job struct {
	Seq uint64 // assigned on admission, never reused; 0 in a submission
	ID  string // the client's own id; empty: the core makes one, see Job.Identity

	Queue      string
	Type       string // what to run; empty in a submission: same as Queue
	Body       []byte
	Tags       []string // at most MaxTags of MaxTagBytes
	Attributes []byte   // the front-end's own fields, opaque to the core
	Trace      string   // trace that the job is part of, in a form of the front-ends, opaque to the core; at most MaxTraceBytes

	Priority    int64         // higher first, 0 is normal; from MinPriority to MaxPriority
	CreatedAt   Instant       // zero in a submission: now
	ReadyAt     Instant       // not before; zero: at once
	ExpiresAt   Instant       // removed then, whatever its state; zero: never
	StartBefore Instant       // removed if it was not handed out by then; zero: never
	LeaseFor    time.Duration // zero: the default of the worker's protocol
	DeadFor     time.Duration // time in the dead set; zero: no limit

	MaxAttempts uint32 // leases before it ends as failed; zero: no limit
	MaxFails    uint32 // failures after which it is exhausted; zero and one: the first is final
	PriorFails  uint32 // failures counted before this submission

	// Cost is how much a lease of the job counts in limits of leases at once and of rates; zero: 1. One with a Cost above a limit is leased
	// when nothing else counts, or with the whole burst.
	Cost uint32

	// Timeline, if not zero, keeps the job's timeline from its submission on: the first entry and the last ones, so many in
	// all, from 2 to MaxTimeline.
	Timeline uint16

	Format    Format
	Origin    Protocol
	Backoff   Backoff   // between a failure and the next try
	Exhausted Exhausted // what happens at MaxFails
	LeaseEnd  LeaseEnd  // what happens when a lease expires

	// Own says which of MaxAttempts, MaxFails, Backoff, Exhausted and LeaseFor the client has chosen. The others are defaults of its
	// protocol, which a JobPolicy replaces.
	Own PolicyFields

	Unique      UniquePolicy
	UniqueStart bool // the key is free once the job is leased
	Ephemeral   bool // a client waits for it on a connection; never stored, removed with the last such client

	// ScheduledOrder is Workq's order among jobs of equal priority: plain jobs first, then scheduled ones by their time.
	// Without it, a job joins the end of the queue when it becomes due.
	ScheduledOrder bool

	// SeqOrder keeps the place of the job among those of equal priority: by its number among jobs with SeqOrder, by the time of its
	// submission among others, however often it was delayed, leased or dead. The core sets its CreatedAt.
	// Not with ScheduledOrder.
	SeqOrder bool

	Tallies  Tallies  // what is counted of it in JobInfo.Tally
	OnBroken OnBroken // when a job that it waits for cannot be done; not for ephemeral jobs

	UniqueKey   string        // one live job per queue and key; empty: none
	UniqueUntil Instant       // the key is free after this instant even if the job still exists; zero: only once it is gone
	RetainUntil Instant       // keep the outcome until then (Workq ttl)
	RetainFor   time.Duration // keep the outcome for this long after the end

	Parent uint64   // blocked until this job is finished; the parent is closed only when all its children are
	After  []uint64 // blocked until all of these are closed as done
	Batch  uint64   // batch this job belongs to; zero: none

	Schedule    string // name of the schedule that submitted it; set by the core
	CallbackFor uint64 // batch whose callback this is; set by the core
	RerunOf     uint64 // the job of which this one is a copy; set by the core: see Resubmit
}

// Tallies says what is counted of a job besides its attempts and failures. Stored; never renumbered.
type Tallies uint8

// TallyMoves: Tally.Releases, Timeouts, Burials and Kicks. TallyFirstLease: Tally.FirstLeasedAt.
const (
	TallyMoves Tallies = 1 << iota
	TallyFirstLease

	AllTallies = 1<<iota - 1
)

// Tally is what has happened to a job, as far as its Tallies say. Its attempts are stored at each lease too.
type Tally struct {
	Releases      uint32 // moves while it was leased, as when its worker gives it back
	Timeouts      uint32 // leases that ran out
	Burials       uint32 // moves to the dead set
	Kicks         uint32 // Enqueue
	FirstLeasedAt Instant
}

// Identity is the name of the job in protocols that name jobs by text: the client's id, or the one that the core made.
func (j *Job) Identity() string {
	if j.ID != "" {
		return j.ID
	}
	return MintedID(j.Seq, j.CreatedAt)
}

// InQueue puts the job into a queue. If its type was the name of its queue, it follows.
func (j *Job) InQueue(queue string) {
	if j.Type == j.Queue {
		j.Type = queue
	}
	j.Queue = queue
}

// Kept reports whether the outcome is kept after the end of the job.
func (j *Job) Kept() bool { return j.RetainUntil != 0 || j.RetainFor != 0 }

// Failure describes the last failure of a job, which may be an expired reservation.
type Failure struct {
	Type      string   // error class; the front-end truncates it to its own limit
	Message   string   //
	Group     string   // what failures of several jobs have in common, named by the front-end
	Backtrace []string //
	FailedAt  Instant  // time of the first failure
	NextAt    Instant  // when the retry is due; zero when there is none
	Count     uint32   // failures so far, including this one
	Exception bool     // Gearman WORK_EXCEPTION: Data holds its bytes
	Data      []byte   // bytes of a Gearman exception or a Workq fail
}

// Outcome is how a job ended, as reported to clients that wait for it.
type Outcome struct {
	Success bool
	Result  []byte   // data chunks, then the bytes of the completion; or the bytes of a Workq fail
	Failure *Failure // nil on success, and if nothing is known (lease expired, job expired or cancelled)
	Cause   Cause
}

// Cause says why a job ended.
type Cause uint8

// Finished by a worker, out of attempts or lease time, out of time to live, or cancelled by a client.
const (
	Finished Cause = iota
	LeaseRanOut
	Expired
	Cancelled
)

// The failure that an expired reservation is recorded as, if the job's policy counts it as one. Clients of Faktory know
// these words.
const (
	ReservationExpired        = "ReservationExpired"
	ReservationExpiredMessage = "Faktory job reservation expired"
)

// The failure of a job that is dead because too many leases in a row ended without a reply: it may crash its workers.
const (
	Poisonous        = "Poison"
	PoisonousMessage = "%d leases in a row ended without a reply from the worker"
)

// The failure of a job with BrokenFails. The number is that of the job it waited for.
const (
	DependencyFailed        = "DependencyFailed"
	DependencyFailedMessage = "job %d, or one of its children, was not done"
)

// Damaged is the failure of a job that is dead because the store cannot read it any more. Its message is the reason.
const Damaged = "damaged"

// PoisonAfter is the default for how many such leases there may be.
const PoisonAfter = 20
