package core

import "time"

// Op is one thing asked of the broker. Every operation has a Tag: a number of the caller's that comes back in each
// reply it causes, also in those that come long after (an outcome, a job for a parked lease).
//
// Operations may be reused by the caller once Do has returned, with the exception of what they point at: jobs, bodies,
// results and failures belong to the core from then on. Strings must not alias a network buffer.
//
// To add an operation, embed changing or reading in its struct, write its TagOf at the end of the file that declares it,
// and decide it in the machine's apply or applyAdmin.
type Op interface {
	// TagOf is the operation's Tag, zero for one that is never answered.
	TagOf() uint64

	// ReadOnly reports whether the operation changes nothing that is stored, so that it is still answered once the
	// store has failed or the broker shuts down.
	ReadOnly() bool
}

// changing is embedded in operations that change what is stored.
type changing struct{}

// ReadOnly implements Op.
func (changing) ReadOnly() bool { return false }

// reading is embedded in operations that change nothing that is stored.
type reading struct{}

// ReadOnly implements Op.
func (reading) ReadOnly() bool { return true }

// Ref names a job: by Seq if that is not zero, else by ID, which may be a client's id, a minted id or an alias.
type Ref struct {
	Seq uint64
	ID  string
}

// Claim says by what right a client finishes a job or reports on it.
type FinishAuthority uint8

// ByHolder: the client's own connection must hold the lease, else ErrNotHolder (ErrNotFound if there is no such job).
// ByLeased: any connection, while the job is leased, else ErrNotLeased. ByAnyone: any connection, any unfinished state.
const (
	ByHolder FinishAuthority = iota
	ByLeased
	ByAnyone
)

// Holder says to whom a lease belongs.
type Holder uint8

// HeldByConn: released when the connection closes. HeldByWorker and HeldByNobody: runs until LeaseFor is over.
const (
	HeldByConn Holder = iota
	HeldByWorker
	HeldByNobody
)

// Watch says what a client wants to hear of a job.
type Watch uint8

// WatchStream: progress, data, warnings and the outcome as they come (Gearman foreground). WatchOutcome: the outcome
// only, until a deadline (Workq result). WatchRun: the outcome of an ephemeral job that is withdrawn at the deadline,
// or, if it is leased then, when that lease runs out (Workq run). An ephemeral job runs for those who watch it by
// WatchStream or WatchRun, and is withdrawn with the last of them; others who wait for its outcome are told.
const (
	WatchNone Watch = iota
	WatchStream
	WatchOutcome
	WatchRun
)

// Pick is how a lease chooses among queues that have a ready job.
type Pick uint8

// PickInOrder: the first of the list (Faktory). PickAtRandom: uniformly (Workq). PickByPriority: the highest priority at
// the head of any queue, round-robin among equals (Gearman).
const (
	PickInOrder Pick = iota
	PickAtRandom
	PickByPriority
)

// Submit admits a job. Reply: Submitted with Seq, and Existing if it coalesced; else Failed with ErrDuplicate (Seq is
// the existing job, Lease.Epoch its lease if it has one), ErrNotUnique, ErrFull, ErrNoBatch, ErrInvalid (names that are too
// long, a link to a number never given out, an ephemeral job in a batch or without WatchStream or WatchRun), ErrDiskFull.
// Later, for a watcher: Progressed, DataSent, Warned, Ended, and TimedOut for WatchRun.
type Submit struct {
	changing
	Tag      uint64
	Job      *Job
	Watch    Watch
	Deadline Instant     // WatchRun: give up then
	Meta     []MetaEntry // notes stored in the same commit
}

// Mark is a named note of a front-end's or the cron's, stored with the operation that carries it. A nil Value removes
// it. Names start with the owner's name and a slash.
type MetaEntry struct {
	Name  string
	Value []byte
}

