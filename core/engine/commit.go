package engine

import (
	"time"

	"broker/core"
)

// commitLoop makes one batch after the other durable until the engine is closed.
func (e *Engine) commitLoop() {
	defer e.running.Done()
	for {
		select {
		case <-e.done:
			return
		case <-e.writes:
		}
		if !e.gather() {
			return
		}
		e.commitOnce()
	}
}

// gather waits while nobody waits for the open batch, so that leases and progress cost few syncs; false: closing.
func (e *Engine) gather() bool {
	pause := e.opts.LazyEvery
	if e.opts.Durability == Relaxed {
		pause = e.opts.SyncEvery
	}
	e.mu.Lock()
	urgent := e.machine.Awaited()
	e.mu.Unlock()
	if urgent {
		return true
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	for {
		select {
		case <-e.done:
			return false
		case <-timer.C:
			return true
		case <-e.writes:
			e.mu.Lock()
			urgent := e.machine.Awaited()
			e.mu.Unlock()
			if urgent {
				return true
			}
		}
	}
}

// Flush commits what is in the open batch now, on the caller's goroutine.
func (e *Engine) Flush() {
	if e.store != nil {
		e.commitOnce()
	}
}

// commitOnce seals the open batch, makes it durable and releases the replies that rest on it.
func (e *Engine) commitOnce() {
	e.committing.Lock()
	defer e.committing.Unlock()
	if e.stopped.Load() {
		return
	}
	s := &e.sealed
	e.mu.Lock()
	if !e.machine.Awaited() && !e.machine.Changed() {
		e.mu.Unlock()
		return
	}
	e.machine.Seal(s)
	e.mu.Unlock()
	if len(s.Batch.Changes) > 0 || len(s.Batch.Marks) > 0 {
		start := e.opts.Clock.Now()
		err := e.store.Commit(&s.Batch)
		if err != nil {
			e.fail(err)
			return
		}
		e.opts.Listener.CommitDone(len(s.Batch.Changes)+len(s.Batch.Marks), e.opts.Clock.Now().Sub(start))
	}
	e.committed.Store(uint64(s.Commit))
	var buf [64]func()
	wakes := buf[:0]
	e.mu.Lock()
	e.machine.Committed(s)
	for _, slot := range s.Waiters {
		if w := e.wakes[slot]; w != nil {
			wakes = append(wakes, w)
		}
	}
	e.mu.Unlock()
	for _, w := range wakes {
		w()
	}
}

// fail is final: memory is ahead of the disk from now on, and nobody can tell by how much. No work is taken any more,
// reads are answered.
func (e *Engine) fail(err error) {
	if !e.stopped.CompareAndSwap(false, true) {
		return
	}
	e.mu.Lock()
	e.machine.Stop(core.ErrStopped)
	wakes := make([]func(), 0, len(e.wakes))
	for _, w := range e.wakes {
		if w != nil {
			wakes = append(wakes, w)
		}
	}
	e.mu.Unlock()
	e.opts.Listener.StoreFailed(err)
	for _, w := range wakes {
		w()
	}
}
