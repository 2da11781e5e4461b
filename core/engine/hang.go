package engine

import (
	"fmt"
	"sync/atomic"
	"time"
)

// hangLooks is how many checks in a row must see the same commit before it counts as hanging.
const hangLooks = 8

// commitWatch is the commit that is being written. A hanging disk returns no error: without a limit, clients would wait
// until the process ends.
type commitWatch struct{ running atomic.Uint64 } // number of the commit; zero: none

// watchCommits fails the engine when one commit has taken HangAfter. It counts checks instead of comparing times, so
// that a pause of the whole process does not look like a hanging disk.
func (e *Engine) watchCommits() {
	defer e.running.Done()
	ticker := time.NewTicker(e.opts.HangAfter / hangLooks)
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
		case looks < hangLooks:
			looks++
		default:
			e.fail(fmt.Errorf("commit %d has not reached the disk within %v", commit, e.opts.HangAfter))
			return
		}
	}
}
