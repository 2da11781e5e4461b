package replica

import (
	"errors"
	"fmt"
	"io"

	"github.com/hashicorp/raft"

	"broker/core/internal/record"
	"broker/core/internal/store"
)

// fsm applies what is committed to the store. raft calls its methods on one goroutine.
type fsm struct {
	n     *Node
	parts assembly

	applying stopwatch
	broken   error // the store could not follow; nothing more is applied
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
		f.applying.start(f.n.lease.now().even)
		err = f.n.store.Load().Apply(entry, l.Index)
		f.applying.stop()
	}
	switch {
	case err == nil:
		f.n.unflushed.Add(1)
		return nil
	case errors.Is(err, store.ErrSequence), errors.Is(err, errParts): // of a leader that was replaced: the same on all members
		return err
	}
	f.broken = fmt.Errorf("apply index %d of the log: %w", l.Index, err)
	f.n.fail(f.n.explain(f.broken))
	return f.broken
}

// StoreConfiguration implements raft.ConfigurationStore. raft keeps the members itself; with this method it counts changes of
// them as applied, so that snapshots may follow one.
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

// Restore implements raft.FSM: it replaces the store by the copy that was received.
func (f *fsm) Restore(from io.ReadCloser) error {
	f.parts.drop()
	err := f.n.install(from)
	if err != nil {
		f.broken = err
		f.n.fail(fmt.Errorf("install the copy of the leader's store: %w", err))
	}
	return err
}

// flushed is a snapshot of our own store: its tables are the snapshot, so that all there is to do is to write them.
type flushed struct {
	store *store.Store
	at    record.Position
}

// Persist implements raft.FSMSnapshot.
func (s *flushed) Persist(sink raft.SnapshotSink) error {
	if _, err := sink.Write([]byte(localSnapshot)); err != nil { // what it is, before that takes its time
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
