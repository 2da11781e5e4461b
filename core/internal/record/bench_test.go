package record_test

import (
	"bytes"
	"testing"
	"time"

	"broker/core"
	"broker/core/internal/record"
	"broker/core/internal/record/recordtest"
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

// BenchmarkDecodeEntry is the inverse of BenchmarkAppendEntry, as a follower does.
func BenchmarkDecodeEntry(b *testing.B) {
	e := &record.Entry{Position: record.Position{Format: record.NewestFormat, Number: 7}, Prev: 6, Batch: busyBatch()}
	buf, err := record.AppendEntry(nil, e)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := record.DecodeEntry(buf); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRecord encodes and decodes one job and one status, plain ones and with all fields, in buffers that are
// reused.
func BenchmarkRecord(b *testing.B) {
	busy := busyBatch()
	body := busy.Changes[0].Job.Body
	plain := &core.Job{Seq: 7, Queue: "resize", Type: "resize", Body: body, CreatedAt: 1_790_000_000_000_000}
	for name, j := range map[string]*core.Job{
		"plain": plain, "faktory": busy.Changes[0].Job, "full": recordtest.FullJob(),
	} {
		stored, _ := record.AppendJob(nil, j, 0)
		b.Run("append job "+name, func(b *testing.B) {
			buf := stored
			for b.Loop() {
				buf, _ = record.AppendJob(buf[:0], j, 0)
			}
		})
		b.Run("decode job "+name, func(b *testing.B) {
			known, text := record.NewInterner(), new([36]byte)
			for b.Loop() {
				if _, _, err := record.DecodeJob(stored, j.Seq, new(core.Job), known, text); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	for name, s := range map[string]*record.Status{"leased": busy.Changes[1].Status, "full": recordtest.FullStatus()} {
		stored, _ := record.AppendStatus(nil, 7, s)
		b.Run("append status "+name, func(b *testing.B) {
			buf := stored
			for b.Loop() {
				buf, _ = record.AppendStatus(buf[:0], 7, s)
			}
		})
		b.Run("decode status "+name, func(b *testing.B) {
			got := new(record.Status)
			for b.Loop() {
				if err := record.DecodeStatus(stored, 7, got); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
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
