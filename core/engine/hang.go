package engine

import (
	"fmt"
	"sync/atomic"
	"time"
)

// hangLooks is how many checks in a row must at least see the same commit before it counts as hanging.
const hangLooks = 8

// slowAfter is after how long a commit counts as slow: a healthy disk syncs in milliseconds.
const slowAfter = time.Second

// slowLooks is how many checks in a row must see the same commit before it counts as slow.
const slowLooks = 2

// commitWatch is the commit that is being written. A hanging disk returns no error: without a limit, clients would wait
// until the process ends.
type commitWatch struct{ running atomic.Uint64 } // number of the commit; zero: none

// watchCommits reports a commit that has taken slowAfter, and fails the engine when one has taken HangAfter. In a
// cluster it only reports, since the disks of the majority decide. It counts checks instead of comparing times, so that
// a pause of the whole process does not look like a slow or hanging disk.
func (e *Engine) watchCommits() {
	defer e.running.Done()
	every := min(e.opts.HangAfter/hangLooks, slowAfter/slowLooks)
	hang := int(e.opts.HangAfter / every)
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	seen, looks := uint64(0), 0
	for {
		select {
		case <-e.done:
			return
		case <-ticker.C:
		}
		switch commit := e.watch.running.Load(); {
		case commit == 0 || commit != seen:
			seen, looks = commit, 0
		case looks < hang || e.opts.Replicated != nil:
			if looks++; looks == slowLooks {
				e.slowCommit(commit)
				e.opts.Listener.CommitSlow(time.Duration(looks) * every)
			}
		default:
			e.fail(fmt.Errorf("commit %d has not reached the disk within %v", commit, e.opts.HangAfter))
			return
		}
	}
}

// slowCommit counts the commit as slow until it has been written.
func (e *Engine) slowCommit(commit uint64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.watch.running.Load() == commit { // settle, which comes after its end, takes it back
		e.machine.DiskSlow(true)
	}
}
