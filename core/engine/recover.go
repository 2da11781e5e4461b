package engine

import (
	"context"
	"fmt"

	"broker/core"
	"broker/core/internal/machine"
	"broker/core/internal/record"
	"broker/core/internal/store"
)

// recover opens the store and rebuilds the index by one scan.
func (e *Engine) recover() error {
	start := e.opts.Clock.Now()
	s, err := store.Open(store.Options{Dir: e.opts.Dir, FS: e.opts.FS, Warn: e.opts.Listener.StoreWarning})
	if err != nil {
		return fmt.Errorf("open store: %w", err)
	}
	if err := e.load(s); err != nil {
		_ = s.Close() // the first error is the one that matters
		return fmt.Errorf("read store: %w", err)
	}
	e.store, e.journal = s, s
	e.sealedEntry.Position = s.Position()
	e.committed.Store(e.sealedEntry.Number)
	e.commitOnce() // the reserved numbers, before any of them is given out
	if e.stopped.Load() {
		_ = s.Close() // likewise
		return fmt.Errorf("open store: first commit failed")
	}
	e.opts.Listener.Recovered(e.machine.Stats().Jobs, e.opts.Clock.Now().Sub(start))
	return nil
}

func (e *Engine) load(s *store.Store) error {
	return restore(e.machine, s, e.opts.Clock.Now, e.opts.Progress)
}

// restore brings back into an empty machine what a store holds.
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
