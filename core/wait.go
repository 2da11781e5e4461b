package core

// Wait says what keeps a ready job back, beside its WaitReason.
type Wait struct {
	Limit *LimitReached // WaitLimit; nil while the jobs of the queue are sorted after a change of its limits

	// WaitOrder: the earliest job of the key that has not ended, and its state.
	Holder      uint64
	HolderState State
}

// LimitReached is a limit that does not allow the lease of a job now.
type LimitReached struct {
	ID LimitID // with the type or key of the job
	Throttle
	Taken  uint32  // slots
	NextAt Instant // when the rate allows the lease; zero: the slots are taken
}
