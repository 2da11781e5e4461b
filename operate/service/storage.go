package service

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"broker/access"
	"broker/core"
)

// Storage is the state of the store. Counts are since the broker started.
type Storage struct {
	DiskBytes  uint64 `json:"disk_bytes" doc:"of all files"`
	LiveBytes  uint64 `json:"live_bytes" doc:"of the tables in use"`
	LogBytes   uint64 `json:"log_bytes" doc:"of the log that a restart replays"`
	FreeBytes  uint64 `json:"free_bytes" doc:"on the disk; 0: not known"`
	MemBytes   uint64 `json:"memtable_bytes" doc:"bytes written but not yet in a table"`
	CacheBytes uint64 `json:"cache_bytes" doc:"of blocks in memory"`

	CacheHits   uint64  `json:"cache_hits"`
	CacheMisses uint64  `json:"cache_misses"`
	HitRate     float64 `json:"cache_hit_rate" doc:"0 to 1"`

	Levels            []StorageLevel `json:"levels" doc:"the newest data first"`
	ReadAmplification int            `json:"read_amplification" doc:"number of tables that a lookup may have to read"`
	Flushes           uint64         `json:"flushes"`
	FlushedBytes      uint64         `json:"flushed_bytes"`
	Compactions       uint64         `json:"compactions"`
	CompactedBytes    uint64         `json:"compacted_bytes"`
	CompactionDebt    uint64         `json:"compaction_debt_bytes" doc:"due for compaction"`
	WriteStalls       uint64         `json:"write_stalls" doc:"number of times that commits waited for a flush or a compaction"`

	Commits *Histogram `json:"commits" doc:"durations of commits, with their syncs"`
	Syncs   *Syncs     `json:"syncs" doc:"durations of syncs of the log"`

	Archive *Archive `json:"archive,omitempty" doc:"archive to which all commits are shipped; absent: none"`

	Check  *Operation `json:"check,omitempty" doc:"the last check"`
	Backup *Operation `json:"backup,omitempty" doc:"the last backup in the background"`
}

// Archive is the state of the archive. Counts are since the broker started.
type Archive struct {
	Dir        string     `json:"dir" doc:"folder on the broker's host"`
	LagS       float64    `json:"lag_s" doc:"age of the oldest commit that is not in the archive; 0: all are"`
	Earliest   *time.Time `json:"earliest,omitempty" doc:"first moment that can be restored"`
	BaseAt     *time.Time `json:"base_at,omitempty" doc:"time of the newest copy of the store in the archive"`
	Copying    bool       `json:"copying" doc:"a copy of the store is in progress"`
	Bytes      uint64     `json:"bytes" doc:"approximate size of the folder"`
	Queued     int        `json:"queued_bytes" doc:"of commits that wait to be shipped"`
	Commits    uint64     `json:"shipped_commits"`
	Shipped    uint64     `json:"shipped_bytes"`
	BaseCopies uint64     `json:"base_copies" doc:"number of copies of the store"`
	Overflows  uint64     `json:"overflows" doc:"number of times that the queue was full and a new copy of the store had to close the gap"`
	Failures   uint64     `json:"failures" doc:"attempts to write that failed"`
	Error      string     `json:"error,omitempty" doc:"the reason why the folder cannot be written now"`
}

func archiveOf(a *core.Archive) *Archive {
	if a == nil {
		return nil
	}
	return &Archive{
		Dir: a.Dir, LagS: a.Lag.Seconds(), Earliest: timeOf(a.Earliest), BaseAt: timeOf(a.BaseAt), Copying: a.Copying,
		Bytes:  a.Bytes,
		Queued: a.Queued, Commits: a.Entries, Shipped: a.Shipped, BaseCopies: a.Bases, Overflows: a.Overflows,
		Failures: a.Failures, Error: a.Error,
	}
}

// StorageLevel is a level of the store's tree of tables.
type StorageLevel struct {
	Level  int    `json:"level"`
	Tables uint64 `json:"tables"`
	Bytes  uint64 `json:"bytes"`
}

// Syncs are the durations of syncs.
type Syncs struct {
	Count   uint64       `json:"count"`
	SumS    float64      `json:"sum_s"`
	Buckets []SyncBucket `json:"buckets" doc:"in rising order"`
}

