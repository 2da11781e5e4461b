package link

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"broker/core"
	"broker/core/internal/table"
	"broker/core/internal/table/tabletest"
)

// fixture has the links of a table; the test is their Host.
type fixture struct {
	*testing.T
	table *tabletest.Table
	links *Links
}

// Unblock implements Host.
func (f *fixture) Unblock(h uint32, _ *table.Entry) { f.table.Move(h, core.Ready) }

// Remove implements Host.
func (f *fixture) Remove(h uint32) { f.table.Remove(h) }

// Joining implements Host.
func (f *fixture) Joining(uint64) []uint64 { return nil }

// Awaiting implements Host.
func (f *fixture) Awaiting(uint64) []uint64 { return nil }

// TakesSteps implements Host.
func (f *fixture) TakesSteps() bool { return true }

func setup(t *testing.T) *fixture {
	f := &fixture{T: t, table: tabletest.New()}
	f.links = New(f.table.Table, f, 0)
	f.links.AtOnce(true)
	f.table.Queue("q")
	return f
}

// submit makes a job, blocked if it must wait, and returns its number.
func (f *fixture) submit(j core.Job) uint64 {
	j.Queue = "q"
	h, _ := f.table.Add(&j)
	if (j.Parent != 0 || len(j.After) > 0) && f.links.Attach(h, &j) {
		f.table.Move(h, core.Blocked)
		f.table.At(h).Set(table.Changed)
	} else {
		f.table.Move(h, core.Ready)
	}
	return j.Seq
}

// end ends a job that does not keep its outcome.
func (f *fixture) end(seq uint64, success bool) {
	f.Helper()
	h := f.table.Handle(seq)
	f.links.Unlink(h)
	f.table.Move(h, core.Done)
	if !success {
		f.table.At(h).Set(table.DoneFailed)
	}
	if !f.links.End(h, success) {
		f.table.Remove(h)
	}
	f.check()
}

// state is the state of a job; core.Gone: it is removed.
func (f *fixture) state(seq uint64) core.State {
	if h := f.table.Handle(seq); h != 0 {
		return f.table.At(h).State
	}
	return core.Gone
}

func (f *fixture) want(seq uint64, want core.State) {
	f.Helper()
	if have := f.state(seq); have != want {
		f.Errorf("job %d is %v, want %v", seq, have, want)
	}
}

// check verifies both ends of all links.
func (f *fixture) check() {
	f.Helper()
	c := f.links.NewCheck(f.Errorf)
	f.table.EachJob(func(h uint32, e *table.Entry) {
		if x := f.table.Optional(h); x != nil {
			c.Job(e, x)
		}
	})
	c.End()
}

func TestJobWaitsForAllOfItsDependencies(t *testing.T) {
	t.Parallel()
	f := setup(t)
	a, b := f.submit(core.Job{}), f.submit(core.Job{})
	c := f.submit(core.Job{After: []uint64{a, b}})
	f.want(c, core.Blocked)
	if d := f.links.DependentOutside(f.table.Handle(a), nil); d != c {
		t.Errorf("on job %d depends job %d", a, d)
	}
	f.end(a, true)
	f.want(c, core.Blocked)
	f.end(b, true)
	f.want(c, core.Ready)
	d := f.submit(core.Job{After: []uint64{a}})
	f.want(d, core.Ready) // long done
}

func TestFailedDependencyKeepsJobBlocked(t *testing.T) {
	t.Parallel()
	f := setup(t)
	a := f.submit(core.Job{})
	waits, cancels, runs := f.submit(core.Job{After: []uint64{a}}), f.submit(core.Job{
		After: []uint64{a}, OnBroken: core.BrokenFails,
	}),
		f.submit(core.Job{After: []uint64{a}, OnBroken: core.BrokenReleases})
	f.end(a, false)
	f.want(waits, core.Blocked)
	f.want(runs, core.Ready)
	if !f.table.At(f.table.Handle(waits)).Has(table.Broken) {
		t.Error("the job that waits is not marked")
	}
	if b, noted := f.links.NextBroken(); !noted || b != (Breach{cancels, a}) {
		t.Errorf("to decide about is %v, %v", b, noted)
	}
	if _, noted := f.links.NextBroken(); noted || f.links.HasBroken() {
		t.Error("there is more to decide about")
	}
}

func TestParentIsClosedWithItsLastChild(t *testing.T) {
	t.Parallel()
	f := setup(t)
	parent := f.submit(core.Job{})
	after := f.submit(core.Job{After: []uint64{parent}})
	first, second := f.submit(core.Job{Parent: parent}), f.submit(core.Job{Parent: parent})
	f.want(first, core.Blocked)
	f.end(parent, true)
	f.want(first, core.Ready)
	f.want(parent, core.Done) // it stays for its children
	f.want(after, core.Blocked)
	f.end(first, true)
	f.want(after, core.Blocked)
	f.end(second, true)
	f.want(parent, core.Gone)
	f.want(after, core.Ready)
}

