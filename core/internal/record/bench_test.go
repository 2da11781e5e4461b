package record_test

import (
	"bytes"
	"testing"
	"time"

	"broker/core"
	"broker/core/internal/record"
)

// BenchmarkAppendEntry encodes an entry of 64 submissions, 64 leases and 64 removals, as a busy leader of a cluster
// writes.
func BenchmarkAppendEntry(b *testing.B) {
	e := &record.Entry{Position: record.Position{Format: record.NewestFormat, Number: 7}, Prev: 6, Batch: busyBatch()}
	b.ReportAllocs()
	var buf []byte
	for b.Loop() {
		buf, _ = record.AppendEntry(buf[:0], e)
	}
	b.ReportMetric(float64(len(buf)), "bytes/entry")
}

// busyBatch has the changes of jobs as a Faktory client submits them.
func busyBatch() *record.CommitBatch {
	now, body := core.Instant(1_790_000_000_000_000), bytes.Repeat([]byte("b"), 270)
	b := &record.CommitBatch{}
	for i := range uint64(64) {
		b.Changes = append(b.Changes,
			record.Change{Seq: 200 + i, Job: &core.Job{
				Seq: 200 + i, Queue: "resize", Type: "Resize", Origin: core.Faktory, Body: body, CreatedAt: now,
				ID: "6ba7b810-9dad-41d1-80b4-00c04fd430c4", MaxFails: 26, LeaseFor: 30 * time.Minute,
				Backoff: core.BackoffFaktory, Exhausted: core.ExhaustedBury, Own: core.PolicyMaxFails,
			}},
			record.Change{Seq: 100 + i, Status: &record.Status{
				State: core.Leased, Attempts: 1, ReadyAt: now - 1000, LeasedAt: now, LeaseFor: 30 * time.Minute,
				Holder: core.HeldByWorker, HolderFrom: core.Faktory, Worker: "worker-17", Placed: true,
			}},
			record.Change{Seq: i, Gone: true, Stored: record.HasStatus, BodyBytes: 270},
		)
	}
	return b
}
