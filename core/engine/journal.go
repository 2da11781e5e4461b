package engine

import "broker/core/internal/record"

// Journal makes entries durable in the order in which they are appended, each of which names the one before it. Append
// returns once the entry is durable and applied to the store; any error is final. The journal of a broker of its own is the
// store.
type Journal interface {
	Append(e *record.Entry) error
}