// Lease asks for one job. Reply: Assigned (see also Late), or NothingReady (Until is zero), or TimedOut at Until. A client has at most
// one parked lease; a second is Failed with ErrBusy.
type Lease struct {
	changing
	Tag      uint64
	Queues   []string // nil: the queues of the client's Able operations; empty but not nil: none, just wait
	Pick     Pick
	Holder   Holder
	Worker   string  // id of the worker, kept with the lease; HeldByWorker only
	Deadline Instant // park until then; zero: do not wait

	// Late says that the client can do without the job for a while: if its body has to be read from the disk, the reply is
	// Reading, and Assigned, or TimedOut, comes by a later call. CancelLease gives the job back until then.
	Late bool

	// KeepQueues says that the queues are known for some minutes after the lease has waited on them, as if they had had a
	// job. Without it, a queue that is there for its waiting leases alone goes with them.
	KeepQueues bool
}

// Withdraw ends the client's parked lease as if its time were up: the lease is TimedOut. Nothing is replied if there is
// none.
type CancelLease struct{ reading }

// Complete ends a job as done. Reply: Accepted, or Failed with ErrNotFound, ErrConflict, ErrNotLeased, ErrNotHolder,
// ErrFinished.
type Complete struct {
	changing
	Tag       uint64
	Ref       Ref
	If        Condition
	Authority FinishAuthority
	Result    []byte
}

// Fail reports a failure; the job's policy says whether there is another try, and when, unless RetryAt or Final do.
// Reply as Complete.
type Fail struct {
	changing
	Tag       uint64
	Ref       Ref
	If        Condition
	Authority FinishAuthority
	Failure   *Failure // Count, FailedAt and NextAt are the core's to fill
	RetryAt   Instant  // the next try, if there is one, is due then instead of after the job's back-off; zero: as the job says
	Final     bool     // there is no further try, however many the job has left
}

// Report notes how far a job is, ByAnyone also after its end while it is kept. Watchers get Progressed. Reply: Accepted, or
// Failed as Complete.
type Report struct {
	changing
	Tag         uint64
	Ref         Ref
	If          Condition
	Authority   FinishAuthority
	Progress    Progress
	ExtendUntil Instant // the lease lasts at least until then; zero: unchanged
	Heartbeat   bool    // only extend the lease: Progress is not looked at
}

// Progress is how far a job is: Num of Den. Text is the worker's own word for it.
type Progress struct {
	Num, Den  uint32
	Verbatim  []byte // the bytes of a Gearman WORK_STATUS after the handle, passed on as they are; nil: none
	Text      string
	UpdatedAt Instant // the core's to fill
}

// Emit sends bytes of a running job to its watchers: data (part of the result) or a warning (not). Reply: Accepted, or
// Failed as Complete.
type SendData struct {
	changing
	Tag       uint64
	Ref       Ref
	Authority FinishAuthority
	Warning   bool
	Data      []byte
}

// Await waits for a job's outcome; that of a dead job is the failure that brought it there. Reply: Ended, TimedOut at
// Until (at once if Until is zero and the job unfinished), or Failed with ErrNotFound.
type Await struct {
	reading
	Tag      uint64
	Ref      Ref
	Deadline Instant
}

// Release gives a lease back as if it had never been: the job stands at its original place again, and no attempt is
// counted. Epoch is that of the Grant. Reply: Accepted, or Failed with ErrNotFound or ErrNotLeased (also when the lease
// is another one by now). For a job whose Assigned could not be delivered.
type Release struct {
	changing
	Tag   uint64
	Ref   Ref
	Epoch uint32
}

// Able says that this client can work for a queue, which is created if need be. No reply. LeaseFor is a limit for each
// job it takes; zero: none. Repeating it counts the worker once more.
type Register struct {
	reading
	Queue    string
	LeaseFor time.Duration
}

// Unable takes Able back, for one queue or (All) for every one; jobs of it that the client holds are released. No reply.
type Unregister struct {
	reading
	Queue string
	All   bool
}

// Sleep asks for one Woken reply when there may be a job for the client's abilities: at once if there is one now. If there
// is none, the limits that Register has set on the jobs that the client holds end: only their own LeaseFor still counts.
type Sleep struct {
	reading
	Tag uint64
}

// CreateQueue makes a queue that stays until dropped. Reply: Accepted.
type CreateQueue struct {
	changing
	Tag   uint64
	Queue string
}

