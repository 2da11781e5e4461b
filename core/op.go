package core

import (
	"time"
)

// Op is one request to the broker. Every operation has a Tag, a number chosen by the caller. Each reply to the
// operation carries it, including replies that come much later (a result, a job for a waiting lease).
//
// The caller may reuse an operation once Do has returned, but not the jobs, bodies, results and failures that it points
// to: the core owns them from then on. Strings must not alias a network buffer.
//
// To add an operation, embed changing or reading in its struct, write its TagOf at the end of the file that declares
// it, and handle it in the machine's apply.
type Op interface {
	// TagOf returns the operation's Tag, or zero for an operation without a reply.
	TagOf() uint64

	// ReadOnly reports whether the operation changes no stored data. The broker still answers read-only operations
	// after the store has failed and while it shuts down.
	ReadOnly() bool
}

// changing is embedded in operations that change stored data.
type changing struct{}

// ReadOnly implements Op.
func (changing) ReadOnly() bool { return false }

// reading is embedded in operations that change no stored data.
type reading struct{}

// ReadOnly implements Op.
func (reading) ReadOnly() bool { return true }

// Ref names a job: by Seq if that is not zero, otherwise by ID, which may be a client's id, a minted id or an alias.
type Ref struct {
	Seq uint64
	ID  string
}

// FinishAuthority says which clients may finish a job or report on it.
type FinishAuthority uint8

// ByHolder: only the connection that holds the lease; others get ErrNotHolder (ErrNotFound if there is no such job).
// ByLeased: any connection while the job is leased, otherwise ErrNotLeased; Complete and Fail are also accepted for a
// ready job that has been neither leased nor changed since the start, because the previous process may have leased it
// and lost that lease. ByAnyone: any connection, in any unfinished state.
const (
	ByHolder FinishAuthority = iota
	ByLeased
	ByAnyone
)

// Holder says who owns a lease.
type Holder uint8

// HeldByConn: the lease ends with the connection. HeldByWorker and HeldByNobody: it ends after LeaseFor.
const (
	HeldByConn Holder = iota
	HeldByWorker
	HeldByNobody
)

// Watch says which events of a job a client receives.
type Watch uint8

// WatchStream: progress, data, warnings and the outcome as they arrive (Gearman foreground). WatchOutcome: the outcome
// only, until a deadline (Workq result). WatchRun: the outcome of an ephemeral job. The job is cancelled at the
// deadline or, if it is leased then, when the lease expires (Workq run). An ephemeral job is cancelled when the last
// client that watches it with WatchStream or WatchRun leaves; other clients that wait for its outcome are notified.
const (
	WatchNone Watch = iota
	WatchStream
	WatchOutcome
	WatchRun
)

// Submit admits a job. Reply: Submitted with Seq, and Existing if the job was coalesced with an existing one; or Failed
// with ErrDuplicate (Seq is the existing job, Lease.Epoch its lease if it has one), ErrNotUnique, ErrFull (also if it
// would coalesce with a job for which MaxWatchers clients wait, and waits for it too), ErrNoBatch,
// ErrInvalid (a name that is too long, a dependency on a number that was never assigned, an ephemeral job in a batch or
// without WatchStream or WatchRun), or ErrDiskFull. Later, for a watching client: Progressed, DataSent, Warned, Ended,
// and TimedOut for WatchRun.
type Submit struct {
	changing
	Tag   uint64
	Job   *Job
	Watch Watch
	Info  bool // the reply has Info, unless Existing
	Again Again

	// DebounceMs bounds ReadyAt of a submission with UniqueReplace: the job is due at most this many milliseconds after
	// its first submission. Zero: no bound. It takes only four bytes because every submission has it.
	DebounceMs uint32

	Deadline Instant     // WatchRun: cancel then
	Meta     []MetaEntry // stored in the same commit

	// Window reserves the unique key in the queue until then, whatever happens to the job: the reservation outlives the
	// job, its queue and a restart. A submission that coalesces with an ended job gets the Seq of that job and, in Job,
	// its names; a submission that would watch the ended job gets ErrNotUnique. Not for ephemeral jobs. The key is held
	// longer if Job.UniqueUntil is not set or later. A lease of the job waits for the commit that stores the
	// reservation: otherwise both could be lost together after the job was done, and it would be submitted again.
	Window Instant
}

