package core

// Rerun asks that a leased job runs once more when its present run ends, as if the same job had been submitted again: done or
// failed for good, it is ready anew, with no attempts and no failures, and takes its place in the queue then. If the run
// ends otherwise (a retry, a lease that is released or runs out), the next run is the one that was asked for. Asking twice
// during one run asks for one more run. A job with UniqueStart holds its key again from now until its next start.
//
// Reply: Accepted, or Failed with ErrNotFound, ErrConflict, ErrNotLeased (the run has ended: submit again), ErrNotUnique
// (another job has taken the key that came free with the start) or ErrInvalid (ephemeral jobs). Set If.Epoch to mean the
// run that was looked at.
type Rerun struct {
	changing
	Tag uint64
	Ref Ref
	If  Condition
}

// TagOf implements Op.
func (o *Rerun) TagOf() uint64 { return o.Tag }
