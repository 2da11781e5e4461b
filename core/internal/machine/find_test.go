package machine

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"broker/core"
	"broker/core/internal/find"
	"broker/core/internal/table"
)

// library is a machine with jobs in all states, some of which change between the pages of a list.
type library struct {
	t       *testing.T
	m       *Machine
	now     core.Instant
	id      core.ClientID
	rng     *rand.Rand
	changed map[uint64]bool // since the list was begun
}

// emptyLibrary is a library without jobs.
func emptyLibrary(t *testing.T, o Options) *library {
	t.Helper()
	l := &library{t: t, now: 1 << 50}
	o.Persist, o.StartedAt = true, l.now
	l.m = New(o)
	l.id = l.m.OpenClient(l.now, core.ClientOptions{Protocol: core.Faktory})
	return l
}

func newLibrary(t *testing.T, seed uint64, e find.Effort) *library {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 1))
	l := emptyLibrary(t, Options{Random: rng, DefaultLease: time.Hour, CacheBytes: 1 << 20})
	l.rng, l.m.effort = rng, e
	for range 300 {
		l.submit()
	}
	for range 200 {
		l.change()
	}
	return l
}

func (l *library) do(op core.Op) core.Reply {
	l.m.Apply(l.now, l.id, []core.Op{op})
	r := l.m.Take(l.id, nil)
	return r[len(r)-1]
}

func (l *library) queue() string { return string(rune('a' + l.rng.IntN(4))) }

func (l *library) submit() {
	j := &core.Job{
		Queue: l.queue(), Origin: core.Protocols[1+l.rng.IntN(3)], Priority: int64(l.rng.IntN(3) - 1), MaxFails: 2,
		Exhausted: core.ExhaustedBury, Backoff: core.BackoffFaktory, Type: []string{"", "T", "U"}[l.rng.IntN(3)],
		ScheduledOrder: l.rng.IntN(4) == 0, CreatedAt: l.now.Add(-time.Duration(l.rng.IntN(1000)) * time.Second),
	}
	if l.rng.IntN(3) == 0 {
		j.ReadyAt = l.now.Add(time.Duration(l.rng.IntN(4000)-1000) * time.Second)
	}
	if l.rng.IntN(4) == 0 {
		j.RetainFor = time.Hour
	}
	if l.rng.IntN(4) == 0 {
		// one key may be held in two queues
		j.Unique, j.UniqueKey = core.UniqueRefuse, fmt.Sprint("key ", l.m.table.NextSeq/2)
	}
	j.Tags = [][]string{nil, {"x"}, {"x", "y"}, {"y", fmt.Sprint(l.m.table.NextSeq)}}[l.rng.IntN(4)]
	if l.rng.IntN(8) == 0 && l.m.table.NextSeq > 1 {
		j.After = []uint64{1 + uint64(l.rng.Int64N(int64(l.m.table.NextSeq-1)))}
	}
	if r := l.do(&core.Submit{Job: j}); errors.Is(r.Err, core.ErrNotUnique) {
		return
	} else if r.Kind != core.Submitted {
		l.t.Fatalf("%+v", r)
	}
	l.note(l.m.table.NextSeq - 1)
}

func (l *library) note(seq uint64) {
	if l.changed != nil {
		l.changed[seq] = true
	}
}

// change changes a random job, and notes the jobs whose states have changed.
func (l *library) change() {
	l.now++
	ref := core.Ref{Seq: 1 + uint64(l.rng.Int64N(int64(l.m.table.NextSeq-1)))}
	before := l.states()
	switch l.rng.IntN(9) {
	case 8:
		l.do(&core.Update{Ref: ref, Set: core.JobChange{Tags: &[]string{"z"}}})
	case 0:
		l.do(&core.Lease{Queues: []string{l.queue(), l.queue()}, Holder: core.HeldByWorker, Worker: "w"})
	case 1, 2:
		l.do(&core.Fail{
			Ref: ref, Authority: core.ByAnyone, Failure: &core.Failure{Type: []string{"X", "Y", ""}[l.rng.IntN(3)]},
		})
	case 3:
		l.do(&core.Complete{Ref: ref, Authority: core.ByAnyone})
	case 4:
		l.do(&core.Bury{Ref: ref})
	case 5:
		l.do(&core.Enqueue{Ref: ref})
	case 6:
		l.do(&core.Cancel{Ref: ref})
	case 7:
		l.submit()
	}
	l.note(ref.Seq)
	for seq, s := range l.states() {
		if before[seq] != s {
			l.note(seq)
		}
	}
}

func (l *library) states() map[uint64]core.State {
	all := map[uint64]core.State{}
	l.m.table.EachJob(func(_ uint32, e *table.Entry) { all[e.Seq] = e.State })
	return all
}

// everything returns the result of a Find without limits.
func (l *library) everything(op core.Find) (all []uint64) {
	was := l.m.effort
	l.m.effort = find.UsualEffort
	defer func() { l.m.effort = was }()
	op.Limit = 1000
	for _, i := range l.do(&op).Jobs {
		all = append(all, i.Seq)
	}
	return all
}

