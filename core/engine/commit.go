package engine

import (
	"errors"
	"sync/atomic"
	"time"

	"broker/core"
	"broker/core/internal/machine"
	"broker/core/internal/record"
)

// commitLoop commits one batch after another until the engine is closed.
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

// batchSizes tells the committer the sizes of the open batch and the previous batch. Written under the lock, read
// without it.
type batchSizes struct {
	awaited  atomic.Bool  // a client waits for the open batch
	open     atomic.Int64 // approximate number of changes in the open batch
	sealed   atomic.Int64 // changes in the last sealed batch
	sealedAt atomic.Int64 // when the last batch was sealed, a core.Instant
}

// lazyEvery is the longest delay of records that no client waits for, with Durability Sync.
const lazyEvery = 25 * time.Millisecond

// linger delays the commit while no client waits for the open batch, so that leases and progress need few syncs. It
// returns false when the engine closes.
func (e *Engine) linger() bool {
	if e.sizes.awaited.Load() {
		return true
	}
	pause := lazyEvery
	if e.opts.Durability == Relaxed {
		pause = e.opts.SyncEvery
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
			if e.sizes.awaited.Load() {
				return true
			}
		}
	}
}

// A sync uses as much processor time as about ten jobs, so under load, a broker on few cores does a tenth more work if
// batches are twice as large. Delays longer than groupDelayPeriod bring no further gain.
const (
	groupDelayFrom   = 64 // changes in a batch; smaller ones are never delayed
	groupDelayPeriod = 1500 * time.Microsecond
	groupDelayStep   = 250 * time.Microsecond
)

// An entry of a replicated log takes three syncs and several calls, so smaller batches are worth a delay too. The delay
// starts when the previous batch was committed. With very small batches, a few clients that wait for each reply would
// only wait longer.
const (
	replicatedFrom      = 16
	replicatedDelay     = 300 * time.Microsecond
	replicatedDelayStep = 100 * time.Microsecond
)

// groupDelay lets the open batch grow to the size of the last batch, if that was large, for at most groupDelayPeriod
// since the last batch was sealed. Clients that wait for each reply lose nothing: once all of them have sent their next
// request, the batch has reached that size.
func (e *Engine) groupDelay() {
	last := e.sizes.sealed.Load()
	switch replicated := e.opts.Replicated != nil; {
	case replicated && last >= replicatedFrom:
		e.gather(last, replicatedDelay, replicatedDelayStep)
		return
	case replicated, last < groupDelayFrom:
		return
	}
	since := e.time.Now().Sub(core.Instant(e.sizes.sealedAt.Load()))
	e.gather(last, min(groupDelayPeriod-since, groupDelayPeriod), groupDelayStep) // the clock may have been set
}

// gather waits until the open batch has this many changes, at most for rest.
func (e *Engine) gather(changes int64, rest, step time.Duration) {
	for e.sizes.open.Load() < changes && rest > 0 {
		select {
		case <-e.done:
			return
		case <-time.After(min(rest, step)):
			rest -= step
		}
	}
}

// Flush commits the open batch now, on the caller's goroutine.
func (e *Engine) Flush() {
	if e.store != nil && !e.stopped.Load() {
		e.commitOnce()
	}
}

// commitOnce seals the open batch, makes it durable and releases the replies that depend on it.
func (e *Engine) commitOnce() {
	e.committing.Lock()
	defer e.committing.Unlock()
	if e.stopped.Load() {
		return
	}
	s := &e.sealed
	start, ok := e.seal(s)
	if !ok {
		return
	}
	size := len(s.Batch.Changes) + len(s.Batch.Meta) + len(s.Batch.Documents)
	took, appended := time.Duration(0), false
	if size > 0 || !e.opts.Replicated.holds() {
		e.watch.running.Store(uint64(s.Commit))
		err := e.journal.Append(e.entry(s, start))
		if err == nil {
			e.checkDiskNow()
		}
		e.watch.running.Store(0)
		if err != nil {
			e.fail(err)
			return
		}
		if e.stopped.Load() { // the commit hung, and its clients got errors
			return
		}
		took, appended = e.time.Now().Sub(start), true
	}
	e.committed.Store(uint64(s.Commit))
	wakeAll(e.sealedWakes) // first, since clients wait for it
	if appended && e.opts.Archive != nil {
		e.opts.Archive.Add(&e.sealedEntry)
	}
	wakeAll(e.settle(s))
	e.woken.Store(uint64(s.Commit))
	clear(e.sealedWakes)
	if size > 0 {
		e.commitTimes.add(took)
		e.opts.Listener.CommitDone(size, took)
	}
}

// entry makes the log entry for a batch. It follows the last entry.
func (e *Engine) entry(s *machine.Sealed, at core.Instant) *record.Entry {
	prev := e.sealedEntry.Number
	e.sealedEntry = record.Entry{
		Position: record.Position{Number: uint64(s.Commit), At: at}, Prev: prev, Batch: &s.Batch,
	}
	return &e.sealedEntry
}

// seal closes the open batch and collects the clients to wake once it is durable; false: there is nothing to commit.
func (e *Engine) seal(s *machine.Sealed) (core.Instant, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	defer crashOnPanic()
	if !e.machine.Awaited() && !e.machine.Changed() {
		return 0, false
	}
	e.machine.Seal(s)
	now := e.time.Now()
	e.sizes.sealed.Store(int64(len(s.Batch.Changes)))
	e.sizes.sealedAt.Store(int64(now))
	e.sizes.open.Store(0)
	e.sizes.awaited.Store(false)
	e.sealedWakes = e.wakesOf(e.sealedWakes[:0], s.Waiters)
	return now, true
}

// settle lets the machine drop its copies of data that is now durable. It returns the wakes of clients whose replies
// began to depend on the batch after it was sealed.
func (e *Engine) settle(s *machine.Sealed) []func() {
	e.mu.Lock()
	defer e.mu.Unlock()
	defer crashOnPanic()
	known := len(s.Waiters)
	e.machine.Committed(s)
	e.machine.DiskSlow(false)
	return e.wakesOf(e.sealedWakes[:0], s.Waiters[known:])
}

// wakesOf appends the wakes of the clients in slots. Waking a closed client is harmless.
func (e *Engine) wakesOf(into []func(), slots []uint32) []func() {
	for _, slot := range slots {
		if w := e.clients[slot].durable; w != nil {
			into = append(into, w)
		}
	}
	return into
}

func wakeAll(wakes []func()) {
	for _, w := range wakes {
		w()
	}
}

// fail stops the engine for good, because memory is ahead of the disk by an unknown amount. The engine accepts no more
// changes but still answers reads.
func (e *Engine) fail(err error) {
	if !e.stopped.CompareAndSwap(false, true) {
		return
	}
	e.mu.Lock()
	defer crashOnPanic()
	e.machine.Stop(core.ErrStopped)
	wakes := make([]func(), 0, len(e.clients))
	for i := range e.clients {
		if w := e.clients[i].wake; w != nil {
			wakes = append(wakes, w)
		}
	}
	e.mu.Unlock()
	if !errors.Is(err, ErrReplaced) {
		e.opts.Listener.StoreFailed(err)
	}
	wakeAll(wakes)
}