// Again says that a client asks again for what an earlier leader had admitted as Job.Seq, and had in memory only.
type Again uint8

// AgainNo: a new submission. AgainAdmit: if there is no such job any more, it is admitted under its number. AgainJoin:
// there must be such a job, otherwise the reply is Failed with ErrNotFound. If there is one, the reply has Existing.
const (
	AgainNo Again = iota
	AgainAdmit
	AgainJoin
)

// Due returns when the job is due if it was first submitted at first; zero: at once.
func (o *Submit) Due(first, now Instant) Instant {
	if o.DebounceMs == 0 || o.Job.ReadyAt <= now {
		return o.Job.ReadyAt
	}
	return min(o.Job.ReadyAt, first.Add(o.Debounce()))
}

// Debounce is DebounceMs as a duration.
func (o *Submit) Debounce() time.Duration { return time.Duration(o.DebounceMs) * time.Millisecond }

// MetaEntry is a named value of a front-end. It is stored in the same commit as the operation that carries it. A nil
// Value removes it. Names start with the owner's name and a slash.
type MetaEntry struct {
	Name  string
	Value []byte
}

// Complete finishes a job as done. Reply: Accepted, or Failed with ErrNotFound, ErrConflict, ErrNotLeased,
// ErrNotHolder, or ErrFinished.
type Complete struct {
	changing
	Tag       uint64
	Ref       Ref
	If        Condition
	Authority FinishAuthority
	Result    []byte
}

// Fail reports a failure. The job's policy decides whether and when there is another try, unless RetryAt or Final
// decide it. Reply as for Complete.
type Fail struct {
	changing
	Tag       uint64
	Ref       Ref
	If        Condition
	Authority FinishAuthority
	Failure   *Failure // the core sets Count, FailedAt and NextAt
	RetryAt   Instant  // when the next try, if any, is due; zero: after the job's backoff
	Final     bool     // there is no further try, even if the job has tries left
}

// Report records the progress of a job; with ByAnyone also after its end while it is kept. Watching clients receive
// Progressed. Reply: Accepted, with CancelRequested if the worker is asked to stop, or Failed as for Complete.
type Report struct {
	changing
	Tag         uint64
	Ref         Ref
	If          Condition
	Authority   FinishAuthority
	Progress    Progress
	ExtendUntil Instant // the lease is extended to this time if it would end earlier; zero: unchanged
	// the lease ends then, even if that is earlier than before; at once if it has passed; zero: unchanged
	LeaseUntil Instant
	Heartbeat  bool // the report only extends the lease; Progress is ignored
}

// Progress is Num of Den. Text is the worker's description.
type Progress struct {
	Num, Den  uint32
	Verbatim  []byte // the bytes of a Gearman WORK_STATUS after the handle, passed on unchanged; nil: none
	Text      string
	UpdatedAt Instant // set by the core
}

// SendData sends bytes of a running job to its watching clients: data (part of the result) or a warning (not part of
// it). Reply: Accepted, or Failed as for Complete.
type SendData struct {
	changing
	Tag       uint64
	Ref       Ref
	Authority FinishAuthority
	Warning   bool
	Data      []byte
}

// Await waits for the outcome of a job; the outcome of a dead job is the failure that made it dead. Reply: Ended,
// TimedOut at Deadline (at once if Deadline is zero and the job is unfinished), or Failed with ErrNotFound or ErrFull
// (MaxWatchers).
type Await struct {
	reading
	Tag      uint64
	Ref      Ref
	Deadline Instant
}

// Release gives a lease back as if it had never been granted: the job returns to its original position, and no attempt
// is counted. Epoch is Grant.Epoch. Reply: Accepted, or Failed with ErrNotFound, ErrConflict or ErrNotLeased (also if
// the job has a newer lease). It is for jobs whose Assigned reply could not be delivered.
type Release struct {
	changing
	Tag   uint64
	Ref   Ref
	If    Condition
	Epoch uint32
}

// Register announces that this client can work for a queue, which is created if necessary. No reply. LeaseFor limits
// each job it takes; zero: no limit. Each further Register for the queue counts the worker once more.
type Register struct {
	reading
	Queue    string
	LeaseFor time.Duration
}

// Unregister revokes Register for one queue or (All) for every queue; the client's leased jobs of that queue are
// released. No reply.
type Unregister struct {
	reading
	Queue string
	All   bool
}

