package core

// Rerun requests one more run of a leased job after its current run, as if the same job had been submitted again. When the
// current run is done or has failed for good, the job becomes ready again with no attempts and no failures, and joins the
// queue then. If the current run ends otherwise (a retry, a released or expired lease), the next run counts as the requested
// one. Several Reruns during one run request only one more run. A job with UniqueStart holds its key again from now until its
// next start.
//
// Reply: Accepted, or Failed with ErrNotFound, ErrConflict, ErrNotLeased (the run has ended: submit again), ErrNotUnique
// (another job has taken the key, which was free since the start) or ErrInvalid (ephemeral jobs). Set If.Epoch to name a
// particular run.
type Rerun struct {
	changing
	Tag uint64
	Ref Ref
	If  Condition
}

// TagOf implements Op.
func (o *Rerun) TagOf() uint64 { return o.Tag }
