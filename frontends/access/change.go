package access

import "broker/core"

// Change is an entry for the audit log: an operator's change through a wire protocol.
type Change struct {
	Who      string // name of the principal; empty: it has none
	Address  string
	Protocol core.Protocol
	Action   string // such as queue.pause
	Target   string
	Detail   string
}