func TestFailedChildBreaksDependentsOfItsParent(t *testing.T) {
	t.Parallel()
	f := setup(t)
	parent := f.submit(core.Job{})
	after, child := f.submit(core.Job{After: []uint64{parent}}), f.submit(core.Job{Parent: parent})
	f.end(parent, true)
	f.end(child, false)
	f.want(after, core.Blocked)
	if !f.table.At(f.table.Handle(after)).Has(table.Broken) {
		t.Error("the job that waits for the parent is not marked")
	}
}

func TestDeadJobBreaksOnlyDependentsThatDoNotWaitForIt(t *testing.T) {
	t.Parallel()
	f := setup(t)
	a := f.submit(core.Job{})
	f.submit(core.Job{After: []uint64{a}})
	cancels := f.submit(core.Job{After: []uint64{a}, OnBroken: core.BrokenFails})
	f.table.Move(f.table.Handle(a), core.Dead)
	f.links.Died(f.table.Handle(a))
	if b, noted := f.links.NextBroken(); !noted || b.Seq != cancels {
		t.Errorf("to decide about is %v, %v", b, noted)
	}
	f.cancel(cancels)
	if b, noted := f.links.NextBroken(); noted {
		t.Errorf("to decide about is %v, too", b)
	}
}

func TestResolvedDependencies(t *testing.T) {
	t.Parallel()
	f := setup(t)
	a := f.submit(core.Job{ID: "first"})
	b := f.submit(core.Job{After: []uint64{a}})
	c := f.submit(core.Job{After: []uint64{b}})
	entry := f.table.At(f.table.Handle(a))
	for _, test := range []struct {
		name string
		of   uint64
		refs []core.Ref
		want error
	}{
		{"by name and number", c, []core.Ref{{ID: "first"}, {Seq: a}}, nil},
		{"no such name", c, []core.Ref{{ID: "none"}}, core.ErrNotFound},
		{"number to come", c, []core.Ref{{Seq: c + 1}}, core.ErrInvalid},
		{"itself", a, []core.Ref{{Seq: a}}, core.ErrInvalid},
		{"circle", a, []core.Ref{{Seq: c}}, core.ErrInvalid},
		{"too many", c, make([]core.Ref, core.MaxAfter+1), core.ErrInvalid},
	} {
		of := f.table.At(f.table.Handle(test.of))
		if seqs, err := f.links.Resolve(of, test.refs); !errors.Is(err, test.want) ||
			err == nil && !slices.Equal(seqs, []uint64{a}) {
			t.Errorf("%s: %v, %v", test.name, seqs, err)
		}
	}
	if entry.State != core.Ready {
		t.Errorf("asking has changed job %d", a)
	}
}

// FuzzLinks submits and ends jobs with random links. Both ends of each link must agree after each step, and a job that
// is not broken is blocked exactly while one of its dependencies is open.
func FuzzLinks(f *testing.F) {
	f.Add([]byte{0, 17, 34, 51, 4, 5, 20, 7, 9})
	f.Add([]byte("jobs wait for jobs, and parents for their children"))
	f.Fuzz(func(t *testing.T, steps []byte) {
		x := setup(t)
		for _, step := range steps[:min(len(steps), 150)] {
			last := x.table.NextSeq - 1
			pick := func(n byte) uint64 { return last - min(last, uint64(n&7)) }
			switch one, two := pick(step>>2), pick(step>>5); step & 3 {
			case 0:
				var j core.Job
				for _, seq := range []uint64{one, two} {
					if seq != 0 && !slices.Contains(j.After, seq) {
						j.After = append(j.After, seq)
					}
				}
				x.submit(j)
			case 1:
				x.submit(core.Job{Parent: one})
			default:
				h := x.table.Handle(one)
				if h != 0 && x.table.At(h).State == core.Ready {
					x.end(one, step&3 == 2 || step&16 != 0)
				}
			}
			x.check()
			x.table.EachJob(func(h uint32, e *table.Entry) {
				o := x.table.Optional(h)
				if e.State == core.Blocked && !e.Has(table.Broken) && len(o.Waiting) == 0 {
					t.Errorf("job %d is blocked and waits for nothing", e.Seq)
				}
			})
		}
	})
}

