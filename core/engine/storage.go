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

// Storage shows the state of the store; ErrNothingStored without one. It may take as long as a lookup.
func (e *Engine) Storage() (core.Storage, error) {
	if e.store == nil {
		return core.Storage{}, ErrNothingStored
	}
	m := e.store.Metrics()
	free, err := e.store.FreeBytes()
	if err != nil {
		free = 0 // the file system does not know
	}
	return core.Storage{
		DiskBytes: m.DiskBytes, LiveBytes: m.LiveBytes, LogBytes: m.LogBytes, FreeBytes: free,
		MemTableBytes: m.MemTableBytes, CacheBytes: m.CacheBytes, CacheHits: m.CacheHits, CacheMisses: m.CacheMisses,
		Levels: m.Levels[:], Tables: m.Tables, ReadAmplification: m.ReadAmp,
		Flushes: m.Flushes, FlushedBytes: m.FlushedBytes, Compactions: m.Compactions, CompactedBytes: m.CompactedBytes,
		CompactionDebt: m.CompactionDebt, WriteStalls: m.WriteStalls,
		Commits: e.commitTimes.clone(), Syncs: e.store.SyncLatency(),
	}, nil
}

// BackupCopied is how many bytes of the backup that is being made in dir are there.
func (e *Engine) BackupCopied(dir string) uint64 {
	if e.store == nil {
		return 0
	}
	return e.store.CopiedBytes(dir)
}

// CheckStore reads the whole store, as it is when the call begins, while the broker goes on: every checksum is verified and
// every record decoded. The error is for what keeps it from looking; what it finds wrong is in the Report. progress is told
// now and then which part is done, 0 to 1.
func (e *Engine) CheckStore(ctx context.Context, progress func(part float64)) (*Report, error) {
	if e.store == nil {
		return nil, ErrNothingStored
	}
	const walks = 2 // of most keys
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
	return &Report{
		Bytes: r.Bytes, Bodies: r.Bodies, MetaEntries: r.MetaEntries, Damage: r.Damage, Orphans: r.Orphans, More: r.More,
	}, nil
}
