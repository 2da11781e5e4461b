package engine

import (
	"errors"

	"broker/core/internal/record"
	"broker/core/internal/store"
)

// Journal makes entries durable in order; each names the one before it. Append returns once the entry is durable and applied to
// the store; any error is final. The journal of a single broker is the store.
type Journal interface {
	Append(e *record.Entry) error
}

// Shipper gets a copy of all that is committed. Its methods do not wait for a disk, except that End may wait for a moment.
type Shipper interface {
	Begin(s *store.Store, recent Recent) // before the first entry; s has all entries before it. recent may be nil
	Add(e *record.Entry)                 // committed, after the one before; e must not be kept
	End()                                // after the last one; s is closed next
}

// Recent calls each for the encodings of the entries after the one with a number, as far as they are known, in order. Entries of leaders
// that were replaced may be among them. Any goroutine may call it until the store is closed.
type Recent func(after uint64, each func(entry []byte) error) error

// Replicated is what a cluster member provides to the engine while it leads.
type Replicated struct {
	Store   *store.Store
	Journal Journal
	Standby *Standby // of Store; nil: the engine reads the store

	// Holds reports that no other member can lead yet, going by the clock: what this engine has decided before the call was
	// decided by the only leader. nil, or false: only a commit can tell. Any goroutine; it is asked for each round of replies.
	Holds func() bool

	// Recent reads the replicated log.
	Recent Recent

	// Format is that of the entries from now on; nil: the newest. Any goroutine.
	Format func() int

	// CommitLeases has leases stored whoever holds them, and handed out once they are committed.
	CommitLeases bool
}

// holds is Replicated.Holds; a broker of its own is always the only one.
func (r *Replicated) holds() bool { return r == nil || r.Holds != nil && r.Holds() }

// recent is Replicated.Recent; a broker of its own keeps no log.
func (r *Replicated) recent() Recent {
	if r == nil {
		return nil
	}
	return r.Recent
}

// ErrReplaced is what a journal returns when its broker no longer leads. Whether the entry will be applied is unknown then.
var ErrReplaced = errors.New("this node no longer leads the cluster")

// ErrMember is the error of Open for the store of a cluster's member.
var ErrMember = errors.New("this store is part of a cluster: start the broker with --node and --cluster, " +
	"or make it a store of its own with broker cluster detach")