// DropQueue removes a queue with its waiting jobs; their watchers get Ended. Reply: Accepted, or Failed with ErrNoQueue,
// or ErrBusy while workers are able or jobs leased. FoldCase compares the name without
// regard to case.
type DropQueue struct {
	changing
	Tag      uint64
	Queue    string
	FoldCase bool
}

// PauseQueue stops or resumes handing out jobs of a queue. Reply: Accepted, also for an unknown queue, which stays
// unknown.
type PauseQueue struct {
	changing
	Tag    uint64
	Queue  string
	Paused bool
}

// LimitQueue bounds the length of a queue; submissions beyond get ErrFull. Reply: Accepted, also if nobody knows the
// queue: then nothing is remembered (spec gearman 3). The throttle in Limits is not looked at.
type LimitQueue struct {
	changing
	Tag    uint64
	Queue  string
	Limits Limits
}

// ThrottleQueue bounds the leases of a queue; those beyond wait. Reply: Accepted. It is not stored: whoever sets it, from
// a configuration, does so at each start.
type ThrottleQueue struct {
	changing
	Tag      uint64
	Queue    string
	Throttle Throttle
}

// Limits bounds a queue; zero is no bound.
type Limits struct {
	// Refuse a submission of that class while the queue's unfinished jobs (all priorities, running ones too) number so
	// many or more.
	MaxHigh, MaxNormal, MaxLow uint32

	Throttle
}

// Throttle bounds leases of a queue.
type Throttle struct {
	Leased          uint32        // at once, over all workers
	LeasedPerWorker uint32        // at once, for one worker id or connection
	SlotFor         time.Duration // a slot comes free after so long even if its lease goes on
}

// Drain stops (On) or resumes handing out jobs of all queues: parked leases wait on, finishes are taken as ever. With
// RefuseJobs no job is admitted meanwhile: ErrDraining. Reply: Accepted. It is not stored: a restart ends it.
type Drain struct {
	changing
	Tag        uint64
	On         bool
	RefuseJobs bool
}

// Purge removes jobs: of one queue (or all if empty), of one origin (or all if Internal), in the given states (or all if
// empty). It removes at most Limit a call (zero: 1,000) and starts behind Cursor; reply: Purged with N, and Cursor not
// zero while there is more. Drop removes the queue's settings too, with the last page, and its row until a job becomes
// ready there or somebody names it again.
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

// ResetCounters sets to zero the totals and history that jobs of one front-end's workers made. Reply: Accepted.
type ResetCounters struct {
	changing
	Tag    uint64
	Origin Protocol
}

// Inspect asks for all that is known of one job. Reply: Inspected or Failed with ErrNotFound. ByUnique looks for
// UniqueKey (in Queue, or in any if Queue is empty) instead of Ref. Brief leaves Job nil rather than read the store.
type Inspect struct {
	reading
	Tag       uint64
	Ref       Ref
	ByUnique  bool
	UniqueKey string
	Queue     string
	Brief     bool
}

// ListJobs asks for jobs in a state. With a Queue and State Ready or Scheduled: in order, from Offset. Else: over all
// queues (or the one) in no particular but stable order, behind Cursor, looking at a bounded number of jobs a call.
// Reply: Listed, with Cursor not zero while there may be more; Failed with ErrNoQueue for an unknown Queue.
type ListJobs struct {
	reading
	Tag    uint64
	Queue  string
	State  State // Gone: any
	Offset int
	Cursor uint64
	Limit  int // at most 1,000; zero: 100
	Brief  bool

	// NoBody is for lists that need more of a job than Brief has, but not its Body, Failure and Outcome: what of these is
	// not in memory is not read. A page by Cursor ends early when much had to be read.
	NoBody bool
}

// ListQueues asks for the queues whose names start with Prefix and come behind After, in byte order, from Offset. Limit zero:
// all, which takes long if there are many; go on behind the last name of a page instead. Busiest lists the queues that have
// series and histograms of their own, at most MaxDetailed, whatever the other fields say. Reply: Queues.
type ListQueues struct {
	reading
	Tag     uint64
	Prefix  string
	After   string // empty: from the first
	Offset  int
	Limit   int
	Busiest bool
}

