package record

import "broker/core"

// MaxBatchBytes is the largest commit batch that the store accepts, in Pebble's encoding, whose own limit is 4 GiB. The
// machine counts the bytes that it adds to the open batch and refuses work long before this limit.
const MaxBatchBytes = 4<<30 - 64<<20

// Upper bounds, in bytes, of the numbers of a record, its key and its header in the batch.
const (
	keyBytes    = 1 + 8 + 1 + 2*5 // a key; operation and lengths in the batch
	numberBytes = 10
	partBytes   = 8*numberBytes + 3*keyBytes
)

// FailureSize returns an upper bound of the size of f in a commit batch, in bytes.
func FailureSize(f *core.Failure) int {
	n := partBytes + len(f.Type) + len(f.Message) + len(f.Group) + len(f.Data)
	for _, line := range f.Backtrace {
		n += numberBytes + len(line)
	}
	return n
}

// OutcomeSize returns an upper bound of the size of o in a commit batch, in bytes.
func OutcomeSize(o *core.Outcome) int {
	n := partBytes + len(o.Result)
	if o.Failure != nil {
		n += FailureSize(o.Failure)
	}
	return n
}

// MetaSize returns an upper bound of the size of m in a commit batch, in bytes.
func MetaSize(m *core.MetaEntry) int { return keyBytes + len(m.Name) + len(m.Value) }
