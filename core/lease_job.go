package core

import "time"

// LeaseJob gives one particular job to a worker with an id, or to the connection of the client, whatever queue it is in and
// whoever is first there: for callers that choose the job themselves. The job is ready, scheduled, retrying or leased, or
// dead if Dead is set; a lease that runs ends without a word of its worker and without being counted as lost. Pauses and
// limits of the queue are the caller's to respect. Reply: Accepted, with the grant in Lease, or Failed with ErrNotFound,
// ErrConflict, ErrFinished, ErrDraining, or ErrInvalid: a blocked job, a worker without LeaseFor, both a worker and ByConn,
// or neither.
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
