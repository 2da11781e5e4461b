package replica

import (
	"errors"
	"fmt"
	"io"

	"github.com/hashicorp/raft"

	"broker/core/internal/record"
	"broker/core/internal/store"
)

// fsm applies committed entries to the store. raft calls its methods on one goroutine.
type fsm struct {
	n     *Node
	parts assembly

	applying stopwatch
	broken   error // an entry could not be applied; no further entry is
}

var (
	_ raft.FSM                = (*fsm)(nil)
	_ raft.ConfigurationStore = (*fsm)(nil)
)

// Apply implements raft.FSM. The result is nil or an error.
func (f *fsm) Apply(l *raft.Log) any {
	if f.broken != nil {
		return f.broken
	}
	entry, err := f.parts.add(l.Data)
	if err == nil && entry != nil {
		f.applying.start(f.n.lease.now().monotonic)
		err = f.n.store.Load().Apply(entry, l.Index)
		f.applying.stop()
	}
	switch {
	case err == nil:
		f.n.unflushed.Add(1)
		return nil
	case errors.Is(err, store.ErrSequence),
		errors.Is(err, errParts): // an entry of a replaced leader: all members skip it
		return err
	}
	f.broken = fmt.Errorf("apply index %d of the log: %w", l.Index, err)
	f.n.fail(f.n.explain(f.broken))
	return f.broken
}

// StoreConfiguration implements raft.ConfigurationStore. raft stores the list of members itself. This method makes raft
// count changes of the list as applied, so that a snapshot may follow such a change.
func (f *fsm) StoreConfiguration(uint64, raft.Configuration) {}

// errBetweenParts delays a snapshot: the log must not be cut between the parts of an entry.
var errBetweenParts = errors.New("an entry is incomplete, the snapshot has to wait")

// Snapshot implements raft.FSM.
func (f *fsm) Snapshot() (raft.FSMSnapshot, error) {
	if f.broken != nil {
		return nil, f.broken
	}
	if f.parts.open() {
		return nil, errBetweenParts
	}
	s := f.n.store.Load()
	return &flushed{store: s, at: s.Position()}, nil
}

// Restore implements raft.FSM: it replaces the store with the received copy.
func (f *fsm) Restore(from io.ReadCloser) error {
	f.parts.drop()
	_ = from.Close() // it is empty: the copy was unpacked as it arrived
	err := f.n.install()
	if err != nil {
		f.broken = err
		f.n.fail(fmt.Errorf("install the copy of the leader's store: %w", err))
	}
	return err
}

// flushed is a snapshot of this node's store. The tables of the store are the snapshot, so it is enough to flush the
// store.
type flushed struct {
	store *store.Store
	at    record.Position
}

// Persist implements raft.FSMSnapshot.
func (s *flushed) Persist(sink raft.SnapshotSink) error {
	// first the kind of snapshot, because the flush takes time
	if _, err := sink.Write([]byte(localSnapshot)); err != nil {
		return err
	}
	if err := s.store.Flush(); err != nil {
		return err
	}
	_, err := sink.Write(record.AppendPosition(nil, s.at))
	return err
}

// Release implements raft.FSMSnapshot.
func (s *flushed) Release() {}
