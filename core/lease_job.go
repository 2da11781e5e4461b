package core

import "time"

// LeaseJob leases one particular job to a worker with an id, or to the connection of the client. It ignores the order of
// the queue: it is for callers that choose the job themselves. The job must be ready, scheduled, retrying or leased, or
// dead if Dead is set. A current lease ends and does not count as lost. LeaseJob ignores pauses and limits of the queue;
// the caller has to respect them. Reply: Accepted, with the grant in Lease, or Failed with ErrNotFound, ErrConflict,
// ErrFinished, ErrDraining, or ErrInvalid: a blocked job, a worker without LeaseFor, both a worker and ByConn, or neither.
type LeaseJob struct {
	changing
	Tag      uint64
	Ref      Ref
	If       Condition
	Worker   string
	ByConn   bool          // the lease ends with the connection
	LeaseFor time.Duration // ByConn, zero: the job's own
	Dead     bool
}

// TagOf implements Op.
func (o *LeaseJob) TagOf() uint64 { return o.Tag }
