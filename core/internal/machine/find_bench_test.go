package machine

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"broker/core"
)

// deadJobs is a machine with so many dead jobs in ten queues, of a hundred failure groups, as after a restart.
func deadJobs(b *testing.B, jobs int) (*Machine, core.ClientID) {
	b.Helper()
	m := New(Options{StartedAt: 1 << 50})
	id := m.OpenClient(1<<50, core.ClientOptions{})
	body := make([]byte, 0)
	for i := range jobs {
		now := core.Instant(1<<50 + i)
		queue := fmt.Sprint("queue ", i%10)
		m.Apply(now, id, []core.Op{
			&core.Submit{Job: &core.Job{Queue: queue, Body: body, Exhausted: core.ExhaustedBury}},
			&core.Fail{
				Ref: core.Ref{Seq: uint64(i + 1)}, Authority: core.ByAnyone,
				Failure: &core.Failure{Type: fmt.Sprint("Group", i%100)},
			},
		})
		m.Take(id, nil)
		h := m.table.Handle(uint64(i + 1))
		m.table.SetPayload(h, nil) // it would be on disk
		m.table.Transient(h).Failure = nil
	}
	return m, id
}

// BenchmarkTags finds jobs by tags of which each job has one.
func BenchmarkTags(b *testing.B) {
	const jobs = 1_000_000
	var memory [2]runtime.MemStats
	m := New(Options{StartedAt: 1 << 50})
	id := m.OpenClient(1<<50, core.ClientOptions{})
	for i := range jobs {
		m.Apply(1<<50, id, []core.Op{&core.Submit{Job: &core.Job{Queue: "q"}}})
		m.Take(id, nil)
		m.table.SetPayload(uint32(i+1), nil)
	}
	runtime.GC()
	runtime.ReadMemStats(&memory[0])
	for i := range jobs {
		m.table.SetTags(uint32(i+1), []string{fmt.Sprint("tag ", i%1000)})
	}
	runtime.GC()
	runtime.ReadMemStats(&memory[1])
	b.Logf("%d bytes for one tag of a job", (memory[1].HeapAlloc-memory[0].HeapAlloc)/jobs)
	op := &core.Find{Filter: core.Filter{Tags: []string{"tag 7"}}, Brief: true, WithCount: true}
	var replies []core.Reply
	for b.Loop() {
		m.Apply(1<<51, id, []core.Op{op})
		replies = m.Take(id, replies[:0])
	}
	b.ReportMetric(float64(replies[0].Count), "jobs")
}

// BenchmarkFindDead lists pages of a hundred of a million dead jobs.
func BenchmarkFindDead(b *testing.B) {
	const jobs = 1_000_000
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	m, id := deadJobs(b, jobs)
	runtime.GC()
	runtime.ReadMemStats(&after)
	b.Logf("%d bytes a dead job", (after.HeapAlloc-before.HeapAlloc)/jobs)
	middle := core.Range{From: 1<<50 + jobs/2}
	for _, c := range []struct {
		name string
		op   core.Find
	}{
		{"first page", core.Find{Order: core.OrderDied}},
		{"last page", core.Find{Order: core.OrderDied, Desc: true}},
		{"a page in the middle", core.Find{Order: core.OrderDied, Filter: core.Filter{Died: middle}}},
		{
			"one queue of ten",
			core.Find{Order: core.OrderDied, Filter: core.Filter{Queues: []string{"queue 3"}, Died: middle}},
		},
		{
			"a group of ten thousand by age",
			core.Find{Order: core.OrderDied, Filter: core.Filter{FailureGroup: "Group7"}},
		},
		{"a group, by number", core.Find{Filter: core.Filter{FailureGroup: "Group7"}}},
		{"with a count", core.Find{Order: core.OrderDied, WithCount: true}},
		{
			"with a count of a group",
			core.Find{Order: core.OrderDied, WithCount: true, Filter: core.Filter{FailureGroup: "Group7"}},
		},
		{
			"nothing matches",
			core.Find{Order: core.OrderDied, Filter: core.Filter{Origins: []core.Protocol{core.Workq}}},
		},
	} {
		b.Run(c.name, func(b *testing.B) {
			c.op.Brief, c.op.Limit = true, 100
			var replies []core.Reply
			slowest := time.Duration(0)
			for b.Loop() {
				begun := time.Now() //nolint:forbidigo // a benchmark
				m.Apply(1<<51, id, []core.Op{&c.op})
				replies = m.Take(id, replies[:0])
				slowest = max(slowest, time.Since(begun)) //nolint:forbidigo // likewise
			}
			b.ReportMetric(float64(slowest.Microseconds()), "µs-slowest")
			b.ReportMetric(float64(len(replies[0].Jobs)), "jobs")
		})
	}
}