func TestDependentsThatAreCancelledLeaveTheListOfTheJobThatTheyWaitFor(t *testing.T) {
	t.Parallel()
	f := setup(t)
	head := f.submit(core.Job{})
	stays := f.submit(core.Job{After: []uint64{head}})
	for range 1000 {
		for _, j := range []core.Job{{After: []uint64{head}}, {Parent: head}, {After: []uint64{head, stays}}} {
			f.cancel(f.submit(j))
		}
	}
	f.check()
	x := f.table.Optional(f.table.Handle(head))
	if x.Successors.Len() != 1 || x.Children.Len() != 0 {
		t.Errorf("job %d has %d successors and %d children", head, x.Successors.Len(), x.Children.Len())
	}
	f.cancel(stays)
	if n := f.links.CountDependents(f.table.Handle(head)); n != 0 || x.Successors != nil || x.Children != nil {
		t.Errorf("%d dependents, %v, %v", n, x.Successors, x.Children)
	}
}

// cancel removes a blocked job.
func (f *fixture) cancel(seq uint64) {
	h := f.table.Handle(seq)
	f.links.Unlink(h)
	f.links.End(h, false)
	f.table.Remove(h)
}

// linked makes jobs 1 to n with random dependencies on jobs with any numbers, without asking whether that makes a
// cycle.
func (f *fixture) linked(jobs uint64, random *rand.Rand) {
	for range jobs {
		var j core.Job
		if seqs := f.table.NextSeq - 1; seqs > 0 && random.IntN(4) == 0 {
			j.Parent = 1 + random.Uint64N(seqs)
		}
		f.submit(j)
	}
	for range jobs {
		h, ref := f.table.Handle(1+random.Uint64N(jobs)), core.Ref{Seq: 1 + random.Uint64N(jobs)}
		after, err := f.links.Resolve(f.table.At(h), []core.Ref{ref})
		if err == nil {
			f.links.WaitFor(h, f.table.At(h), after)
			if len(f.table.Optional(h).Waiting) > 0 && f.table.At(h).State == core.Ready {
				f.table.Move(h, core.Blocked)
			}
		}
	}
}

// reaches reports whether a job can be reached from another one by the links to dependents: the search for a cycle,
// without a limit.
func (f *fixture) reaches(from step, to uint64, seen map[step]bool) bool {
	if from.seq == to {
		return true
	}
	if seen[from] {
		return false
	}
	seen[from] = true
	w := newWalk(1 << 30)
	f.links.dependentsOf(from, w)
	return slices.ContainsFunc(w.todo, func(s step) bool { return f.reaches(s, to, seen) })
}

func TestSearchForACycleFindsWhatAnUnlimitedSearchFinds(t *testing.T) {
	t.Parallel()
	cycles := 0
	for seed := range uint64(30) {
		f, random := setup(t), rand.New(rand.NewPCG(seed, 1))
		const jobs = 60
		f.linked(jobs, random)
		f.check()
		for of := range uint64(jobs) {
			for on := range uint64(jobs) {
				want := f.reaches(step{seq: of + 1}, on+1, map[step]bool{})
				if have := f.links.wouldCreateCycle(of+1, []uint64{on + 1}); have != want {
					t.Fatalf("seed %d: job %d after job %d is a cycle: %v, want %v", seed, of+1, on+1, have, want)
				}
				if want {
					cycles++
				}
			}
		}
	}
	if cycles < 1000 {
		t.Errorf("only %d cycles", cycles)
	}
}

func TestSearchForACycleEndsInEitherDirection(t *testing.T) {
	t.Parallel()
	f := setup(t)
	const jobs = 3 * MaxWalk
	head := f.submit(core.Job{})
	chain := []uint64{head}
	for range jobs {
		f.submit(core.Job{After: []uint64{head}})
		chain = append(chain, f.submit(core.Job{After: chain[len(chain)-1:]}))
	}
	last, alone, middle := chain[jobs], f.submit(core.Job{}), chain[jobs/2]
	for _, c := range []struct {
		name    string
		of, on  uint64
		refused bool
		most    int // links
	}{
		{"a job without dependents, behind a long chain", alone, last, false, 10},
		{"a job with many dependents, on a job without dependencies", head, alone, false, 500},
		{"the head of a chain on its second job", head, chain[1], true, 2 * MaxWalk},
		{"a job in the middle, on itself", middle, middle, true, 10},
		{"too many links in both directions", middle, f.submit(core.Job{After: []uint64{last}}), true, 4 * MaxWalk},
	} {
		f.table.Touched = 0
		_, err := f.links.Resolve(f.table.At(f.table.Handle(c.of)), []core.Ref{{Seq: c.on}})
		if (err != nil) != c.refused || f.table.Touched > c.most {
			t.Errorf("%s: %v, %d links, want at most %d", c.name, err, f.table.Touched, c.most)
		}
	}
}
