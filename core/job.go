package core

import (
	"cmp"
	"strings"
	"time"
)

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

// protocolRow is the name of a protocol, and what its clients expect of queues and jobs.
type protocolRow struct {
	name, title    string
	queueLifetime  QueueLifetime
	reusesIDs      bool
	returnsBehind  bool
	endsUnanswered bool
}

// protocolTable has a row for each protocol.
var protocolTable = [...]protocolRow{
	Internal:  {name: "internal", title: "Internal", queueLifetime: QueueUntilRestart},
	Workq:     {name: "workq", title: "Workq", queueLifetime: QueueWhileUsed},
	Gearman:   {name: "gearman", title: "Gearman", queueLifetime: QueueUntilRestart, endsUnanswered: true},
	Faktory:   {name: "faktory", title: "Faktory", queueLifetime: QueueForGood, reusesIDs: true},
	HTTP:      {name: "http", title: "HTTP", queueLifetime: QueueUntilRestart},
	Qless:     {name: "qless", title: "Qless", queueLifetime: QueueUntilRestart},
	Conveyor:  {name: "conveyor", title: "Conveyor", queueLifetime: QueueUntilRestart},
	Beanstalk: {name: "beanstalk", title: "Beanstalk", queueLifetime: QueueWhileHeld},
	SQS:       {name: "sqs", title: "SQS", queueLifetime: QueueUntilRestart, returnsBehind: true},
}

// Protocols lists all protocols, for tables and metrics.
var Protocols = func() (all [len(protocolTable)]Protocol) {
	for i := range all {
		all[i] = Protocol(i)
	}
	return all
}()

// row is the row of the protocol. Stores and nodes of other versions may name one that this version does not know.
func (p Protocol) row() protocolRow {
	if int(p) >= len(protocolTable) {
		return protocolRow{name: "unknown", title: "Unknown", queueLifetime: QueueUntilRestart}
	}
	return protocolTable[p]
}

func (p Protocol) String() string { return p.row().name }

// Title is the name of the protocol for people.
func (p Protocol) Title() string { return p.row().title }

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

// ParseProtocol finds a protocol by its name.
func ParseProtocol(name string) (p Protocol, known bool) {
	for _, p := range Protocols {
		if p.String() == name {
			return p, true
		}
	}
	return Internal, false
}

// QueueLifetime says how long the broker remembers a queue that was created only by submitting jobs to it.
type QueueLifetime uint8

// QueueWhileUsed: until some minutes after its last job. QueueUntilRestart: until the process ends. QueueForGood: after
// a restart too, if one of its jobs was stored. QueueWhileHeld: while it has jobs or HoldQueue keeps it.
const (
	QueueWhileUsed QueueLifetime = iota
	QueueUntilRestart
	QueueForGood
	QueueWhileHeld
)

// QueueLifetime is how long clients of the protocol expect the queues of their jobs to be listed.
func (p Protocol) QueueLifetime() QueueLifetime { return p.row().queueLifetime }

// ReusesIDs reports whether clients of the protocol may reuse the ID of one of their finished jobs that is kept only
// for its outcome. The new job replaces the finished one.
func (p Protocol) ReusesIDs() bool { return p.row().reusesIDs }

// ReturnsBehind reports whether a job of a client of the protocol that becomes ready again after a lease without an
// outcome, or after a failure, is behind the jobs that wait. Other jobs return to their position.
func (p Protocol) ReturnsBehind() bool { return p.row().returnsBehind }

// EndsUnanswered reports whether clients of the protocol are told of a Complete, a Fail and a Report only if it is
// refused.
func (p Protocol) EndsUnanswered() bool { return p.row().endsUnanswered }

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

// ExhaustedFinish: it ends as failed (kept only if RetainUntil or RetainFor is set). ExhaustedBury: it moves to the
// dead set for DeadFor.
const (
	ExhaustedFinish Exhausted = iota
	ExhaustedBury
)

// LeaseEnd says what happens to a job whose lease expires. Stored; never renumbered.
type LeaseEnd uint8

// LeaseEndAttempt: it is ready again, at its original position unless Protocol.ReturnsBehind, or ends as failed once
// Attempts has reached MaxAttempts.
// LeaseEndFail: this counts as a failure like any other, with its backoff (error type "ReservationExpired").
const (
	LeaseEndAttempt LeaseEnd = iota
	LeaseEndFail
)

// OnBroken says what happens to a job when a job it waits for, or a child of that job, ends without being done or is
// dead. Stored; never renumbered.
type OnBroken uint8

// BrokenWaits: the job waits until a client releases it, or until the dead job is put back and done. BrokenReleases:
// the job runs as if the dependency did not exist. BrokenFails: the job is dead, with the failure DependencyFailed.
// BrokenDrops: the job is cancelled.
const (
	BrokenWaits OnBroken = iota
	BrokenReleases
	BrokenFails
	BrokenDrops
)

