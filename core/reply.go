package core

import (
	"cmp"
	"time"
)

// Commit is the number of a commit batch of the store, from 1. Zero: nothing to wait for.
type Commit uint64

// ReplyKind is the kind of a reply; the comments of the operations say which kinds follow.
type ReplyKind uint8

// The kinds. Assigned and the kinds below it may come some time after the operation that requested them.
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
	Answered // the result is in Answer

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

// Reply is one reply or push for one client. Its slices and pointers are shared and read-only.
type Reply struct {
	Kind     ReplyKind
	Existing bool // Submitted: coalesced with an existing job

	// CancelRequested, in Accepted: after Report, the worker has been asked to stop the job; after Cancel, a worker now
	// is.
	CancelRequested bool

	Tag    uint64 // of the operation
	Commit Commit // must be on disk before the reply leaves
	Err    error  // Failed: one of Errors
	Seq    uint64 // the job
	// Listed, Purged, Accepted after DropQueue: not zero while there may be more. Package remote uses it in Submitted.
	Cursor uint64
	// Purged, and Accepted after Cancel: how many jobs; Assigned, Reading: how many more replies of the lease follow
	N int

	// Assigned, Inspected; Ended if the core still has it; Submitted: see Submit.Window; Failed: the callback that
	// makes a batch invalid
	Job      *Job
	Lease    Grant     // Assigned
	Progress *Progress // Progressed
	Data     []byte    // DataSent, Warned, MetaReply; Ended: the bytes of the completion, without earlier chunks
	Outcome  *Outcome  // Ended
	Info     *JobInfo  // Inspected; Submitted: see Submit.Info

	Jobs   []JobInfo   // Listed
	Queues []QueueInfo // Queues
	Stats  *Stats      // Counted

	Batch *BatchInfo // BatchReply

	*Answer // for rare operations; otherwise nil
}

// Answer holds the results of rare operations, so that other replies stay small. A field is only valid if the comment
// of the operation says that it is set.
type Answer struct {
	Clients    []ClientInfo // ListClients
	NextClient ClientID     // ListClients: not zero while there may be more
	Workers    []WorkerInfo // ListWorkers
	NextWorker uint64       // ListWorkers: not zero while there may be more

	Replies []Reply // Accepted after Atomic: one for each operation
	Index   int     // Failed after Atomic, unless the list is too long: the operation that was refused

	Schedules []Schedule // PutSchedule, ListSchedules

	Limits    []LimitInfo // ListLimits
	Sharings  []Sharing   // ListLimits
	Keys      []KeyUse    // ListLimits: those with most ready jobs, then with most leased ones
	NextLimit LimitID     // ListLimits: not zero while there may be more

	Policies []PolicyInfo // ListPolicies

	NextCursor string // Find: start of the next page; empty on the last page
	Stopped    bool   // Find: the page is short because the scan limit was reached
	Looked     int    // Find: jobs whose records were read, if the filter needs records
	Count      int    // Find with WithCount
	CountExact bool   // Find with WithCount

	Failures []FailureCount // Find with WithFailures; nil: the filter has no such counts

	QueueValues []QueueValue // ListQueueValues

	Batches   []BatchInfo // ListBatches
	NextBatch uint64      // ListBatches: From of the next page; zero on the last one

	Finished []FinishedJob // ListFinished

	Event Event // Subscribe

	Series     *Series     // ReadSeries
	Histograms Histograms  // ReadHistograms
	Documents  []MetaEntry // ReadDocuments
}

// Grant describes a lease to the worker that received it.
type Grant struct {
	// Epoch increases with each lease and change of the job. It names this lease, or the job as it is: none of the 255
	// leaders of a cluster before and after this one gives out the same one, even if what this one gave out is lost.
	Epoch      uint32
	LeasedAt   Instant       // for Condition.LeasedAt
	LeaseFor   time.Duration // zero: no limit
	EnqueuedAt Instant       // when it last became ready
	Attempts   uint32        // leases, including this one
	Fails      uint32
	Failure    *Failure // of the previous try; nil if there was none
}

// JobInfo is all information about one job.
type JobInfo struct {
	Seq        uint64
	Cursor     uint64 // Listed: continues after this job
	Job        *Job   // nil with Brief
	Queue      string
	Type       string
	Tags       []string
	Trace      string // Job.Trace
	State      State
	Reason     WaitReason
	Priority   int64
	Origin     Protocol
	CreatedAt  Instant
	ReadyAt    Instant // when it became or will become ready; for a dead job: when it died
	ExpiresAt  Instant
	LeaseUntil Instant
	LeasedAt   Instant
	Worker     string   // id of the worker that holds the lease
	HeldOver   Protocol // of the client that leased it; Internal: not leased
	// address of the connection that holds the lease; empty: the lease belongs to a worker id, or the job is not leased
	HeldFrom   string
	Attempts   uint32
	Fails      uint32
	Tally      Tally
	MovedFrom  string // the queue from which MoveSpent has moved it; empty: none, or a client has moved it since then
	MovedAfter uint32 // Attempts at that time
	LostLeases int    // leases in a row that ended without a reply from the worker
	Epoch      uint32 // see Grant.Epoch
	Rerun      bool   // Leased: it runs again when this run ends

	CancelRequestedAt Instant // Leased: when its worker was asked to stop; zero: it was not

	BodyBytes  int
	Requeued   bool    // it was leased before and is not leased now (Workq's PENDING)
	ChangedAt  Instant // when it entered its state, if known
	Broken     bool    // Blocked, and a job it waits for ended without being done: it needs Enqueue or Cancel
	Ephemeral  bool
	Unstored   bool // a policy keeps it in memory only; see JobPolicy.Unstored
	Watchers   int
	Kept       bool // its outcome is kept after its end
	Progress   Progress
	Failure    *Failure
	Outcome    *Outcome // Done with a kept outcome
	Damage     string   // why the store cannot read a part of it; empty: it is readable
	DoneFailed bool     // Done, as failed

	Timeline *Timeline // Inspect with Timeline, if the job has one

	// Only from Inspect, for unfinished jobs in an ordered queue: the job's key, and the number of earlier jobs of that
	// key that have not ended.
	Key    string
	Behind int

	Wait *Wait // Inspect: of a ready job with the reason WaitLimit or WaitOrder

	FailureGroup string   // of retrying and dead jobs: see Filter.FailureGroup
	Version      string   // of leased, retrying and dead jobs: Lease.Version of the last lease
	Waiting      []uint64 // Blocked, or Dead with BrokenFails: the jobs it waits for
	Dependents   int      // jobs that wait for this one; counted for Inspect with Dependents only
	Children     int      // children that are not closed
}

