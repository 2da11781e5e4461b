package engine

import (
	"sync"

	"broker/core/internal/machine"
)

// aheadRuns is how many runs of reads are followed at the same time: queues that are emptied together.
const aheadRuns = 8

// readAhead finds runs in the numbers of the leased jobs that were read from the store.
type readAhead struct {
	mu   sync.Mutex // guards the fields below
	runs [aheadRuns]struct {
		from, to uint64 // the numbers from from to before to have been read
	}
	oldest int // the run that the next one replaces
}

// follow records the read of a job and reports whether it goes on with a run, so that the jobs behind it are worth
// reading.
func (a *readAhead) follow(seq uint64) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for k := range a.runs {
		r := &a.runs[k]
		switch {
		case seq >= r.from && seq < r.to: // read ahead before it could be kept
			return false
		case seq >= r.to && seq < r.to+machine.AheadJobs && r.to > 0:
			r.from, r.to = seq, seq+1+machine.AheadJobs
			return true
		}
	}
	r := &a.runs[a.oldest]
	r.from, r.to = seq, seq+1
	a.oldest = (a.oldest + 1) % aheadRuns
	return false
}

// refill reads the jobs behind a leased job that had to be read, if it was not the only one.
func (e *Engine) refill(seq uint64) {
	if !e.ahead.follow(seq) {
		return
	}
	jobs := e.jobsBehind(seq)
	if len(jobs) == 0 {
		return
	}
	seqs := make([]uint64, len(jobs))
	for k := range jobs {
		seqs[k] = jobs[k].Seq
	}
	for k, job := range e.store.Jobs(seqs) {
		jobs[k].Job = job
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	defer crashOnPanic()
	e.machine.Refill(jobs)
}

func (e *Engine) jobsBehind(seq uint64) []machine.Ahead {
	e.mu.Lock()
	defer e.mu.Unlock()
	defer crashOnPanic()
	return e.machine.Ahead(seq + 1)
}
