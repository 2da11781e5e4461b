package find

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"broker/core"
)

// addBelow adds a blocked job that waits for other jobs.
func (f *fixture) addBelow(parent, batch uint64, after ...uint64) uint64 {
	f.add(&core.Job{Queue: "q"}, core.Blocked)
	h := f.jobs[len(f.jobs)-1]
	x := f.table.EnsureOptional(h)
	x.Waiting, x.Parent, x.Batch = after, parent, batch
	return f.table.At(h).Seq
}

// chain adds jobs that each wait for the job before.
func (f *fixture) chain(jobs int) (seqs []uint64) {
	seqs = append(seqs, f.addBelow(0, 0))
	for len(seqs) < jobs {
		seqs = append(seqs, f.addBelow(0, 0, seqs[len(seqs)-1]))
	}
	return seqs
}

// longestClimb goes through all pages of a list, and returns its jobs and the most effort of a page.
func (f *fixture) longestClimb(op core.Find, effort Effort) (seqs []uint64, spent, pages int) {
	f.Helper()
	for {
		s, err := New(f.table.Table, f.host, effort, &f.climbs, &op)
		if err != nil {
			f.Fatal(err)
		}
		next, stopped := s.Page(100, func(h uint32) { seqs = append(seqs, f.table.At(h).Seq) })
		spent, pages = max(spent, s.spent), pages+1
		if next == "" {
			return seqs, spent, pages
		}
		if pages > 100_000 {
			f.Fatalf("the pages do not end, stopped %v", stopped)
		}
		op.Cursor = next
	}
}

func TestPageOfALongWorkflowSpendsNoMoreThanItsEffort(t *testing.T) {
	t.Parallel()
	const jobs = 3000
	for _, effort := range []Effort{{Look: 200}, {Look: 200, Gather: 2 * jobs}, {Look: 1}} {
		for _, desc := range []bool{false, true} {
			f := setup(t, 1, 10)
			f.chain(50) // another workflow
			want := f.chain(jobs)
			f.chain(50)
			if desc {
				slices.Reverse(want)
			}
			op := core.Find{Filter: core.Filter{Workflow: slices.Min(want)}, Desc: desc}
			have, spent, pages := f.longestClimb(op, effort)
			if !slices.Equal(have, want) {
				t.Errorf("%+v, descending %v: %d jobs, want %d", effort, desc, len(have), len(want))
			}
			if spent > effort.Look+climbCost+1 {
				t.Errorf("%+v, descending %v: a page spent %d", effort, desc, spent)
			}
			if most := (2*climbCost+2)*(jobs+120)/effort.Look + jobs/100 + 2; pages > most {
				t.Errorf("%+v, descending %v: %d pages, want at most %d", effort, desc, pages, most)
			}
			if len(f.climbs.lists) != 0 {
				t.Errorf("%+v, descending %v: %d lists are kept after their end", effort, desc, len(f.climbs.lists))
			}
		}
	}
}

func TestCountOfALongWorkflowIsALowerBound(t *testing.T) {
	t.Parallel()
	f := setup(t, 1, 0)
	seqs := f.chain(1000)
	op := core.Find{Filter: core.Filter{Workflow: seqs[0]}, Desc: true}
	s, err := New(f.table.Table, f.host, Effort{Look: 100}, &f.climbs, &op)
	if err != nil {
		t.Fatal(err)
	}
	if n, exact := s.Count(); exact || n > len(seqs) {
		t.Errorf("counted %d, exact %v", n, exact)
	}
	if len(f.climbs.lists) != 0 {
		t.Error("a count keeps what it knows")
	}
	s.effort.Look = 100_000
	if n, exact := s.Count(); !exact || n != len(seqs) {
		t.Errorf("counted %d, exact %v", n, exact)
	}
}

// TestLittleEffortFindsAllJobsOfAnyWorkflow compares lists of random workflows with a plain search upwards.
func TestLittleEffortFindsAllJobsOfAnyWorkflow(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 2))
		f := setup(t, seed, 5)
		f.host.batches = map[uint64]uint64{}
		above := map[uint64][]uint64{}
		numbers := []uint64{1}
		one := func() uint64 { return numbers[rng.IntN(len(numbers))] }
		for range 150 {
			var up [3]uint64 // parent, batch, predecessor
			if rng.IntN(3) == 0 {
				up[0] = one()
			}
			if rng.IntN(2) == 0 {
				up[2] = one()
			}
			if rng.IntN(6) == 0 {
				number := f.table.NextSeq
				f.table.NextSeq++
				f.host.batches[number], above[number] = up[0], up[:1]
				numbers = append(numbers, number)
				continue
			}
			seq := f.addBelow(up[0], up[1], up[2])
			above[seq], numbers = up[:], append(numbers, seq)
		}
		workflow := numbers[1+rng.IntN(20)]
		var below func(uint64) bool
		below = func(n uint64) bool { return n == workflow || slices.ContainsFunc(above[n], below) }
		var want []uint64
		for _, h := range f.jobs {
			if seq := f.table.At(h).Seq; below(seq) {
				want = append(want, seq)
			}
		}
		for _, look := range []int{1, 7, 100_000} {
			have, _, _ := f.longestClimb(core.Find{Filter: core.Filter{Workflow: workflow}}, Effort{Look: look})
			if !slices.Equal(have, want) {
				t.Errorf("seed %d, workflow %d, effort %d: jobs %v, want %v", seed, workflow, look, have, want)
			}
		}
	}
}

func TestOnlyTheLatestListsKeepTheirState(t *testing.T) {
	t.Parallel()
	var c Climbs
	first := c.of(1, 1)
	for n := range core.Instant(maxClimbs) {
		c.of(2, n)
	}
	if len(c.lists) != maxClimbs || c.find(1, 1) != nil {
		t.Errorf("%d lists", len(c.lists))
	}
	if c.of(1, 1) == first {
		t.Error("the oldest list is not forgotten")
	}
	for n := range uint64(maxKnown + 1) {
		first.below[n] = true
	}
	c.lists = []*climb{first}
	if c.of(1, 1) != first {
		t.Error("the list that continues is forgotten")
	}
	if c.of(3, 1); len(c.lists) != 1 {
		t.Errorf("%d lists keep too many jobs", len(c.lists))
	}
}

// BenchmarkWorkflowOfOneChain lists a chain of 100,000 jobs from its end.
func BenchmarkWorkflowOfOneChain(b *testing.B) {
	f := setup(new(testing.T), 1, 0)
	seqs := f.chain(100_000)
	slowest := time.Duration(0)
	for b.Loop() {
		op := core.Find{Filter: core.Filter{Workflow: seqs[0]}, Desc: true}
		found, pages := 0, 0
		for first := true; first || op.Cursor != ""; first = false {
			start := time.Now() //nolint:forbidigo // measures
			s, err := New(f.table.Table, f.host, UsualEffort, &f.climbs, &op)
			if err != nil {
				b.Fatal(err)
			}
			op.Cursor, _ = s.Page(1000, func(uint32) { found++ })
			slowest, pages = max(slowest, time.Since(start)), pages+1 //nolint:forbidigo // measures
		}
		if found != len(seqs) {
			b.Fatalf("found %d of %d", found, len(seqs))
		}
		b.ReportMetric(float64(pages), "pages")
	}
	b.ReportMetric(float64(slowest.Microseconds()), "µs-slowest")
}