// UniquePolicy says what happens to a second submission with the same queue and UniqueKey. Stored; never renumbered.
type UniquePolicy uint8

// UniqueCoalesce: the reply names the existing job. UniqueRefuse: ErrNotUnique. UniqueReplace, which is never stored:
// if the existing job waits, it takes body, attributes, tags, priority and ReadyAt from the new job, and the reply
// names it; otherwise ErrNotUnique.
const (
	UniqueNone UniquePolicy = iota
	UniqueCoalesce
	UniqueRefuse
	UniqueReplace
)

// Refuses reports whether a submission is refused if its key belongs to a job that it cannot change.
func (u UniquePolicy) Refuses() bool { return u == UniqueRefuse || u == UniqueReplace }

// Job is what a client submitted. Its later state (attempts, failures, progress, result) is in [JobInfo].
type Job struct {
	Seq uint64 // assigned on admission, never reused; 0 in a submission
	ID  string // the client's own id; empty: the core creates one, see Job.Identity

	Queue      string
	Type       string // what to run; empty in a submission: same as Queue
	Body       []byte
	Tags       []string // at most MaxTags of MaxTagBytes
	Attributes []byte   // the front-end's own fields, opaque to the core
	// trace that the job is part of; front-ends define its form, opaque to the core; at most MaxTraceBytes
	Trace string

	Priority    int64         // higher first, 0 is normal; from MinPriority to MaxPriority
	CreatedAt   Instant       // zero in a submission: now
	ReadyAt     Instant       // not before; zero: at once
	ExpiresAt   Instant       // removed then, whatever its state; zero: never
	StartBefore Instant       // removed if it was not handed out by then; zero: never
	LeaseFor    time.Duration // zero: the default of the worker's protocol
	DeadFor     time.Duration // time in the dead set; zero: no limit

	// Failure is the last of the PriorFails; nil: unknown. The core sets its Count.
	Failure *Failure

	MaxAttempts uint32 // leases before it ends as failed; zero: no limit
	MaxFails    uint32 // failures after which it is exhausted; zero and one: the first is final
	PriorFails  uint32 // failures counted before this submission

	// Cost is how much a lease of the job counts in limits of concurrent leases and of rates; zero: 1. A job with a
	// Cost above a limit is leased when no other lease counts against the limit, or uses the whole burst.
	Cost uint32

	// Timeline, if not zero, keeps a timeline of the job from its submission on. It is the maximum number of entries,
	// from 2 to MaxTimeline: the first entry and the most recent ones.
	Timeline uint16

	Format    Format
	Origin    Protocol
	Backoff   Backoff   // between a failure and the next try
	Exhausted Exhausted // what happens at MaxFails
	LeaseEnd  LeaseEnd  // what happens when a lease expires

	// Own says which of MaxAttempts, MaxFails, Backoff, Exhausted, LeaseFor, ExpiresAt and RetainFor the client has
	// chosen. The others are defaults of its protocol, which a JobPolicy replaces.
	Own PolicyFields

	Unique      UniquePolicy
	UniqueStart bool // the key is free once the job is leased
	Ephemeral   bool // a client waits for it on a connection; never stored, removed with the last such client

	// ScheduledOrder is Workq's order among jobs of equal priority: plain jobs first, then scheduled ones by their
	// time. Otherwise a job joins the end of the queue when it becomes due.
	ScheduledOrder bool

	// SeqOrder keeps the job's place among jobs of equal priority, however often it is delayed, leased or dead: by Seq
	// among jobs with SeqOrder, by the time of submission among other jobs. The core sets CreatedAt. It excludes
	// ScheduledOrder. In an ordered queue the key of a job that returns behind others (Protocol.ReturnsBehind) moves,
	// and the job keeps its place in the key.
	SeqOrder bool

	Tallies  Tallies  // what JobInfo.Tally counts
	OnBroken OnBroken // what happens when a dependency cannot be done; not for ephemeral jobs

	UniqueKey string // one live job per queue and key, see UniqueLabel; empty: none
	// the key is free after this instant even if the job still exists; zero: the key is free once the job is gone
	UniqueUntil Instant
	RetainUntil Instant       // the outcome is kept until then (Workq ttl)
	RetainFor   time.Duration // the outcome is kept for this long after the end

	Parent uint64   // blocked until this job is finished; the parent is closed only when all its children are
	After  []uint64 // blocked until all of these are closed as done
	Batch  uint64   // batch this job belongs to; zero: none

	Schedule    string // name of the schedule that submitted it; set by the core
	CallbackFor uint64 // batch whose callback this is; set by the core

	// Rare has the fields that few jobs have; nil: all are zero. Jobs share it: it is replaced and never changed.
	Rare *RareFields
}