// Sleep requests one Woken reply when a job for the client's registrations may be available: at once if there is one.
// If there is no job, the time limits that Register or Lease set for the jobs held by the client no longer apply; only
// the jobs' own LeaseFor does.
type Sleep struct {
	reading
	Tag uint64
}

// CreateQueue creates a queue that exists until it is dropped. Reply: Accepted.
type CreateQueue struct {
	changing
	Tag   uint64
	Queue string
}

// DropQueue removes a queue with its unfinished jobs; clients that watch them get Ended. It removes at most Limit jobs
// a call (zero: 1,000). Reply: Accepted, with a Cursor that is not zero while there are more jobs; repeat the operation
// with this Cursor; or Failed with ErrNoQueue, or ErrBusy while workers are registered or jobs leased. FoldCase
// compares the name without regard to case.
type DropQueue struct {
	changing
	Tag      uint64
	Queue    string
	FoldCase bool
	Limit    int
	Cursor   uint64
}

// PauseQueue stops or resumes handing out jobs of a queue. A pause ends after For, if that is not zero. Reply:
// Accepted, also for an unknown queue, which stays unknown.
type PauseQueue struct {
	changing
	Tag    uint64
	Queue  string
	Paused bool
	For    time.Duration
}

// SetQueueMax bounds the length of a queue; submissions beyond get ErrFull. Reply: Accepted, even if the queue does
// not exist; then the bound is not stored (spec gearman 3).
type SetQueueMax struct {
	changing
	Tag   uint64
	Queue string
	Max   QueueMax
}

// QueueMax bounds the length of a queue: a submission of high, normal or low priority is refused while the queue has
// this many or more unfinished jobs of all priorities, including running ones. Zero is no bound.
type QueueMax struct{ High, Normal, Low uint32 }

// Of returns the bound for jobs of a priority.
func (m *QueueMax) Of(priority int64) uint32 {
	switch {
	case priority > 0:
		return m.High
	case priority == 0:
		return m.Normal
	}
	return m.Low
}

// Drain stops (On) or resumes handing out jobs of all queues: waiting leases keep waiting, and results are still
// accepted. With RefuseJobs, submissions fail with ErrDraining until Drain is called without it; this does not depend
// on On. Reply: Accepted. It is not stored: a restart ends it.
type Drain struct {
	changing
	Tag        uint64
	On         bool
	RefuseJobs bool
}

// Purge removes jobs: of one queue (or all if empty), of one origin (or all if Internal), in the given states (or all
// if empty). It removes at most Limit jobs per call (zero: 1,000), starting after Cursor. Reply: Purged with N, and a
// Cursor that is not zero while there are more. With Drop, the last page also removes the queue's settings, and hides
// the queue from lists until a job becomes ready in it or a client names it again.
type Purge struct {
	changing
	Tag    uint64
	Queue  string
	Origin Protocol
	States []State
	Cursor uint64
	Limit  int
	Drop   bool
}

// ResetCounters sets the totals and the history of one front-end's workers to zero. Reply: Accepted.
type ResetCounters struct {
	changing
	Tag    uint64
	Origin Protocol
}

// Inspect requests all information about one job. Reply: Inspected, or Failed with ErrNotFound. ByUnique looks up
// UniqueKey (in Queue, or in any queue if Queue is empty) instead of Ref. Brief leaves Job nil instead of reading the
// store. Timeline reads the job's timeline too. Dependents counts the jobs that wait for this one, in a time that grows
// with their number.
type Inspect struct {
	reading
	Tag        uint64
	Ref        Ref
	ByUnique   bool
	UniqueKey  string
	Queue      string
	Brief      bool
	Timeline   bool
	Dependents bool
}

// ListJobs lists jobs in a state. With a Queue and State Ready or Scheduled: in order, from Offset. Otherwise: of all
// queues (or one) in an unspecified but stable order, after Cursor, looking at a limited number of jobs per call.
// Reply: Listed, with a Cursor that is not zero while there may be more; or Failed with ErrNoQueue for an unknown
// Queue.
type ListJobs struct {
	reading
	Tag    uint64
	Queue  string
	State  State // Gone: any
	Offset int
	Cursor uint64
	Limit  int // at most 1,000; zero: 100
	Brief  bool

	// NoBody is for lists that need more than Brief, but not Body, Failure and Outcome. Parts of these three that are
	// not in memory are not read. A page by Cursor ends early after many reads.
	NoBody bool
}

