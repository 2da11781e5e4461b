package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"broker/core/internal/index"
	"broker/core/internal/machine"
	"broker/core/internal/store"
)

// recover opens the store and restores the machine.
func (e *Engine) recover() error {
	start := e.opts.Clock.Now()
	if err := e.openStore(); err != nil {
		return fmt.Errorf("open store: %w", err)
	}
	s := e.store
	if err := e.load(); err != nil {
		_ = e.closeStore() // report the first error
		return fmt.Errorf("read store: %w", err)
	}
	e.sealedEntry.Position = s.Position()
	e.committed.Store(e.sealedEntry.Number)
	if e.opts.Archive != nil {
		e.opts.Archive.Begin(s, e.opts.Replicated.recent())
	}
	e.commitOnce() // reserve numbers before any is assigned
	if e.stopped.Load() {
		e.endArchive()
		_ = e.closeStore() // report the first error
		return fmt.Errorf("open store: first commit failed")
	}
	e.opts.Listener.Recovered(e.machine.Stats().Jobs, e.opts.Clock.Now().Sub(start))
	return nil
}

// openStore opens the engine's own store, or uses the store of its member.
func (e *Engine) openStore() error {
	if r := e.opts.Replicated; r != nil {
		e.store, e.journal = r.Store, r.Journal
		return nil
	}
	s, err := store.Open(store.Options{
		Dir: e.opts.Dir, FS: e.opts.FS, Warn: e.opts.Listener.StoreWarning,
		MinFreeBytes: e.opts.MinFreeDiskBytes,
	})
	if err != nil {
		return err
	}
	if s.Cluster() != "" {
		_ = s.Close() // nothing was written
		return ErrMember
	}
	if s.Created() {
		e.opts.Listener.StoreCreated(e.opts.Dir)
	}
	s.KeepReserve(e.opts.MinFreeDiskBytes)
	e.store, e.journal = s, s
	return nil
}

// endArchive ships the remaining entries.
func (e *Engine) endArchive() {
	if e.opts.Archive != nil {
		e.opts.Archive.End()
	}
}

// closeStore closes the store, unless it belongs to a member of a cluster.
func (e *Engine) closeStore() error {
	if e.opts.Replicated != nil {
		return nil
	}
	return e.store.Close()
}

// load gets the machine from the standby, if there is one, otherwise by reading the store. Its time is that of the
// engine.
func (e *Engine) load() error {
	now := e.time.Resume(e.store.Position().At)
	if err := e.build(e.opts.machine(now)); err != nil {
		return err
	}
	if ahead := e.machine.Now() - now; ahead.Sub(0) > maxAhead {
		e.machine.ClockSet(now, -ahead)
	}
	return nil
}

// maxAhead is by how much the time of a standby may be ahead of that of an engine. The machine waits for the engine
// then. The time of a standby was further ahead if the leader's time was set back meanwhile.
const maxAhead = time.Second

func (e *Engine) build(o machine.Options) (err error) {
	if r := e.opts.Replicated; r != nil && r.Standby != nil {
		e.machine, err = r.Standby.machine(o)
		if err == nil || errors.Is(err, context.Canceled) {
			return err
		}
	}
	e.machine, err = index.Build(context.Background(), e.store, o, e.time.Now, e.opts.Progress)
	return err
}
