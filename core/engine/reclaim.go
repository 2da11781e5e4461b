package engine

import (
	"context"
	"sync/atomic"
)

// reclaimer frees disk space while the disk is nearly full. In that state no new jobs arrive, and the removals of
// completed jobs are too small to trigger a compaction. So the reclaimer compacts each time a quarter of the jobs is
// gone, which keeps the cost of compaction in proportion to its effect.
type reclaimer struct {
	jobs int // in the store at the last compaction; used by the disk check only
	busy atomic.Bool
}

// onLowDisk is called about once per second while the disk is nearly full; reached: for the first time.
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
		e.Flush() // includes the newest removals
		if err := e.store.Reclaim(ctx); err != nil {
			e.opts.Listener.StoreWarning("disk space could not be reclaimed: " + err.Error())
		}
	})
}