// InfoOf is what the submission of a job says about it: its state as it was admitted, with nothing that happened later.
func InfoOf(j *Job) JobInfo {
	i := JobInfo{
		Seq: j.Seq, Job: j, Queue: j.Queue, Type: cmp.Or(j.Type, j.Queue), Tags: j.Tags, Trace: j.Trace, State: Ready,
		Priority: j.Priority, Origin: j.Origin, CreatedAt: j.CreatedAt, ReadyAt: j.CreatedAt, ExpiresAt: j.ExpiresAt,
		Ephemeral: j.Ephemeral, BodyBytes: len(j.Body),
	}
	switch {
	case len(j.After) > 0 || j.Parent != 0:
		i.State = Blocked
	case j.ReadyAt > j.CreatedAt:
		i.State, i.ReadyAt = Scheduled, j.ReadyAt
	}
	return i
}

// LeasedInfo is the information about the job of an Assigned reply, for the worker that leased it.
func (r *Reply) LeasedInfo(worker string) JobInfo {
	i, l := InfoOf(r.Job), &r.Lease
	i.Seq, i.State, i.Worker, i.Failure = r.Seq, Leased, worker, l.Failure
	i.ReadyAt, i.LeasedAt, i.ChangedAt, i.LeaseUntil = l.EnqueuedAt, l.LeasedAt, l.LeasedAt, l.LeasedAt.Add(l.LeaseFor)
	i.Attempts, i.Fails, i.Epoch = l.Attempts, l.Fails, l.Epoch
	return i
}

// QueueInfo describes one queue.
type QueueInfo struct {
	Name              string
	High, Normal, Low int // ready jobs by the sign of their priority
	Scheduled         int
	Leased            int
	Retrying          int
	Blocked           int
	Done              int
	Dead              int
	Registrations     int // by Register
	Waiting           int // clients that wait for a lease from this queue without a registration

	// Workers that may take jobs of this queue: they are registered for it, wait for a lease from it, hold a job of
	// it, or have asked for a job of it within the last minute and are still connected. A worker with a name counts
	// once, whatever the number of its connections.
	Workers int

	Paused      bool
	PausedUntil Instant       // zero: until it is resumed
	PausedFor   time.Duration // length of the pause, from PauseQueue to PausedUntil
	KnownSince  Instant       // start of all counts here
	Max         QueueMax
	Throttle    Throttle      // of the limit of the whole queue
	OldestAge   time.Duration // of the ready job that has waited longest
	// Jobs a second that came in, and that were done or failed, over the last minute; see MaxDetailed.
	InRate, OutRate float64
	Measured        bool    // InRate and OutRate are known
	NextEnqueuedAt  Instant // when the next job to be leased became ready; zero: no ready job

	Counts QueueCounts

	Sharing *Sharing   // nil: no sharing; only from InspectQueue
	Spent   *SpentRule // nil: none; only from InspectQueue
}

// QueueValue is a queue and one of its numbers.
type QueueValue struct {
	Name  string
	Value int64
}

// QueueCounts counts what happened in a queue since the process started.
type QueueCounts struct {
	Submitted [len(Protocols)]uint64 // by protocol of the job
	Leased    [len(Protocols)]uint64 // by protocol of the worker, as are Done and Failed
	Done      [len(Protocols)]uint64
	Failed    [len(Protocols)]uint64
	Cancelled [len(Protocols)]uint64 // by protocol of the client, as are the counters below
	Paused    [len(Protocols)]uint64 // pauses, and ends of pauses
	Expired   uint64                 // unfinished jobs removed at their ExpiresAt or StartBefore
	Released  uint64                 // leases given back, or ended with their connection
	Dead      uint64                 // moves to the dead set
}

// Ready is the number of ready jobs.
func (q *QueueInfo) Ready() int { return q.High + q.Normal + q.Low }

// BatchInfo describes a batch.
type BatchInfo struct {
	Number      uint64
	Parent      uint64
	Description string
	Owner       string
	CreatedAt   Instant
	ExpiresAt   Instant // open: removed or closed again then; finished: kept until then; zero: no such time
	Total       int
	Pending     int  // not done yet
	Failed      int  // pending jobs that have failed at least once
	Lost        int  // pending jobs that have ended as failed
	Children    int  // child batches
	Closed      bool // by CloseBatch
	Complete    CallbackState
	Success     CallbackState
	CompleteJob uint64 // the callback; zero: none
	SuccessJob  uint64
}

// CallbackState is the state of a batch's callback.
type CallbackState uint8

// Not due yet; released, even if the job was removed later without being done; done.
const (
	CallbackPending CallbackState = iota
	CallbackEnqueued
	CallbackDone
)
