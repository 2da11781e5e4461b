package engine_test

import (
	"fmt"
	"testing"

	"broker/core"
	"broker/core/engine"
	"broker/core/notify"
)

// BenchmarkJobLife is one job's submission, lease and completion in batches of 64, as a busy Gearman connection does
// it.
func BenchmarkJobLife(b *testing.B) {
	for name, durability := range map[string]engine.Durability{"sync": engine.Sync, "none": engine.None} {
		b.Run(name, func(b *testing.B) {
			e, err := engine.Open(engine.Options{Dir: b.TempDir(), Durability: durability})
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = e.Shutdown() }() // the directory goes with the benchmark
			client := e.Open(core.ClientOptions{Protocol: core.Gearman, Wake: func() {}})
			worker := e.Open(core.ClientOptions{Protocol: core.Gearman, Wake: func() {}})
			e.Do(worker, []core.Op{&core.Register{Queue: "q"}}, nil)
			const batch = 64
			body := make([]byte, 256)
			var replies []core.Reply
			b.ReportAllocs()
			for n := 0; n < b.N; n += batch {
				ops := make([]core.Op, batch)
				for i := range ops {
					ops[i] = &core.Submit{Job: &core.Job{
						Queue: "q", Body: append([]byte(nil), body...), Origin: core.Gearman,
					}}
				}
				replies = e.Do(client, ops, replies[:0])
				for i := range ops {
					ops[i] = &core.Lease{Pick: core.PickByPriority}
				}
				replies = e.Do(worker, ops, replies[:0])
				for i := range ops {
					ops[i] = &core.Complete{Ref: core.Ref{Seq: replies[i].Seq}}
				}
				replies = e.Do(worker, ops, replies[:0])
			}
		})
	}
}

// BenchmarkNewQueue is the first job of a new queue. Names that come in order are appended to lists of names, others
// are inserted.
func BenchmarkNewQueue(b *testing.B) {
	for order, scatter := range map[string]uint32{"names in order": 1, "names in no order": 2654435761} {
		b.Run(order, func(b *testing.B) {
			e, err := engine.Open(engine.Options{Dir: b.TempDir(), Durability: engine.None})
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = e.Shutdown() }() // the directory goes with the benchmark
			client := e.Open(core.ClientOptions{Protocol: core.Gearman, Wake: func() {}})
			ops, replies := make([]core.Op, 1), []core.Reply(nil)
			b.ReportAllocs()
			for n := range b.N {
				queue := fmt.Sprintf("reply-%010d", uint32(n)*scatter)
				ops[0] = &core.Submit{Job: &core.Job{Queue: queue, Body: []byte{1}, Origin: core.Gearman}}
				replies = e.Do(client, ops, replies[:0])
			}
		})
	}
}

// BenchmarkLongQueue is the lease and the completion of a job of a queue that does not fit into the cache.
func BenchmarkLongQueue(b *testing.B) {
	e, err := engine.Open(engine.Options{Dir: b.TempDir(), Durability: engine.Relaxed, CacheBytes: 1 << 20})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = e.Shutdown() }() // the directory goes with the benchmark
	woken := notify.NewSignal()
	client := e.Open(core.ClientOptions{Protocol: core.Gearman, Wake: woken.Set})
	e.Do(client, []core.Op{&core.Register{Queue: "q"}}, nil)
	var replies []core.Reply
	for n := 0; n < b.N; n += 64 {
		ops := make([]core.Op, 64)
		for k := range ops {
			ops[k] = &core.Submit{Job: &core.Job{Queue: "q", Body: make([]byte, 256), Origin: core.Gearman}}
		}
		replies = e.Do(client, ops, replies[:0])
	}
	e.Flush()
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		replies = e.Do(client, []core.Op{&core.Lease{Pick: core.PickByPriority, Late: true}}, replies[:0])
		for replies[0].Kind == core.Reading {
			<-woken
			if replies = e.Do(client, nil, replies[:0]); len(replies) == 0 {
				replies = append(replies, core.Reply{Kind: core.Reading})
			}
		}
		replies = e.Do(client, []core.Op{&core.Complete{Ref: core.Ref{Seq: replies[0].Seq}}}, replies[:0])
	}
}