// ListQueues lists the queues whose names start with Prefix and come after After, in byte order, from Offset. Limit
// zero lists all queues, which takes long if there are many; list pages with After instead. Busiest lists the queues
// with series and histograms of their own, at most MaxDetailed; the other fields are then ignored. Reply: Queues.
type ListQueues struct {
	reading
	Tag     uint64
	Prefix  string
	After   string // empty: from the first
	Offset  int
	Limit   int
	Busiest bool
}

// ListQueueValues is ListQueues with only one number of each queue, which is cheap. Callers that sort queues by that
// number use it to choose a page. Reply: Answered with QueueValues.
type ListQueueValues struct {
	reading
	Tag    uint64
	Prefix string
	After  string // empty: from the first
	Limit  int    // zero: all
	Of     QueueMeasure
}

// QueueMeasure selects a number of a queue.
type QueueMeasure uint8

// The measures. QueueNextAt is when the next job to be leased became ready, as an Instant; the largest number if no job
// is ready.
const (
	QueueReady QueueMeasure = iota
	QueueScheduled
	QueueLeased
	QueueRetrying
	QueueBlocked
	QueueDone
	QueueDead
	QueueNextAt
)

// InspectQueue requests one queue. Reply: Queues with one row, or Failed with ErrNoQueue.
type InspectQueue struct {
	reading
	Tag   uint64
	Queue string
}

// LastCommit asks which commit makes everything durable that has been decided so far. It changes nothing, and a commit
// is made only if there is something to store. Reply: Accepted with Commit; zero if everything is durable.
type LastCommit struct {
	reading
	Tag uint64
}

// ReadStats requests the counters. Reply: Counted.
type ReadStats struct {
	reading
	Tag uint64
}

// ReadMeta requests a stored value. Reply: MetaReply with Data (nil if there is none).
type ReadMeta struct {
	reading
	Tag  uint64
	Name string
}

// WriteMeta stores values. Reply: Accepted.
type WriteMeta struct {
	changing
	Tag     uint64
	Entries []MetaEntry
}

// OpenBatch creates a batch that jobs can join, under Parent if that is not zero. The Complete callback runs once every
// job of the batch and of its children has been executed once, Success once all are done; both wait for CloseBatch.
// Reply: BatchReply with the batch's number in Seq.
type OpenBatch struct {
	changing
	Tag         uint64
	Parent      uint64
	Description string
	Owner       string // who opens it; front-ends use it for their rules
	Complete    *Job   // nil: none
	Success     *Job   // nil: none
	OpenUntil   Instant
}

// CloseBatch closes a batch to submissions from outside and allows its callbacks to run. Reopen allows more
// submissions, in any state of the batch; a callback that was released is not released again. Reply: Accepted, or
// Failed with ErrNoBatch.
type CloseBatch struct {
	changing
	Tag    uint64
	Batch  uint64
	Reopen bool
}

// InspectBatch requests a batch. Reply: BatchReply with Batch, or Failed with ErrNoBatch.
type InspectBatch struct {
	reading
	Tag   uint64
	Batch uint64
}

// ListBatches lists batches by number, which is the order in which they were opened: the newest first, starting before
// From; with Oldest, the oldest first, starting after From. From zero starts at the first batch of that order. Reply:
// Answered with Batches; NextBatch is not zero while there are more.
type ListBatches struct {
	reading
	Tag    uint64
	From   uint64
	Oldest bool
	Limit  int // at most 1,000; zero: 100
}

// PurgeBatches removes batches and their callbacks, as if they had never existed; their jobs stay and no longer belong
// to a batch. It removes at most Limit per call (zero: 1,000), starting at Cursor. Reply: Purged with N, and a Cursor
// that is not zero while there are more.
type PurgeBatches struct {
	changing
	Tag    uint64
	Cursor uint64
	Limit  int
}

// The TagOf methods. Client-wide operations without a reply have no tag.