// RareFields are fields of a job that few jobs have, so that the others are smaller.
type RareFields struct {
	Deadline Instant // by when the client wants it done, see Job.IsLate; the core does not act on it; zero: none
	RerunOf  uint64  // the job that this job is a copy of; set by the core, see Resubmit
}

// Rares are the fields in Rare.
func (j *Job) Rares() RareFields {
	if j.Rare == nil {
		return RareFields{}
	}
	return *j.Rare
}

// SetRares replaces the fields in Rare.
func (j *Job) SetRares(f RareFields) {
	if j.Rare = nil; f != (RareFields{}) {
		j.Rare = &f
	}
}

// Tallies says which counters a job has besides its attempts and failures. Stored; never renumbered.
type Tallies uint8

// TallyMoves: Tally.Releases, Timeouts, Burials and Kicks. TallyFirstLease: Tally.FirstLeasedAt.
const (
	TallyMoves Tallies = 1 << iota
	TallyFirstLease

	AllTallies = 1<<iota - 1
)

// Tally holds the counters of a job that its Tallies select. The attempts of such a job are also stored at each
// lease.
type Tally struct {
	Releases      uint32 // moves out of a lease, for example when its worker gives it back
	Timeouts      uint32 // leases that ran out
	Burials       uint32 // moves to the dead set
	Kicks         uint32 // Enqueue
	FirstLeasedAt Instant
}

// Identity is the id of the job in protocols with textual ids: the client's id, or the id that the core created.
func (j *Job) Identity() string {
	if j.ID != "" {
		return j.ID
	}
	return MintedID(j.Seq, j.CreatedAt)
}

// Later moves the times that count from the submission, for a copy of the job that is submitted later; ReadyAt is not
// one of them. Times that are not set stay zero.
func (j *Job) Later(move func(Instant) Instant) {
	rare := j.Rares()
	for _, at := range []*Instant{&j.ExpiresAt, &j.StartBefore, &j.UniqueUntil, &j.RetainUntil, &rare.Deadline} {
		if *at != 0 {
			*at = move(*at)
		}
	}
	j.SetRares(rare)
}

// IsLate reports whether the job had not ended by its Deadline. endedAt is its end; zero: it has not ended yet.
func (j *Job) IsLate(endedAt, now Instant) bool {
	deadline := j.Rares().Deadline
	return deadline != 0 && cmp.Or(endedAt, now) > deadline
}

// FailureAfter is the last failure of a job that has failed so many times, if the job was submitted with it.
func (j *Job) FailureAfter(fails uint32) *Failure {
	if fails != j.PriorFails {
		return nil
	}
	return j.Failure
}

// InQueue puts the job into a queue. If the job's type was the name of its old queue, the type becomes the name of
// the new one.
func (j *Job) InQueue(queue string) {
	if j.Type == j.Queue {
		j.Type = queue
	}
	j.Queue = queue
}

// Kept reports whether the outcome is kept after the end of the job.
func (j *Job) Kept() bool { return j.RetainUntil != 0 || j.RetainFor != 0 }

// The prefixes of unique keys that clients of Gearman and Workq give, which keep their key spaces apart. Stored; never
// changed.
const (
	GearmanKey = "\x02u"
	WorkqKey   = "\x01"
)

// UniqueLabel is a unique key as its client gave it.
func UniqueLabel(key string) string {
	if given, ok := strings.CutPrefix(key, GearmanKey); ok {
		return given
	}
	return strings.TrimPrefix(key, WorkqKey)
}

// Failure describes the last failure of a job, which may be an expired reservation.
type Failure struct {
	Type      string // error class; the front-end truncates it to its own limit
	Message   string
	Group     string // joins similar failures of several jobs; the front-end names it
	Backtrace []string
	FailedAt  Instant // first failure of the job
	NextAt    Instant // when the retry is due; zero when there is none
	Count     uint32  // failures so far, including this one
	Exception bool    // Gearman WORK_EXCEPTION: Data holds its bytes
	Data      []byte  // bytes of a Gearman exception or a Workq fail
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

// The failure that is recorded for an expired lease if the job has LeaseEndFail. Clients of Faktory know these words.
const (
	ReservationExpired        = "ReservationExpired"
	ReservationExpiredMessage = "Faktory job reservation expired"
)

// The failure of a job that is dead because too many leases in a row ended without a reply from the worker. The job
// may crash its workers.
const (
	Poisonous        = "Poison"
	PoisonousMessage = "%d leases in a row ended without a reply from the worker"
)

// PoisonAfter is the default limit of such leases in a row.
const PoisonAfter = 20

// The failure of a job with BrokenFails. The number is the job it waited for.
const (
	DependencyFailed        = "DependencyFailed"
	DependencyFailedMessage = "job %d, or one of its children, was not done"
)

// Damaged is the failure of a job that is dead because the store can no longer read it. The message of the failure is
// the reason.
const Damaged = "damaged"
