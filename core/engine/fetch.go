package engine

import (
	"errors"
	"fmt"

	"broker/core"
	"broker/core/internal/machine"
	"broker/core/internal/store"
)

// fetch reads what an operation needs, without the lock, and supplies it to the machine. For a job that was removed meanwhile it
// supplies nil; after a failed read the engine stops, and the operation is refused.
func (e *Engine) fetch(id core.ClientID, wants machine.Wants) {
	for _, times := range wants.Times {
		parsed, err := times.Parse()
		e.mu.Lock()
		e.machine.SupplyTimes(id, times, parsed, err)
		e.mu.Unlock()
	}
	jobs := make(map[uint64]*core.Job, len(wants.Jobs))
	for _, seq := range wants.Jobs {
		j, err := e.store.Job(seq)
		if err != nil && !errors.Is(err, store.ErrMissing) {
			e.fail(fmt.Errorf("read job %d to change it: %w", seq, err))
			return
		}
		jobs[seq] = j
	}
	for _, seq := range e.supply(id, wants, jobs) {
		e.fail(fmt.Errorf("read job %d to change it: %w", seq, store.ErrMissing))
	}
}

// supply supplies what was read, and returns the jobs that are missing unexpectedly.
func (e *Engine) supply(id core.ClientID, wants machine.Wants, jobs map[uint64]*core.Job) (missing []uint64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, seq := range wants.Jobs {
		if !e.machine.SupplyJob(id, seq, jobs[seq]) {
			missing = append(missing, seq)
		}
	}
	return missing
}
