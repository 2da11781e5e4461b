// Package recordtest has samples with all fields of records, for tests of the codec and of the store.
package recordtest

import (
	"math"
	"time"

	"broker/core"
	"broker/core/internal/record"
)

// FullJob has every field set, to a value that no other field has.
func FullJob() *core.Job {
	return &core.Job{
		Seq: 77, ID: "own id", Queue: "q", Type: "t", Body: []byte("body"), Format: core.Args, Origin: core.Faktory,
		Attributes: []byte(`{"a":1}`), Priority: -9, CreatedAt: 1_790_000_000_000_000, ReadyAt: 1_790_000_000_000_001,
		ExpiresAt: 253402300799_999999, StartBefore: 3, LeaseFor: 1800 * time.Second, MaxAttempts: 4, MaxFails: 26,
		Backoff: core.BackoffFaktory, Exhausted: core.ExhaustedBury, LeaseEnd: core.LeaseEndFail, DeadFor: core.DeadFor,
		UniqueKey: "u", Unique: core.UniqueRefuse, UniqueUntil: 5, UniqueStart: true, RetainUntil: 6, RetainFor: 7,
		Ephemeral: true, ScheduledOrder: true, Parent: 70, After: []uint64{71, 5, math.MaxUint64}, Batch: 8,
		CallbackFor: 9, PriorFails: 10, Tags: []string{"a", "b"}, Schedule: "s", Timeline: 11, Trace: "trace",
		SeqOrder: true,
		Tallies:  core.AllTallies, Own: core.JobFields, OnBroken: core.BrokenDrops, Cost: 20,
		Rare:    &core.RareFields{RerunOf: 12, Deadline: 1_790_000_000_000_042},
		Failure: FullFailure(),
	}
}

// FullStatus is like FullJob.
func FullStatus() *record.Status {
	return &record.Status{
		State: core.Leased, Requeued: true, Unlocked: true, Broken: true, Rerun: true, Attempts: 3, Fails: 2,
		ReadyAt: 1_790_000_000_000_001, ExpiresAt: 1_790_000_000_000_002, LeasedAt: 1_790_000_000_000_003,
		LeaseFor: time.Minute, Holder: core.HeldByNobody, HolderFrom: core.Workq, Worker: "w", Waiting: []uint64{9, 1},
		Children: 12, FailedAt: 13, ChildrenBroken: true, Closed: true, Tried: true, DoneFailed: true, Placed: true,
		Progress:   &core.Progress{Num: 1, Den: 2, Verbatim: []byte{}, Text: "half", UpdatedAt: 8},
		EpochAhead: 5, LostLeases: 6, Entries: 14, KeptByQueue: true, Group: "group", Unstored: []uint64{1},
		Tally: &core.Tally{Releases: 15, Timeouts: 16, Burials: 17, Kicks: 18, FirstLeasedAt: 19},
		Moved: &record.Moved{Queue: "moved", From: "source", After: 21}, StopAfter: 20, LogChunks: 3,
		LeaseUntil: 1_790_000_000_000_022, Version: "v1",
	}
}

// FullFailure is like FullJob.
func FullFailure() *core.Failure {
	return &core.Failure{
		Type: "E", Message: "m", Backtrace: []string{"a", "", "b"}, FailedAt: 1, NextAt: 2, Count: 3, Exception: true,
		Data: []byte("d"), Group: "g",
	}
}

// FullOutcome is like FullJob.
func FullOutcome() *core.Outcome {
	return &core.Outcome{Success: true, Result: []byte("r"), Failure: FullFailure(), Cause: core.Cancelled}
}

// FullTimelineEntry is like FullJob.
func FullTimelineEntry() *core.TimelineEntry {
	return &core.TimelineEntry{
		Number: 300, Kind: core.EventChanged, At: 1_790_000_000_000_000, Protocol: core.Workq,
		Worker: "w", Address: "a", Queue: "q", Detail: "d", Group: "g", Text: "t", Version: "v1",
	}
}
