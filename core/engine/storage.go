package engine

import (
	"context"
	"sync"
	"time"

	"broker/core"
)

// commitTimes are how long commits took.
type commitTimes struct {
	mu   sync.Mutex // guards took
	took core.Histogram
}

func (t *commitTimes) add(took time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.took.Add(took)
}

func (t *commitTimes) clone() *core.Histogram {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.took.Clone()
}

// Storage returns the state of the store, or ErrNothingStored if there is no store. It may take as long as a lookup.
func (e *Engine) Storage() (core.Storage, error) {
	if e.store == nil {
		return core.Storage{}, ErrNothingStored
	}
	m := e.store.Metrics()
	m.FreeBytes, _ = e.store.FreeBytes() // zero if the file system does not report it
	m.Commits, m.Syncs = e.commitTimes.clone(), e.store.SyncLatency()
	return m, nil
}

// SyncLatency is how long syncs of the store's log took: the disk's share of a commit. Empty without a store.
func (e *Engine) SyncLatency() core.Latency {
	if e.store == nil {
		return core.Latency{}
	}
	return e.store.SyncLatency()
}

// BackupCopied returns how many bytes of the backup in dir have been written so far.
func (e *Engine) BackupCopied(dir string) uint64 {
	if e.store == nil {
		return 0
	}
	return e.store.CopiedBytes(dir)
}

// CheckStore reads the whole store, as of the start of the call, while the broker continues to run. It verifies every
// checksum and decodes every record. The error is only for failures to read the store; problems of the store are in the
// Report. progress is called from time to time with the share that is done, 0 to 1.
func (e *Engine) CheckStore(ctx context.Context, progress func(part float64)) (*Report, error) {
	if e.store == nil {
		return nil, ErrNothingStored
	}
	const walks = 2 // most keys are read twice
	keys, err := e.store.TableKeys()
	if err != nil {
		return nil, err
	}
	r, err := e.store.Check(ctx, func(read uint64) {
		progress(min(float64(read)/float64(walks*keys+1), 1))
	})
	if err != nil {
		return nil, err
	}
	return &Report{Report: r}, nil
}
