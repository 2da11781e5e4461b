package core

// HoldQueue keeps a queue known while the client is open, made if need be, until it was applied with Free as often as without.
// There is no reply.
type HoldQueue struct {
	reading
	Queue string
	Free  bool
}

// TagOf implements Op.
func (*HoldQueue) TagOf() uint64 { return 0 }