// InspectQueue asks for one queue. Reply: Queues with one row, or Failed with ErrNoQueue.
type InspectQueue struct {
	reading
	Tag   uint64
	Queue string
}

// ReadStats asks for the counters. Reply: Counted.
type ReadStats struct {
	reading
	Tag uint64
}

// ReadMeta asks for a stored note. Reply: Marked with Data (nil if there is none).
type ReadMeta struct {
	reading
	Tag  uint64
	Name string
}

// WriteMeta stores notes. Reply: Accepted.
type WriteMeta struct {
	changing
	Tag     uint64
	Entries []MetaEntry
}

// OpenBatch makes a batch, open for jobs that name it, under Parent if that is not zero. Complete runs once every job of
// it (and of its children) was executed once, Success once all are done; both only after CloseBatch. Reply: Grouped
// with the batch's number in Seq.
type OpenBatch struct {
	changing
	Tag         uint64
	Parent      uint64
	Description string
	Complete    *Job // nil: none
	Success     *Job // nil: none
	OpenUntil   Instant
}

// CloseBatch closes a batch for submissions from outside and lets its callbacks run. Reopen allows more, in any state;
// a callback that was let go is not let go again. Reply: Accepted, or Failed with ErrNoBatch.
type CloseBatch struct {
	changing
	Tag    uint64
	Batch  uint64
	Reopen bool
}

// InspectBatch asks for a batch. Reply: Grouped with Group, or Failed with ErrNoBatch.
type InspectBatch struct {
	reading
	Tag   uint64
	Batch uint64
}

// PurgeBatches removes batches and their callbacks, as if there had never been any; members stay, as plain jobs. It
// removes at most Limit a call (zero: 1,000) and goes on at Cursor; reply: Purged with N, and Cursor not zero while there
// is more.
type PurgeBatches struct {
	changing
	Tag    uint64
	Cursor uint64
	Limit  int
}

// The TagOf methods. Client-wide operations without a reply have no tag.

func (o *Submit) TagOf() uint64        { return o.Tag }
func (o *Lease) TagOf() uint64         { return o.Tag }
func (o *Complete) TagOf() uint64      { return o.Tag }
func (o *Fail) TagOf() uint64          { return o.Tag }
func (o *Report) TagOf() uint64        { return o.Tag }
func (o *SendData) TagOf() uint64      { return o.Tag }
func (o *Await) TagOf() uint64         { return o.Tag }
func (o *Release) TagOf() uint64       { return o.Tag }
func (o *Sleep) TagOf() uint64         { return o.Tag }
func (o *CreateQueue) TagOf() uint64   { return o.Tag }
func (o *DropQueue) TagOf() uint64     { return o.Tag }
func (o *PauseQueue) TagOf() uint64    { return o.Tag }
func (o *LimitQueue) TagOf() uint64    { return o.Tag }
func (o *ThrottleQueue) TagOf() uint64 { return o.Tag }
func (o *Drain) TagOf() uint64         { return o.Tag }
func (o *Purge) TagOf() uint64         { return o.Tag }
func (o *ResetCounters) TagOf() uint64 { return o.Tag }
func (o *Inspect) TagOf() uint64       { return o.Tag }
func (o *ListJobs) TagOf() uint64      { return o.Tag }
func (o *ListQueues) TagOf() uint64    { return o.Tag }
func (o *InspectQueue) TagOf() uint64  { return o.Tag }
func (o *ReadStats) TagOf() uint64     { return o.Tag }
func (o *ReadMeta) TagOf() uint64      { return o.Tag }
func (o *WriteMeta) TagOf() uint64     { return o.Tag }
func (o *OpenBatch) TagOf() uint64     { return o.Tag }
func (o *CloseBatch) TagOf() uint64    { return o.Tag }
func (o *InspectBatch) TagOf() uint64  { return o.Tag }
func (o *PurgeBatches) TagOf() uint64  { return o.Tag }
func (*CancelLease) TagOf() uint64     { return 0 }
func (*Register) TagOf() uint64        { return 0 }
func (*Unregister) TagOf() uint64      { return 0 }