func (o *Submit) TagOf() uint64          { return o.Tag }
func (o *Complete) TagOf() uint64        { return o.Tag }
func (o *Fail) TagOf() uint64            { return o.Tag }
func (o *Report) TagOf() uint64          { return o.Tag }
func (o *SendData) TagOf() uint64        { return o.Tag }
func (o *Await) TagOf() uint64           { return o.Tag }
func (o *Release) TagOf() uint64         { return o.Tag }
func (o *Sleep) TagOf() uint64           { return o.Tag }
func (o *CreateQueue) TagOf() uint64     { return o.Tag }
func (o *DropQueue) TagOf() uint64       { return o.Tag }
func (o *PauseQueue) TagOf() uint64      { return o.Tag }
func (o *SetQueueMax) TagOf() uint64     { return o.Tag }
func (o *Drain) TagOf() uint64           { return o.Tag }
func (o *Purge) TagOf() uint64           { return o.Tag }
func (o *ResetCounters) TagOf() uint64   { return o.Tag }
func (o *Inspect) TagOf() uint64         { return o.Tag }
func (o *ListJobs) TagOf() uint64        { return o.Tag }
func (o *ListQueues) TagOf() uint64      { return o.Tag }
func (o *ListQueueValues) TagOf() uint64 { return o.Tag }
func (o *InspectQueue) TagOf() uint64    { return o.Tag }
func (o *LastCommit) TagOf() uint64      { return o.Tag }
func (o *ReadStats) TagOf() uint64       { return o.Tag }
func (o *ReadMeta) TagOf() uint64        { return o.Tag }
func (o *WriteMeta) TagOf() uint64       { return o.Tag }
func (o *OpenBatch) TagOf() uint64       { return o.Tag }
func (o *CloseBatch) TagOf() uint64      { return o.Tag }
func (o *InspectBatch) TagOf() uint64    { return o.Tag }
func (o *ListBatches) TagOf() uint64     { return o.Tag }
func (o *PurgeBatches) TagOf() uint64    { return o.Tag }
func (*Register) TagOf() uint64          { return 0 }
func (*Unregister) TagOf() uint64        { return 0 }

// Atomic applies all operations in one commit, or none of them. It first checks every operation, in order, against the
// state before the list; each operation has its own conditions and rules. Reply: Accepted, with the replies of the
// operations in Replies, in order; or Failed with the error of the first refused operation; Index is its position in
// the list.
//
// It may hold Submit (but not Again), Update, Move, TransferLease, Cancel, Enqueue, Bury, Complete, Fail, Report,
// Release, LeaseJob, WriteMeta and WriteDocuments, at most MaxAtomic of them. Several Updates and Reports may name the
// same job; an operation of another kind must be the last one in the list that names a job, even as a dependency or
// parent. Otherwise the list is refused with ErrInvalid. A submission may reuse the id or unique key of a job that the
// list cancels before it.
type Atomic struct {
	changing
	Tag uint64
	Ops []Op
}

// TagOf implements Op.
func (o *Atomic) TagOf() uint64 { return o.Tag }

// Resubmit submits a copy of an ended job that is kept, to run it again. The copy has the same queue, body, type, tags,
// priority, unique key and policy. It gets a new ID from the core, and has no links to other jobs, no batch, no
// schedule and no ReadyAt. Its other times are as far from now as the original's times were from its submission.
// Job.RerunOf names the original.
//
// Reply: Submitted as after Submit, or Failed as for Submit, and with ErrNotFound, ErrConflict, or ErrInvalid: the job
// has not ended, or its body is damaged. For a job that still runs, use Rerun.
type Resubmit struct {
	changing
	Tag uint64
	Ref Ref
	If  Condition
}

// TagOf implements Op.
func (o *Resubmit) TagOf() uint64 { return o.Tag }

// Rerun requests one more run of a leased job after its current run, as if the same job had been submitted again. When
// the current run is done or has failed for good, the job becomes ready again with no attempts and no failures, and
// joins the queue then. If the current run ends otherwise (a retry, a released or expired lease), the next run counts
// as the requested one. Several Reruns during one run request only one more run. A job with UniqueStart holds its key
// again from now until its next start.
//
// Reply: Accepted, or Failed with ErrNotFound, ErrConflict, ErrNotLeased (the run has ended: submit again),
// ErrNotUnique (another job has taken the key, which was free since the start) or ErrInvalid (ephemeral jobs). Set
// If.Epoch to name a particular run.
type Rerun struct {
	changing
	Tag uint64
	Ref Ref
	If  Condition
}

// TagOf implements Op.
func (o *Rerun) TagOf() uint64 { return o.Tag }

