package machine

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"

	"broker/core"
	"broker/core/internal/table"
)

// limited is a machine with a client. Its batches are never committed.
type limited struct {
	*Machine
	id core.ClientID
}

func newLimited() *limited {
	m := New(Options{Persist: true, Await: true, Random: rand.New(rand.NewPCG(1, 1)), StartedAt: 1})
	return &limited{m, m.OpenClient(0, core.ClientOptions{Protocol: core.Faktory})}
}

func (l *limited) do(op core.Op) core.Reply {
	l.Apply(2, l.id, []core.Op{op})
	r := l.Take(l.id, nil)
	return r[len(r)-1]
}

// leased submits and leases a job that keeps its outcome.
func (l *limited) leased(retain bool) core.Ref {
	j := &core.Job{Queue: "q"}
	if retain {
		j.RetainFor = 1e12
	}
	l.do(&core.Submit{Job: j})
	return core.Ref{Seq: l.do(&core.Lease{Queues: []string{"q"}, Holder: core.HeldByNobody}).Seq}
}

// TestOpenBatchIsBounded lets clients write without a limit of their own while nothing is committed.
func TestOpenBatchIsBounded(t *testing.T) {
	t.Parallel()
	large := make([]byte, 64<<20)
	text := string(large)
	for name, change := range map[string]func(*limited, core.Ref) core.Op{
		"results": func(_ *limited, ref core.Ref) core.Op {
			return &core.Complete{Ref: ref, Authority: core.ByLeased, Result: large}
		},
		"failures": func(_ *limited, ref core.Ref) core.Op {
			return &core.Fail{Ref: ref, Authority: core.ByLeased, Failure: &core.Failure{Message: text}, Final: true}
		},
		"meta entries": func(_ *limited, ref core.Ref) core.Op {
			return &core.WriteMeta{Entries: []core.MetaEntry{{Name: fmt.Sprint("m", ref.Seq), Value: large}}}
		},
		"documents": func(*limited, core.Ref) core.Op {
			return &core.WriteDocuments{Documents: []core.MetaEntry{{Name: "m", Value: large}}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLimited()
			refs := make([]core.Ref, 10)
			for i := range refs {
				refs[i] = l.leased(true)
			}
			const room = 4
			l.table.OpenBytes = l.maxOpen() - room*len(large)
			taken := 0
			for _, ref := range refs {
				r := l.do(change(l, ref))
				if errors.Is(r.Err, core.ErrDiskFull) {
					break
				}
				if r.Kind != core.Accepted {
					t.Fatalf("refused with %v", r.Err)
				}
				taken++
			}
			if taken < room || taken > room+1 {
				t.Fatalf("%d changes of 64 MiB are taken, with room for %d", taken, room)
			}
			if r := l.do(&core.Inspect{Ref: refs[9]}); r.Kind != core.Inspected {
				t.Errorf("a read is refused: %v", r.Err)
			}
			var s Sealed
			l.Seal(&s)
			if r := l.do(change(l, refs[9])); r.Kind != core.Accepted {
				t.Errorf("refused after the batch was sealed: %v", r.Err)
			}
		})
	}
}

// TestChunksOfAllJobsHaveOneBudget sends results in chunks, for more jobs than there is room for.
func TestChunksOfAllJobsHaveOneBudget(t *testing.T) {
	t.Parallel()
	l := newLimited()
	chunk := make([]byte, 20<<20)
	refs := make([]core.Ref, 14)
	for i := range refs {
		refs[i] = l.leased(true)
		l.do(&core.SendData{Ref: refs[i], Authority: core.ByLeased, Data: chunk})
		if l.table.Collected > table.MaxCollectedTotal {
			t.Fatalf("%d bytes of chunks are kept", l.table.Collected)
		}
	}
	for i, ref := range refs {
		l.do(&core.Complete{Ref: ref, Authority: core.ByLeased, Result: []byte("end")})
		want := 20<<20 + 3
		if i >= table.MaxCollectedTotal/(20<<20) {
			want = 3
		}
		if got := len(l.do(&core.Inspect{Ref: ref}).Info.Outcome.Result); got != want {
			t.Errorf("the result of job %d has %d bytes, want %d", i, got, want)
		}
	}
	if err := l.Check(); err != nil || l.table.Collected != 0 {
		t.Errorf("%d bytes of chunks are left, %v", l.table.Collected, err)
	}
}

// BenchmarkPredecessors submits jobs that depend on many others: the time for each of these must not grow with their
// number.
func BenchmarkPredecessors(b *testing.B) {
	for _, n := range []int{100, 1000, core.MaxAfter} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			l := newLimited()
			seqs := make([]uint64, n)
			for i := range seqs {
				seqs[i] = l.do(&core.Submit{Job: &core.Job{Queue: "q"}}).Seq
			}
			for b.Loop() {
				l.do(&core.Submit{Job: &core.Job{Queue: "q", After: seqs}})
				l.table.OpenBytes = 0
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/predecessor")
		})
	}
}

// heap is the memory in use.
func heap() int {
	runtime.GC()
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return int(s.HeapAlloc)
}

// TestDrainedJobsLeaveMemory commits large jobs and their ends.
func TestDrainedJobsLeaveMemory(t *testing.T) { // it looks at all memory of the process
	l := newLimited()
	before := heap()
	var s Sealed
	const jobs, bodyBytes = 100, 1 << 20
	for range jobs {
		l.do(&core.Submit{Job: &core.Job{Queue: "q", Body: make([]byte, bodyBytes)}})
	}
	l.Seal(&s)
	l.Committed(&s)
	for seq := range uint64(jobs) {
		l.do(&core.Complete{Ref: core.Ref{Seq: seq + 1}, Authority: core.ByAnyone})
	}
	if held := heap() - before; held > jobs*bodyBytes/10 {
		t.Errorf("%d bytes are held after the jobs are done", held)
	}
	runtime.KeepAlive(&s)
	runtime.KeepAlive(l)
}

// TestMapsShrinkWithTheJobs measures the memory of a machine that has had many jobs and has one left.
func TestMapsShrinkWithTheJobs(t *testing.T) { // it looks at all memory of the process
	for _, left := range []int{0, 1} {
		l := newLimited()
		var s Sealed
		commit := func() {
			l.Seal(&s)
			l.Committed(&s)
		}
		commit()
		before := heap()
		const jobs = 70_000
		for i := range jobs {
			l.do(&core.Submit{Job: &core.Job{
				Queue: "q", ID: fmt.Sprint(i), Unique: core.UniqueRefuse, UniqueKey: fmt.Sprint(i), RetainFor: 1,
			}})
			if i%10_000 == 0 {
				commit()
			}
		}
		commit()
		full := heap() - before
		for i := range jobs - left {
			l.do(&core.Cancel{Ref: core.Ref{Seq: uint64(i + 1)}})
			if i%10_000 == 0 {
				commit()
			}
		}
		commit()
		commit()
		slab := len(l.table.Pages)*table.PageSize*200 + 8*len(l.table.Free)
		if held := heap() - before - slab; held > full/10 {
			t.Errorf("%d bytes are held of %d, with %d jobs left, beside the slab's %d", held, full, left, slab)
		}
		runtime.KeepAlive(l)
	}
}