// TestPagesNeitherRepeatNorMiss lists in every order and both directions, while jobs change between pages.
func TestPagesNeitherRepeatNorMiss(t *testing.T) {
	t.Parallel()
	for name, e := range map[string]find.Effort{
		"sorted": {Look: 10_000, Gather: 10_000}, "walked": {Look: 10_000}, "in short looks": {Look: 7},
	} {
		for order := core.OrderCreated; order <= core.OrderFinished; order++ {
			for _, desc := range []bool{false, true} {
				t.Run(fmt.Sprint(name, order, desc), func(t *testing.T) {
					t.Parallel()
					for seed := range uint64(6) {
						l := newLibrary(t, seed, e)
						l.page(core.Find{Order: order, Desc: desc, Brief: true, Filter: l.filter(order)})
						if err := l.m.Check(); err != nil {
							t.Fatal(err)
						}
					}
				})
			}
		}
	}
}

// filter makes conditions that suit an order.
func (l *library) filter(order core.Order) (f core.Filter) {
	switch l.rng.IntN(7) {
	case 6:
		f.HoldsKey = order != core.OrderDied && order != core.OrderFinished
	case 0:
		f.Queues = []string{l.queue(), l.queue()}
	case 1:
		f.QueuePrefix = l.queue()
	case 2:
		f.Types = []string{"T", l.queue()}
	case 3:
		f.Origins = []core.Protocol{core.Gearman, core.Workq}
	case 4:
		if order == core.OrderDied || order == core.OrderDue {
			f.FailureGroup = "X"
		}
	case 5:
		f.Tags = []string{"x", "y"}[:1+l.rng.IntN(2)]
	}
	return f
}

// page lists page by page and compares the result with a single list made at the start.
func (l *library) page(op core.Find) {
	l.t.Helper()
	before := l.everything(op)
	l.changed = map[uint64]bool{}
	seen := map[uint64]bool{}
	var order []uint64
	for pages := 0; ; pages++ {
		op.Limit = 1 + l.rng.IntN(20)
		r := l.do(&op)
		if r.Kind != core.Listed || pages > 2000 {
			l.t.Fatalf("page %d: %+v", pages, r)
		}
		if r.NextCursor != "" && !r.Stopped && len(r.Jobs) < op.Limit {
			l.t.Fatalf("page %d has %d jobs of %d and is not the last", pages, len(r.Jobs), op.Limit)
		}
		for _, i := range r.Jobs {
			if seen[i.Seq] {
				l.t.Fatalf("job %d is listed twice, changed meanwhile: %v", i.Seq, l.changed[i.Seq])
			}
			seen[i.Seq] = true
			order = append(order, i.Seq)
		}
		if op.Cursor = r.NextCursor; op.Cursor == "" {
			break
		}
		for range l.rng.IntN(3) {
			l.change()
		}
	}
	unchanged := func(s []uint64) []uint64 {
		return slices.DeleteFunc(slices.Clone(s), func(seq uint64) bool { return l.changed[seq] })
	}
	if got, want := unchanged(order), unchanged(before); !slices.Equal(got, want) {
		l.t.Fatalf("listed %v, want %v", got, want)
	}
}

// TestFindAgreesWithAScanOfAllJobs compares the results of indexes with a walk over all jobs.
func TestFindAgreesWithAScanOfAllJobs(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		l := newLibrary(t, seed, find.UsualEffort)
		for _, s := range append([]core.State{core.Gone}, core.States[:]...) {
			f := l.filter(core.OrderDied)
			if s != core.Gone {
				f.States = []core.State{s}
			}
			op := &core.Find{Filter: f, WithCount: true, Limit: 1000, Brief: true}
			search, err := find.New(l.m.table, findHost{l.m}, l.m.effort, &l.m.climbs, op)
			if err != nil {
				t.Fatal(err)
			}
			want := 0
			l.m.table.EachJob(func(h uint32, _ *table.Entry) {
				if search.Matches(h) {
					want++
				}
			})
			if r := l.do(op); len(r.Jobs) != want || r.Count != want || !r.CountExact {
				t.Errorf("%+v: found %d jobs, counted %d (exactly: %v), there are %d", f, len(r.Jobs), r.Count,
					r.CountExact, want)
			}
		}
	}
}

// TestCountWithoutAnIndexIsALowerBound counts more jobs than a call examines.
func TestCountWithoutAnIndexIsALowerBound(t *testing.T) {
	t.Parallel()
	l := newLibrary(t, 1, find.Effort{Look: 20, Gather: 0})
	r := l.do(&core.Find{
		Filter: core.Filter{Origins: []core.Protocol{core.Gearman, core.Workq, core.Faktory}}, WithCount: true,
		Limit: 5,
	})
	if r.CountExact || r.Count != 20 || len(r.Jobs) != 5 || r.Stopped {
		t.Errorf("%d jobs, count %d, exact %v, stopped %v", len(r.Jobs), r.Count, r.CountExact, r.Stopped)
	}
	if r := l.do(&core.Find{WithCount: true, Limit: 5}); !r.CountExact || r.Count != l.m.table.Live {
		t.Errorf("all: count %d of %d, exact %v", r.Count, l.m.table.Live, r.CountExact)
	}
}
