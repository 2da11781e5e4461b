package engine

import (
	"errors"

	"broker/core/clock"
	"broker/core/internal/record"
	"broker/core/internal/store"
)

// Journal makes entries durable in order; each entry names its predecessor. Append returns once the entry is durable
// and applied to the store; any error is final. The journal of a single broker is the store.
type Journal interface {
	Append(e *record.Entry) error
}

// Shipper gets a copy of everything that is committed. Its methods do not wait for a disk, except that End may wait
// briefly.
type Shipper interface {
	Begin(s *store.Store, recent Recent) // called before the first Add; s has all earlier entries. recent may be nil
	Add(e *record.Entry)                 // called for each committed entry, in order; it must not keep e
	End()                                // called after the last Add; s is closed next
}

// Recent calls each with the encodings of the known entries after a number, in order. They may include entries of
// leaders that were replaced. Any goroutine may call it until the store is closed.
type Recent func(after uint64, each func(entry []byte) error) error

// Replicated is what a cluster member provides to the engine while it leads.
type Replicated struct {
	Store   *store.Store
	Journal Journal
	Term    uint64   // of this leader; see core.JobInfo.Epoch
	Standby *Standby // of Store; nil: the engine reads the store

	// Time is that of the cluster; nil: this node is its only one. It is past the last entry of Store.
	Time *clock.Slewed

	// Holds reports that, by the clock, no other member can lead yet. Then this engine was the only leader for all its
	// decisions before the call. If Holds is nil or returns false, only a commit can confirm that. Any goroutine may
	// call it; it is called for each round of replies.
	Holds func() bool

	// Recent reads the replicated log.
	Recent Recent

	// Format returns the format of the entries from now on; nil: the newest format. Any goroutine.
	Format func() int

	// CommitLeases stores all leases, and delays each Assigned reply until the lease is committed.
	CommitLeases bool
}

// holds calls Replicated.Holds. Without a cluster, it is always true.
func (r *Replicated) holds() bool { return r == nil || r.Holds != nil && r.Holds() }

// recent returns Replicated.Recent. Without a cluster, there is no log.
func (r *Replicated) recent() Recent {
	if r == nil {
		return nil
	}
	return r.Recent
}

// ErrReplaced is returned by a journal whose broker no longer leads. Whether the entry will be applied is then unknown.
var ErrReplaced = errors.New("this node no longer leads the cluster")

// ErrMember is returned by Open if the store belongs to a member of a cluster.
var ErrMember = errors.New("this store is part of a cluster: start the broker with --node and --cluster, " +
	"or make it a store of its own with broker cluster detach")