// LeaseJob leases one particular job to a worker with an id, or to the connection of the client. It ignores the order
// of the queue: it is for callers that choose the job themselves. The job must be ready, scheduled, retrying or leased,
// or dead if Dead is set. A current lease ends and does not count as lost. LeaseJob ignores pauses and limits of the
// queue; the caller has to respect them. Reply: Accepted, with the grant in Lease, or Failed with ErrNotFound,
// ErrConflict, ErrFinished, ErrDraining, or ErrInvalid: a blocked job, a worker without LeaseFor, both a worker and
// ByConn, or neither.
type LeaseJob struct {
	changing
	Tag      uint64
	Ref      Ref
	If       Condition
	Worker   string
	ByConn   bool          // the lease ends with the connection
	LeaseFor time.Duration // ByConn, zero: the job's own
	Dead     bool

	// Resumes continues a lease from an earlier leader that is not in the history of this one, until ResumesUntil
	// (zero, ByConn only: until the connection closes). Without ByConn and Worker, nobody holds it. LeaseFor and Dead
	// are not used. A lease that does not end with its connection, and that the history has, stays as it is. It fails
	// with ErrNotLeased if the job has been leased or changed since.
	Resumes      *Grant
	ResumesUntil Instant
}

// TagOf implements Op.
func (o *LeaseJob) TagOf() uint64 { return o.Tag }

// HoldQueue keeps a queue while the client is open, and creates it if necessary. A HoldQueue with Free takes back one
// HoldQueue without it. There is no reply.
type HoldQueue struct {
	reading
	Queue string
	Free  bool
}

// TagOf implements Op.
func (*HoldQueue) TagOf() uint64 { return 0 }

// MoveSpent sets what happens to the jobs of a queue that were leased often and are not done: instead of one lease
// more, for a worker of any protocol, they move to another queue. There they keep their counts, and JobInfo.MovedFrom
// names the queue. Jobs with MaxAttempts or LeaseEndFail and ephemeral jobs stay. The queue need not exist. Reply:
// Accepted, or Failed with ErrInvalid.
//
// It is not a JobPolicy with MoveTo: that one acts when a lease ends, and the job's counts restart at zero. SQS
// promises the opposite of both: a message leaves when a consumer asks for it once more, and its ReceiveCount goes on.
type MoveSpent struct {
	changing
	Tag   uint64
	Queue string
	Rule  SpentRule // zero: none
}

// SpentRule says which jobs move, and where.
type SpentRule struct {
	Leases uint32 `json:"leases"` // in this queue, at least 1
	To     string `json:"to"`     // another queue

	// ExpiresIn is the time from the submission, or with FromMove from the move, until a job that expires expires in
	// the other queue; zero: as before. It does not apply to a job whose outcome is kept.
	ExpiresIn time.Duration `json:"expires_in,omitempty"`
	FromMove  bool          `json:"from_move,omitempty"`
}

// TagOf implements Op.
func (o *MoveSpent) TagOf() uint64 { return o.Tag }

// IsValid reports whether the rule may be set.
func (o *MoveSpent) IsValid() bool {
	r := &o.Rule
	return o.Queue != "" && len(o.Queue) <= MaxQueueName && (*r == SpentRule{} ||
		r.Leases > 0 && r.To != "" && r.To != o.Queue && len(r.To) <= MaxQueueName && r.ExpiresIn >= 0)
}

// WriteDocuments stores named documents. They are kept on disk only, not in memory, so there may be many and they may
// be large, unlike meta entries. A nil Value removes one. Names start with the owner's name and a slash. In an Atomic,
// they are stored in the same commit as the other operations. Reply: Accepted.
type WriteDocuments struct {
	changing
	Tag       uint64
	Documents []MetaEntry
}

// ReadDocuments lists the documents whose names start with Prefix and come after After, in byte order of their names,
// as of a recent commit. Reply: Answered with Documents; an empty page is the last one. With durability none, no
// documents are stored or listed.
type ReadDocuments struct {
	reading
	Tag    uint64
	Prefix string
	After  string
	Limit  int // at most 10,000; zero: 1,000. A page also ends when it is large.
}

// TagOf implements Op.
func (o *WriteDocuments) TagOf() uint64 { return o.Tag }

// TagOf implements Op.
func (o *ReadDocuments) TagOf() uint64 { return o.Tag }
