package store

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"broker/core"
	"broker/core/internal/record"
)

// benchJob is a job as a Gearman client makes it, 300 bytes with body.
func benchJob(seq uint64, body []byte) *core.Job {
	return &core.Job{
		Seq: seq, Queue: "resize", Type: "resize", Origin: core.Gearman, Body: body,
		CreatedAt: core.Instant(1_790_000_000_000_000 + seq*17),
	}
}

// noise returns bytes that do not compress well.
func noise(n int) []byte {
	r := rand.New(rand.NewPCG(1, 2))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte('a' + r.IntN(26))
	}
	return b
}

// BenchmarkCommit puts n jobs with each commit and removes those of eight commits before. On a memory disk, it shows
// the processor time and not the time of the disk.
func BenchmarkCommit(b *testing.B) {
	for _, n := range []int{64, 512} {
		b.Run(fmt.Sprintf("jobs=%d", n), func(b *testing.B) {
			s, err := Open(Options{Dir: "/store", FS: vfs.NewMem()})
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = s.Close() }()
			benchCommits(b, s, n, true)
		})
		b.Run(fmt.Sprintf("jobs=%d/disk", n), func(b *testing.B) {
			s, err := Open(Options{Dir: b.TempDir()})
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = s.Close() }()
			benchCommits(b, s, n, true)
		})
	}
}

func benchCommits(b *testing.B, s *Store, n int, remove bool) {
	b.Helper()
	b.ReportAllocs()
	body := noise(270)
	batch := &record.CommitBatch{}
	jobs := make([]*core.Job, n)
	for i := range jobs {
		jobs[i] = benchJob(0, body)
	}
	seq := uint64(0)
	b.ResetTimer()
	start := cpuTime()
	for b.Loop() {
		batch.Changes = batch.Changes[:0]
		for i := range n {
			seq++
			j := jobs[i]
			j.Seq = seq
			batch.Changes = append(batch.Changes, record.Change{Seq: seq, Job: j})
			if old := seq - uint64(8*n); remove && seq > uint64(8*n) {
				batch.Changes = append(batch.Changes, record.Change{Seq: old, Gone: true})
			}
		}
		if err := s.Commit(batch); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64((cpuTime()-start).Nanoseconds())/float64(b.N*n), "cpu-ns/job")
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/job")
}

// filled is a store on disk with that many jobs, closed and opened again.
func filled(b *testing.B, jobs int) *Store {
	b.Helper()
	dir := b.TempDir()
	s, err := Open(Options{Dir: dir})
	if err != nil {
		b.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	const each = 1000
	batch := &record.CommitBatch{}
	for seq := uint64(1); seq <= uint64(jobs); {
		batch.Changes = batch.Changes[:0]
		for range each {
			body := make([]byte, 270)
			for i := range body {
				body[i] = byte('a' + r.IntN(26))
			}
			batch.Changes = append(batch.Changes, record.Change{Seq: seq, Job: benchJob(seq, body)})
			seq++
		}
		if err := s.Commit(batch); err != nil {
			b.Fatal(err)
		}
	}
	b.Logf("%+v", s.Metrics())
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	if s, err = Open(Options{Dir: dir}); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = s.Close() })
	return s
}

func BenchmarkScan(b *testing.B) {
	jobs := 1_000_000
	if n := os.Getenv("STORE_BENCH_JOBS"); n != "" {
		_, _ = fmt.Sscan(n, &jobs)
	}
	s := filled(b, jobs)
	b.ReportAllocs()
	start := cpuTime()
	for b.Loop() {
		n := 0
		err := s.Scan(context.Background(), nil, func(*record.Record) error { n++; return nil })
		if err != nil || n != jobs {
			b.Fatal(n, err)
		}
	}
	b.ReportMetric(float64((cpuTime()-start).Nanoseconds())/float64(b.N*jobs), "cpu-ns/job")
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*jobs), "ns/job")
}

func BenchmarkJob(b *testing.B) {
	const jobs = 1_000_000
	s := filled(b, jobs)
	b.Run("random", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := s.Job(1 + rand.Uint64N(jobs)); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("in order", func(b *testing.B) {
		b.ReportAllocs()
		seq := uint64(0)
		for b.Loop() {
			seq = seq%jobs + 1
			if _, err := s.Job(seq); err != nil {
				b.Fatal(err)
			}
		}
	})
}
