package machine

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"slices"
	"testing"
	"time"

	"broker/core"
	"broker/core/coretest"
)

// orderedLoad is a queue with jobs of many keys.
type orderedLoad struct {
	m *Machine
	c core.ClientID
}

func newOrderedLoad(jobs, keys int, sharing core.Sharing) *orderedLoad {
	l := &orderedLoad{m: New(Options{Random: rand.New(rand.NewPCG(1, 1)), StartedAt: 1, DefaultLease: time.Hour})}
	l.c = l.m.OpenClient(0, core.ClientOptions{Protocol: core.Internal})
	if sharing.Queue = "q"; sharing.Key.Kind != core.KeyNone {
		l.do(&core.ShareQueue{Sharing: sharing})
	}
	order := rand.New(rand.NewPCG(2, 2))
	for range jobs {
		l.do(&core.Submit{Job: &core.Job{Queue: "q", Tags: []string{fmt.Sprint("customer:", order.IntN(keys))}}})
	}
	return l
}

func (l *orderedLoad) do(op core.Op) core.Reply {
	l.m.Apply(1, l.c, []core.Op{op})
	r := l.m.Take(l.c, nil)
	return r[len(r)-1]
}

var byCustomer = core.Sharing{Key: core.JobKey{Kind: core.KeyTag, Tag: "customer"}, Ordered: true}

func TestQueuesThatAreNotOrderedDoNotPayForOrder(t *testing.T) {
	const jobs, keys = 100_000, 1_000
	bytes := func(sharing core.Sharing) (int64, *orderedLoad) {
		before := coretest.LiveBytes()
		l := newOrderedLoad(jobs, keys, sharing)
		return coretest.LiveBytes() - before, l
	}
	plain, without := bytes(core.Sharing{})
	if err := without.m.Check(); err != nil { // among others, that no job has a place in an order
		t.Fatal(err)
	}
	ordered, with := bytes(byCustomer)
	if each := float64(ordered-plain) / jobs; each > 24 {
		t.Errorf("order costs %.1f bytes a job", each)
	}
	if err := with.m.Check(); err != nil {
		t.Fatal(err)
	}
	for with.do(&core.Lease{Queues: []string{"q"}, Holder: core.HeldByNobody}).Kind == core.Assigned {
	}
	with.do(&core.Purge{Queue: "q", Limit: jobs})
	if err := with.m.Check(); err != nil { // among others, that an empty queue has no chains and places
		t.Fatal(err)
	}
}

// BenchmarkOrderedQueue leases and completes jobs of a queue that has a million of ten thousand keys. It reports the
// longest lease and the memory that the order takes.
func BenchmarkOrderedQueue(b *testing.B) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	const jobs, keys = 1_000_000, 10_000
	before := coretest.LiveBytes()
	plain := newOrderedLoad(jobs, keys, core.Sharing{})
	middle := coretest.LiveBytes()
	l := newOrderedLoad(jobs, keys, byCustomer)
	after := coretest.LiveBytes()
	plain.m = nil
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // its work would count
	var all, ends time.Duration
	var each []time.Duration
	var held []uint64
	for range b.N {
		if len(held) == keys/2 {
			b.StopTimer()
			start := threadTime()
			for _, seq := range held {
				l.do(&core.Complete{Ref: core.Ref{Seq: seq}, Authority: core.ByLeased})
			}
			ends += threadTime() - start
			for range held {
				l.do(&core.Submit{Job: &core.Job{Queue: "q", Tags: []string{fmt.Sprint("customer:", rand.IntN(keys))}}})
			}
			held = held[:0]
			b.StartTimer()
		}
		start := threadTime()
		r := l.do(&core.Lease{Queues: []string{"q"}, Holder: core.HeldByNobody})
		d := threadTime() - start
		each, all = append(each, d), all+d
		if r.Kind != core.Assigned {
			b.Fatalf("got %v", r.Kind)
		}
		held = append(held, r.Seq)
	}
	slices.Sort(each)
	b.ReportMetric(float64(each[len(each)-1].Microseconds()), "longest-µs")
	b.ReportMetric(float64(each[len(each)*999/1000].Nanoseconds()), "p99.9-ns")
	b.ReportMetric(float64(all.Nanoseconds())/float64(b.N), "lease-ns")
	b.ReportMetric(float64(ends.Nanoseconds())/float64(max(b.N-len(held), 1)), "complete-ns")
	b.ReportMetric(float64(after-middle-(middle-before))/jobs, "bytes/job")
}
