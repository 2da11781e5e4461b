package engine

import (
	"context"
	"sync/atomic"
)

// reclaimer gets room back while the disk is nearly full. No new jobs come then, and the removals of those that are
// worked off are too small to make the store tidy up by itself: it must be told to, each time a quarter of the jobs
// that were there the last time is gone, so that what merging costs is in proportion to what it brings.
type reclaimer struct {
	jobs int // in the store the last time; touched by the timer goroutine only
	busy atomic.Bool
}

// onLowDisk is called about once a second while the disk is nearly full; reached says that this is the first time.
func (e *Engine) onLowDisk(reached bool) {
	r := &e.reclaimer
	e.mu.Lock()
	jobs := 0
	for _, n := range e.machine.Stats().Jobs {
		jobs += n
	}
	e.mu.Unlock()
	if reached {
		r.jobs = max(jobs, 1)
		return
	}
	if r.jobs == 0 || jobs > r.jobs*3/4 || r.busy.Swap(true) {
		return
	}
	r.jobs = jobs
	e.running.Go(func() { // ends soon after done is closed; Shutdown waits for it
		defer r.busy.Store(false)
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		go func() { // ends with ctx
			select {
			case <-e.done:
				cancel()
			case <-ctx.Done():
			}
		}()
		e.Flush() // the newest removals are part of it
		if err := e.store.Reclaim(ctx); err != nil {
			e.opts.Listener.StoreWarning("room could not be reclaimed: " + err.Error())
		}
	})
}
