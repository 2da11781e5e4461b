package core

import "time"

// Commit numbers the batches that the store makes durable, from 1. Zero: nothing to wait for.
type Commit uint64

// ReplyKind says what a reply is; the comments of the operations say which of them follow on what.
type ReplyKind uint8

// The kinds. Assigned and later ones may come without a new operation, some time after the one that asked.
const (
	Failed ReplyKind = iota
	Accepted
	Submitted
	NothingReady
	Inspected
	Listed
	Queues
	Counted
	MetaReply
	Purged
	BatchReply
	Answered // what the operation asked for is in Answer

	Assigned
	Reading // Lease.Late: the job is leased, its body is being read
	TimedOut
	Woken
	Progressed
	DataSent
	Warned
	Ended
	EventReply
)

// Reply is one answer or push for one client. Its slices and pointers are shared and read-only.
type Reply struct {
	Kind   ReplyKind
	Tag    uint64 // of the operation that asked
	Commit Commit // must be on disk before this leaves
	Err    error  // Failed: one of Errors
	Seq    uint64 // the job
	Cursor uint64 // Listed, Purged: not zero while there may be more
	N      int    // Purged, and Accepted after Cancel: how many jobs

	Existing bool // Submitted: coalesced onto a job that was there
	Cold     bool // inside the core: the store has more of it than memory; never seen outside
	NoBody   bool // inside the core: with Cold, bodies are not wanted

	Job      *Job     // Assigned, Inspected; Ended where the core still has it; Failed: the callback that spoils a batch
	Lease    Grant    // Assigned
	Progress Progress // Progressed
	Data     []byte   // DataSent, Warned, Marked; Ended: the bytes of the completion alone, without earlier chunks
	Outcome  *Outcome // Ended
	Info     *JobInfo // Inspected

	Jobs    []JobInfo   // Listed
	Queues  []QueueInfo // Queues
	Stats   *Stats      // Counted
	Replies []Reply     // Accepted after Atomic: one for each operation
	Index   int         // Failed after Atomic: which operation was refused

	Batch *BatchInfo // Grouped

	*Answer // replies of operations that are rare; nil in all others
}

// Answer is what rare operations answer with. Its fields are read as if they were the Reply's, which keeps replies small:
// only when the operation's comment says that they are set.
type Answer struct {
	Clients    []ClientInfo // ListClients
	NextClient ClientID     // ListClients: not zero while there are more
	Workers    []WorkerInfo // ListWorkers

	Schedules []Schedule // PutSchedule, ListSchedules

	NextCursor string // Find: where the list goes on; empty on the last page
	Stopped    bool   // Find: the page is short because enough jobs were looked at
	Count      int    // Find with WithCount
	CountExact bool   // Find with WithCount
	Scan       *Find  // inside the core: records have to be read; never seen outside

	Names []NameCount // ListNames

	Event Event // Subscribe

	Series       *Series        // ReadSeries
	Histograms   Histograms     // ReadHistograms
	Documents    []MetaEntry    // ReadDocuments
	DocumentScan *ReadDocuments // inside the core: documents have to be read; never seen outside
}

// Grant is what a worker that was handed a job is told beyond the job itself.
type Grant struct {
	Epoch      uint32        // of this lease
	LeasedAt   Instant       // what Condition.LeasedAt means
	LeaseFor   time.Duration // zero: no limit
	EnqueuedAt Instant       // when it last became ready
	Attempts   uint32        // hand-outs, this one included
	Fails      uint32
	Failure    *Failure // of the last try; nil if there was none
}

// JobInfo is all that is known of one job.
type JobInfo struct {
	Seq        uint64
	Cursor     uint64 // Listed: where the list goes on behind this job
	Job        *Job   // nil in a brief answer
	Queue      string
	Type       string
	Tags       []string
	State      State
	Reason     WaitReason
	Priority   int32
	Origin     Protocol
	CreatedAt  Instant
	ReadyAt    Instant // when it became, or will become, ready; of a dead job: when it died
	ExpiresAt  Instant
	LeaseUntil Instant
	LeasedAt   Instant
	Worker     string // id of the worker that holds it
	Attempts   uint32
	Fails      uint32
	LostLeases int    // leases in a row that ended without a word of the worker
	Epoch      uint32 // raised by each lease; what Condition.Epoch means
	Rerun      bool   // Leased: it runs once more when this run ends
	BodyBytes  int
	Requeued   bool    // it was leased before and is not now (Workq's PENDING)
	ChangedAt  Instant // when it came into its state, as far as is known
	Broken     bool    // Blocked, and a job it waited for is gone without being done: it needs Enqueue or Cancel
	Ephemeral  bool
	Watchers   int
	Kept       bool // its outcome is kept after its end
	Progress   Progress
	Failure    *Failure
	Outcome    *Outcome // Done with a kept outcome
	DoneFailed bool     // Done, as failed

	FailureGroup string   // retrying and dead jobs: see Filter.FailureGroup
	Waiting      []uint64 // Blocked: the jobs it waits for
	Dependents   int      // jobs that wait for this one
	Children     int      // children not closed yet
}

// QueueInfo is a row of counters of one queue.
type QueueInfo struct {
	Name              string
	High, Normal, Low int // ready, by the sign of their priority
	Scheduled         int
	Leased            int
	Retrying          int
	Blocked           int
	Done              int
	Dead              int
	Workers           int // registrations (Register)
	Waiting           int // clients that wait for a lease of this queue without a registration
	Paused            bool
	Limits            Limits
	OldestAge         time.Duration // of the ready job that has waited longest
	InRate, OutRate   float64       // jobs a second that came, and that were done or failed, over the last minute; see MaxDetailed
	NextEnqueuedAt    Instant       // when the next job out became ready; zero if none

	Counts QueueCounts
}

// QueueCounts counts what happened in a queue since the process started.
type QueueCounts struct {
	Submitted [len(Protocols)]uint64 // by protocol of the job
	Leased    [len(Protocols)]uint64 // by protocol of the worker, as are the rest
	Done      [len(Protocols)]uint64
	Failed    [len(Protocols)]uint64
	Expired   uint64 // unfinished jobs whose time was over
	Released  uint64 // leases given back, or lost with their connection
	Dead      uint64 // moves to the dead set
}

// Ready is the number of jobs that could be handed out.
func (q *QueueInfo) Ready() int { return q.High + q.Normal + q.Low }

// BatchInfo is what is known of a batch.
type BatchInfo struct {
	Number      uint64
	Parent      uint64
	Description string
	CreatedAt   Instant
	Total       int
	Pending     int // not done yet
	Failed      int // of the pending: failed at least once
	Committed   bool
	Complete    CallbackState
	Success     CallbackState
}

// CallbackState is where a batch's callback is.
type CallbackState uint8

// Not due yet; let go, also if it is gone since without being done; done.
const (
	CallbackPending CallbackState = iota
	CallbackEnqueued
	CallbackDone
)
