package core

// HoldQueue keeps a queue while the client is open, and creates it if necessary. A HoldQueue with Free takes back one
// HoldQueue without it. There is no reply.
type HoldQueue struct {
	reading
	Queue string
	Free  bool
}

// TagOf implements Op.
func (*HoldQueue) TagOf() uint64 { return 0 }