// SyncBucket counts the syncs of at most UpToS.
type SyncBucket struct {
	UpToS float64 `json:"up_to_s"`
	Count uint64  `json:"count"`
}

// CheckReport is the result of a check of the store.
type CheckReport struct {
	Damage  []string // damaged data
	Orphans []string // harmless leftovers
	More    uint64   // number of findings that are not listed
}

// Actions of the operations that Storage shows.
const (
	checkAction  = "storage.check"
	backupAction = "backup"
)

// Storage shows the state of the store.
func (s *Service) Storage(caller Caller) (*Storage, error) {
	if err := caller.mayAll(access.Read); err != nil {
		return nil, err
	}
	if s.o.Store == nil {
		return nil, errNothingStored
	}
	st, err := s.o.Store.Storage()
	if err != nil {
		return nil, err
	}
	v := &Storage{
		DiskBytes: st.DiskBytes, LiveBytes: st.LiveBytes, LogBytes: st.LogBytes, FreeBytes: st.FreeBytes,
		MemBytes:   st.MemTableBytes,
		CacheBytes: st.CacheBytes, CacheHits: st.CacheHits, CacheMisses: st.CacheMisses,
		ReadAmplification: st.ReadAmplification, Flushes: st.Flushes, FlushedBytes: st.FlushedBytes,
		Compactions:    st.Compactions,
		CompactedBytes: st.CompactedBytes, CompactionDebt: st.CompactionDebt, WriteStalls: st.WriteStalls,
		Commits: histogramOf(st.Commits), Syncs: syncsOf(&st.Syncs), Archive: archiveOf(st.Archive),
		Check: s.lastOperation(checkAction), Backup: s.lastOperation(backupAction),
	}
	if looked := st.CacheHits + st.CacheMisses; looked > 0 {
		v.HitRate = float64(st.CacheHits) / float64(looked)
	}
	for i, l := range st.Levels {
		v.Levels = append(v.Levels, StorageLevel{Level: i, Tables: l.Tables, Bytes: l.Bytes})
	}
	return v, nil
}

var errNothingStored = &Error{Code: CodeUnsupported, Detail: "this broker stores nothing"}

func syncsOf(l *core.Latency) *Syncs {
	v := &Syncs{Count: l.Count, SumS: l.Seconds, Buckets: []SyncBucket{}}
	for _, upTo := range slices.Sorted(maps.Keys(l.UpTo)) {
		v.Buckets = append(v.Buckets, SyncBucket{UpToS: upTo, Count: l.UpTo[upTo]})
	}
	return v
}

// lastOperation is the newest operation with an action; nil if none is known.
func (s *Service) lastOperation(action string) *Operation {
	l := &s.operations
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, op := range slices.Backward(l.list) {
		if v := op.snapshot(); v.Action == action {
			return &v
		}
	}
	return nil
}

// StartCheck reads the whole store in the background and verifies it.
func (s *Service) StartCheck(ctx context.Context, caller Caller) (Operation, error) {
	if err := caller.mayAll(access.Operate); err != nil {
		return Operation{}, err
	}
	if s.o.Store == nil {
		return Operation{}, errNothingStored
	}
	return s.start(ctx, caller, Operation{Action: checkAction}, func(ctx context.Context, op *operation) error {
		r, err := s.o.Store.CheckStore(ctx, func(part float64) {
			op.update(func(v *Operation) { v.Progress = max(v.Progress, min(part, 1)) })
		})
		if err != nil {
			return err
		}
		op.update(func(v *Operation) {
			v.Findings = append(slices.Clone(r.Damage), r.Orphans...)
			if r.More > 0 {
				v.Findings = append(v.Findings, fmt.Sprintf("and %d more", r.More))
			}
		})
		if len(r.Damage) > 0 {
			return &Error{Code: CodeStoreFailed, Detail: "the store is damaged"}
		}
		return nil
	})
}

// runBackup makes a backup and reports its progress.
func (s *Service) runBackup(op *operation, dir string) error {
	done := make(chan error, 1)
	go func() { done <- s.o.Store.Backup(dir) }() // ends with the backup, which this waits for
	tick := time.NewTicker(progressEvery)
	defer tick.Stop()
	for {
		select {
		case err := <-done:
			return err
		case <-tick.C:
			part := s.o.Store.BackupProgress(dir)
			op.update(func(v *Operation) { v.Progress = max(v.Progress, min(part, 1)) })
		}
	}
}
