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
		if !e.linger() {
			return
		}
		e.groupDelay()
		e.commitOnce()
	}
}

// gather waits while nobody waits for the open batch, so that leases and progress cost few syncs; false: closing.
func (e *Engine) linger() bool {
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

// What pace goes by. A sync costs a processor about as much as ten jobs do, so under load twice as many in a batch let a
// broker on few cores do a tenth more; groupDelayPeriod is where more would gain nothing.
const (
	groupDelayFrom   = 64 // changes in a batch; smaller ones are never held up
	groupDelayPeriod = 1500 * time.Microsecond
	groupDelayStep   = 250 * time.Microsecond
)

// pace lets the open batch grow as large as the last one was, if that was a large one, until groupDelayPeriod after the last
// was sealed. Clients that wait for each answer lose nothing by that: once all of them have come back, the batch is as
// large as it will get.
func (e *Engine) groupDelay() {
	last, open := e.sizes()
	rest := min(groupDelayPeriod-e.opts.Clock.Now().Sub(last.at), groupDelayPeriod) // the clock may have been set
	for last.changes >= groupDelayFrom && open < last.changes && rest > 0 {
		select {
		case <-e.done:
			return
		case <-time.After(min(rest, groupDelayStep)):
			rest -= groupDelayStep
		}
		_, open = e.sizes()
	}
}

// sealing is when a batch was sealed and how large it was.
type lastSeal struct {
	at      core.Instant
	changes int
}

// sizes compares the batch that was sealed last with the open one.
func (e *Engine) sizes() (last lastSeal, open int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.last, e.machine.Pending()
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
	start := e.opts.Clock.Now()
	e.last = lastSeal{at: start, changes: len(s.Batch.Changes)}
	e.mu.Unlock()
	if len(s.Batch.Changes) > 0 || len(s.Batch.Meta) > 0 {
		err := e.store.Commit(&s.Batch)
		if err != nil {
			e.fail(err)
			return
		}
		e.opts.Listener.CommitDone(len(s.Batch.Changes)+len(s.Batch.Meta), e.opts.Clock.Now().Sub(start))
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
