package core

// Condition restricts an operation to a job in a certain state: every field that is set must match. The zero Condition
// always matches. It is checked before the operation's own rules; if it does not match, the reply is Failed with
// ErrConflict, and Seq is the job.
type Condition struct {
	States   []State // the job is in one of these
	Epoch    uint32  // its JobInfo.Epoch is this
	HasEpoch bool    // Epoch is set
	Unended  bool    // its lease has not ended by the clock; the deadline of a lease may be handled a little later
	Queue    string  // it is in this queue
	Worker   string  // it is leased to the worker with this id
	LeasedAt Instant // it has been leased since then; identifies one lease, as an Update also increases the epoch
}

// Restricts reports whether a field is set.
func (c *Condition) Restricts() bool {
	return len(c.States) > 0 || c.HasEpoch || c.Unended || c.Queue != "" || c.Worker != "" || c.LeasedAt != 0
}

// InState is the Condition that a job is in one of states; without states it always matches.
func InState(states ...State) Condition { return Condition{States: states} }
