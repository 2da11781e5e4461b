package engine

import (
	"context"
	"fmt"

	"broker/core"
	"broker/core/internal/machine"
	"broker/core/internal/record"
	"broker/core/internal/store"
)

// recover opens the store and rebuilds the index with one scan.
func (e *Engine) recover() error {
	start := e.opts.Clock.Now()
	if err := e.openStore(); err != nil {
		return fmt.Errorf("open store: %w", err)
	}
	s := e.store
	if err := e.load(s); err != nil {
		_ = e.closeStore() // report the first error
		return fmt.Errorf("read store: %w", err)
	}
	e.sealedEntry.Position = s.Position()
	e.committed.Store(e.sealedEntry.Number)
	e.commitOnce() // reserve numbers before any is assigned
	if e.stopped.Load() {
		_ = e.closeStore() // likewise
		return fmt.Errorf("open store: first commit failed")
	}
	e.opts.Listener.Recovered(e.machine.Stats().Jobs, e.opts.Clock.Now().Sub(start))
	return nil
}

// openStore opens the engine's own store, or takes that of its member.
func (e *Engine) openStore() error {
	if r := e.opts.Replicated; r != nil {
		e.store, e.journal = r.Store, r.Journal
		return nil
	}
	s, err := store.Open(store.Options{Dir: e.opts.Dir, FS: e.opts.FS, Warn: e.opts.Listener.StoreWarning})
	if err != nil {
		return err
	}
	if s.Cluster() != "" {
		_ = s.Close() // nothing was written
		return ErrMember
	}
	e.store, e.journal = s, s
	return nil
}

// closeStore closes the store, unless it belongs to a member of a cluster.
func (e *Engine) closeStore() error {
	if e.opts.Replicated != nil {
		return nil
	}
	return e.store.Close()
}

func (e *Engine) load(s *store.Store) error {
	return restore(e.machine, s, e.opts.Clock.Now, e.opts.Progress)
}

// restore restores the contents of a store into an empty machine.
func restore(m *machine.Machine, s *store.Store, clock func() core.Instant, progress func(uint64, float64)) error {
	m.Resume(core.Commit(s.Position().Number))
	if err := s.ScanMeta("", m.RestoreMeta); err != nil {
		return err
	}
	now := clock()
	err := s.Scan(context.Background(), progress, func(r *record.Record) error {
		m.Restore(now, r)
		return nil
	})
	if err != nil {
		return err
	}
	m.Restored()
	return nil
}
