package core

import "time"

// Pick says how a lease chooses among queues with ready jobs.
type Pick uint8

// PickInOrder: the first in the list (Faktory). PickAtRandom: uniformly (Workq). PickByPriority: the highest priority
// at the head of any queue, round-robin among equal ones (Gearman). PickFirst: the job that would be first if all jobs
// were in one queue.
const (
	PickInOrder Pick = iota
	PickAtRandom
	PickByPriority
	PickFirst
)

// Lease requests one or more jobs. Reply: Assigned for each job (see also Late), with the number of jobs that follow in
// N; or NothingReady (if Deadline is zero), or TimedOut at Deadline. A client has at most one waiting lease; a second
// one is Failed with ErrBusy. If Max or Min is negative or more than MaxLeases, the reply is Failed with ErrInvalid.
type Lease struct {
	changing
	Tag uint64
	// nil: the queues that the client has registered; empty but not nil: no queue, the lease only waits
	Queues   []string
	Pick     Pick // applies again for each job
	Holder   Holder
	Worker   string        // id of the worker, kept with the lease; HeldByWorker only
	Version  string        // of the worker's program, kept with the attempt, cut to MaxWorkerVersion; empty: unknown
	Deadline Instant       // wait until then; zero: do not wait
	LeaseFor time.Duration // overrides the LeaseFor of the jobs; zero: does not
	Max      int           // number of jobs; zero: 1
	MaxBytes int           // size of the bodies together, always allowing one job; zero: no limit

	// Min makes the lease wait until this many jobs can be leased; each job is considered separately. At Deadline, the
	// lease takes fewer jobs.
	Min int

	// Late allows the core to delay the job: if its body must be read from disk, the reply is Reading, and Assigned or
	// TimedOut follows in a later call. Until then CancelLease gives the job back.
	Late bool

	// KeepQueues keeps the queues for some minutes after the lease has waited on them, as if they had had a job.
	// Otherwise a queue that exists only because leases wait on it disappears with the last of these leases.
	KeepQueues bool
}

// MaxWorkerVersion is the number of bytes of Lease.Version that are kept.
const MaxWorkerVersion = 64

// MaxLeases is the maximum number of jobs that one lease may take.
const MaxLeases = 1_000

// CancelLease ends the client's waiting lease as if its deadline had passed: the reply to the lease is TimedOut. There
// is no reply if no lease waits.
type CancelLease struct{ reading }

// CancelWaits ends everything that the client waits for, as if it had left: its waiting lease, its sleep, its waits
// for the ends of jobs. Replies that the client has not fetched are dropped, except events: a job that had been
// assigned to it returns to its place as if it had not been leased. Everything else stays: leases, registrations, and
// the commits that wake the client. There is no reply. No other operation may precede it in the same call.
type CancelWaits struct{ reading }

// TagOf implements Op.
func (o *Lease) TagOf() uint64 { return o.Tag }

// TagOf implements Op.
func (*CancelLease) TagOf() uint64 { return 0 }

// TagOf implements Op.
func (*CancelWaits) TagOf() uint64 { return 0 }
