package engine

import (
	"errors"
	"fmt"

	"broker/core"
	"broker/core/crontab"
	"broker/core/internal/machine"
	"broker/core/internal/store"
)

// fetch reads what an operation needs, without the lock, and supplies it to the machine. For a job that was removed meanwhile it
// supplies nil; after a failed read the engine stops, and the operation is refused.
func (e *Engine) fetch(id core.ClientID, wants machine.Wants) {
	for _, times := range wants.Times {
		parsed, err := times.Parse()
		e.supplyTimes(id, times, parsed, err)
	}
	jobs := make(map[uint64]*core.Job, len(wants.Jobs))
	for _, seq := range wants.Jobs {
		j, err := e.store.Job(seq)
		if e.isDamage(err) {
			e.reportDamage(seq, err)
			e.supplyDamaged(id, seq)
			continue
		}
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

func (e *Engine) supplyTimes(id core.ClientID, times machine.Times, parsed crontab.Schedule, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	defer crashOnPanic()
	e.machine.SupplyTimes(id, times, parsed, err)
}

// supply supplies what was read, and returns the jobs that are missing unexpectedly.
func (e *Engine) supply(id core.ClientID, wants machine.Wants, jobs map[uint64]*core.Job) (missing []uint64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	defer crashOnPanic()
	for _, seq := range wants.Jobs {
		j, read := jobs[seq]
		if read && !e.machine.SupplyJob(id, seq, j) {
			missing = append(missing, seq)
		}
	}
	return missing
}
