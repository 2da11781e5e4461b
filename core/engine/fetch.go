package engine

import (
	"errors"
	"fmt"

	"broker/core"
	"broker/core/crontab"
	"broker/core/internal/machine"
	"broker/core/internal/store"
)

// fetch reads the data that an operation needs, without the lock, and supplies it to the machine. If a job was removed
// in the meantime, it supplies nil. After a failed read, the engine stops and the operation fails.
func (e *Engine) fetch(id core.ClientID, wants machine.Wants) {
	for _, times := range wants.Times {
		parsed, err := times.Parse()
		e.supplyTimes(id, times, parsed, err)
	}
	for _, seq := range wants.Logs {
		documents, err := e.readLog(seq)
		if err != nil && !e.isDamage(err) {
			e.fail(fmt.Errorf("read the log of job %d to append to it: %w", seq, err))
			return
		}
		e.supplyLog(id, seq, documents, err)
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

// readLog reads the documents of the log of a job.
func (e *Engine) readLog(seq uint64) (documents []core.MetaEntry, err error) {
	err = e.store.ScanDocuments(core.LogPrefix(seq), "", func(name string, value []byte) bool {
		documents = append(documents, core.MetaEntry{Name: name, Value: append([]byte{}, value...)})
		return true
	})
	return documents, err
}

func (e *Engine) supplyLog(id core.ClientID, seq uint64, documents []core.MetaEntry, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	defer crashOnPanic()
	e.machine.SupplyLog(id, seq, documents, err)
}

// supply passes the data to the machine, and returns the jobs that are missing unexpectedly.
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
