package store

import (
	"errors"
	"fmt"
	"io"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"broker/core/internal/record"
	"broker/core/internal/store/integrity"
)

// Apply applies an entry of the replicated log, given in its encoding. An entry up to the store's own index was already
// applied and is skipped. An entry that does not follow the last one is refused with ErrSequence. All members refuse
// it, because this depends only on earlier entries. ErrDiverged means that this store differs from the other members'
// stores. The entry is durable after Flush.
func (s *Store) Apply(entry []byte, index uint64) error {
	c := &s.commit
	c.mu.Lock()
	defer c.mu.Unlock()
	if index <= c.last.Index {
		return nil
	}
	e, err := record.DecodeEntry(entry)
	if err != nil {
		return fmt.Errorf("entry at index %d: %w", index, err)
	}
	to := e.Position
	to.Index, to.Chain = index, record.ChainOf(entry)
	err = s.apply(func(pb *pebble.Batch) error {
		if e.Follows(c.last) && e.Chain != c.last.Chain {
			return fmt.Errorf("entry %d of epoch %d at index %d: %w", e.Number, e.Epoch, index, ErrDiverged)
		}
		return c.fill(pb, e, to)
	})
	if err == nil {
		c.last = to
		c.note(e.Batch)
		err = s.formatCommitted()
	}
	return err
}

// Replay applies an entry of an archive to a store that was opened as a replicated one. An entry that does not follow
// the last one is refused with ErrSequence. The entry is durable after Flush; Leave ends the replay.
func (s *Store) Replay(e *record.Entry) error {
	c := &s.commit
	c.mu.Lock()
	defer c.mu.Unlock()
	to := e.Position
	to.Index, to.Chain = c.last.Index, 0
	err := s.apply(func(pb *pebble.Batch) error { return c.fill(pb, e, to) })
	if err == nil {
		c.last = to
		err = s.formatCommitted()
	}
	return err
}

// Flush makes the entries of Apply and Replay durable.
func (s *Store) Flush() error {
	if !s.use.enter() {
		return ErrClosed
	}
	defer s.use.leave()
	return s.latch.Run("flush", s.db.Flush)
}

// Cluster returns the id of the cluster that the store is part of, or an empty text.
func (s *Store) Cluster() string {
	s.commit.mu.Lock()
	defer s.commit.mu.Unlock()
	return s.commit.cluster
}

// Join makes the store the start of a cluster: its content is the given index of the replicated log. Leave undoes that.
// Both are durable on return.
func (s *Store) Join(cluster string, index uint64) error { return s.setCluster(cluster, index) }

// Leave makes the store a store of a single broker again.
func (s *Store) Leave() error { return s.setCluster("", 0) }

func (s *Store) setCluster(cluster string, index uint64) error {
	c := &s.commit
	c.mu.Lock()
	to := record.Position{Number: c.last.Number, At: c.last.At, Index: index}
	err := s.apply(func(pb *pebble.Batch) error {
		if err := c.setPosition(pb, to); err != nil {
			return err
		}
		if cluster == "" {
			return pb.Delete(clusterKey, nil)
		}
		return c.set(pb, clusterKey, []byte(cluster))
	})
	if err == nil {
		c.last, c.cluster = to, cluster
	}
	c.mu.Unlock()
	if err != nil || !s.replicated {
		return err
	}
	return s.Flush()
}

// HasJobs reports whether the store holds any job.
func (s *Store) HasJobs() (bool, error) {
	if !s.use.enter() {
		return false, ErrClosed
	}
	defer s.use.leave()
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: []byte{spaceJob}, UpperBound: []byte{spaceJob + 1}})
	if err != nil {
		return false, s.damage("look for jobs", err)
	}
	found := it.First()
	return found, s.damage("look for jobs", errors.Join(it.Error(), it.Close()))
}

// LockFolder locks a folder for this process, or returns ErrInUse.
func LockFolder(dir string) (io.Closer, error) { return integrity.LockDir(vfs.Default, dir) }
