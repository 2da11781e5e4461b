package core

// Condition is what must hold of a job for an operation to apply to it: all that is set must. The zero Condition demands
// nothing. It is looked at before the operation's own rules; where it does not hold the operation is Failed with
// ErrConflict, and Seq names the job.
type Condition struct {
	States   []State // the job is in one of these
	Epoch    uint32  // its JobInfo.Epoch is this
	HasEpoch bool    // Epoch is set
	Queue    string  // it is in this queue
	Worker   string  // it is leased to the worker with this id
	LeasedAt Instant // it is leased, since then: what names one lease, as an Update raises the epoch of a leased job too
}

// InState is the Condition that a job is in one of states; without any, it demands nothing.
func InState(states ...State) Condition { return Condition{States: states} }
