package access

import "broker/core"

// Change is what a client of a wire protocol has changed as an operator, for the audit log.
type Change struct {
	Who      string // name of the principal; empty: it has none
	Address  string
	Protocol core.Protocol
	Action   string // such as queue.pause
	Target   string
	Detail   string
}
