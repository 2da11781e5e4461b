package engine

import (
	"fmt"
	"sync/atomic"
	"time"
)

// hangLooks is how often a commit is looked at before it counts as hanging.
const hangLooks = 8

// commitWatch is the commit that the journal works on. A disk that hangs returns no error: without a limit, clients would wait
// for it as long as the process lives.
type commitWatch struct{ running atomic.Uint64 } // number of the commit; zero: none

// watchCommits fails the engine when one commit has taken HangAfter. It counts looks instead of comparing times, so that a
// process that was paused as a whole does not take the pause for a hang.
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
