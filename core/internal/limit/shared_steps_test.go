package limit

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"broker/core"
)

// inSteps is a fixture whose walks have short steps.
func inSteps(t *testing.T) *fixture {
	f := setup(t)
	f.rules = New(f.table.Table, f, 100)
	return f
}

// finishWalk lets the walks end, and returns how many steps they took.
func (f *fixture) finishWalk() (steps int) {
	f.Helper()
	for ; f.rules.sort.timer != 0; steps++ {
		if steps == 10_000 {
			f.Fatal("a walk does not end")
		}
		f.advance(sortPause)
	}
	if len(f.rules.shared.sorting) > 0 {
		f.Errorf("no queue is sorted, and shared limits wait for %v", f.rules.shared.sorting)
	}
	return steps
}

// TestNewSharedLimitOfATypeIsAppliedInSteps sets a shared limit for a type that jobs of many queues have, with leases
// from before.
func TestNewSharedLimitOfATypeIsAppliedInSteps(t *testing.T) {
	t.Parallel()
	f := inSteps(t)
	const queues, jobs = 40, 5
	for i := range queues * jobs {
		f.submit(fmt.Sprintf("q%02d type=T", i%queues), fmt.Sprintf("q%02d type=U", i%queues))
	}
	f.next("q00", 1)
	before := f.rules.sort.next
	f.limit(core.Limit{Name: "s", Selector: core.Selector{Types: []string{"T"}}, Throttle: core.Throttle{Leased: 3}})
	if walked := f.rules.sort.next - before; walked > 100 {
		t.Errorf("the operation examined %d jobs", walked)
	}
	f.check()
	f.next("q39", 1) // the walk has not reached the queue: the limit is not applied, but the lease counts later
	if steps := f.finishWalk(); steps < queues*jobs/100 {
		t.Errorf("only %d steps", steps)
	}
	if taken := f.rules.List(&core.ListLimits{Name: "s"}).Limits[0].Uses[0].Taken; taken != 2 {
		t.Errorf("%d slots are taken by 2 leases", taken)
	}
	f.want("q05", 1, 11, 12, 92, 172, 252, 332)
	f.want("q06", 1, 14, 94, 174, 254, 334)
}

// TestChangesOfASharedLimitTouchFewQueuesAtOnce changes and removes a shared limit of many queues.
func TestChangesOfASharedLimitTouchFewQueuesAtOnce(t *testing.T) {
	t.Parallel()
	f := inSteps(t)
	f.limit(core.Limit{Name: "s", Selector: core.Selector{Types: []string{"T"}}, Throttle: core.Throttle{Leased: 1}})
	const queues = 40
	for i := range queues {
		f.submit(fmt.Sprintf("q%02d type=T", i), fmt.Sprintf("q%02d type=U", i))
	}
	f.finishWalk()
	f.want("q00", 1, 1, 2)
	f.limit(core.Limit{
		Name: "s", Selector: core.Selector{Types: []string{"T", "U"}}, Throttle: core.Throttle{Leased: 1},
	})
	f.check()
	f.finishWalk()
	f.want("q01", 1)
	f.finish(1, 2)
	f.want("q01", 1, 3)
	f.limit(core.Limit{Name: "s", Selector: core.Selector{Types: []string{"U"}}, Throttle: core.Throttle{Leased: 1}})
	f.finishWalk()
	f.want("q02", 1, 5, 6)
	if _, err := f.rules.Remove(core.LimitID{Name: "s"}, false); err != nil {
		t.Fatal(err)
	}
	sorting := 0
	for _, q := range f.rules.queues[1:] {
		if q.Sorting {
			sorting++
		}
	}
	x := &f.rules.sort
	if !x.hasLater() {
		t.Fatal("no queue is sorted later")
	}
	later := len(x.users[0].bucket.users)
	if sorting > 2 || len(x.later) > 0 || later < queues-3 {
		t.Errorf("%d queues are sorted at once, %d later, %d are listed", sorting, later, len(x.later))
	}
	f.finishWalk()
	f.want("q03", 1, 7, 8)
}

// TestQueueUnderOtherSharedLimitsGetsTheNewOne has queues whose lanes already have a shared limit.
func TestQueueUnderOtherSharedLimitsGetsTheNewOne(t *testing.T) {
	t.Parallel()
	f := inSteps(t)
	first := core.Limit{Name: "a", Selector: core.Selector{Queues: []string{"q"}, Types: []string{"U"}}}
	first.Leased = 9
	f.limit(first)
	for range 60 {
		f.submit("q type=T", "q type=U", "p type=T")
	}
	f.finishWalk()
	f.limit(core.Limit{Name: "b", Selector: core.Selector{Types: []string{"T"}}, Throttle: core.Throttle{Leased: 2}})
	f.finishWalk()
	f.want("p", 1, 3, 6)
	f.want("q", 1, 2, 5, 8, 11, 14, 17, 20, 23, 26)
	f.finish(3)
	f.want("q", 1)
	f.finish(2)
	f.want("q", 1, 1)
}

// TestSharedLimitsThatChangeDuringWalksHoldAfterThem changes shared limits at random while jobs come, are leased and
// end.
func TestSharedLimitsThatChangeDuringWalksHoldAfterThem(t *testing.T) {
	t.Parallel()
	for seed := range uint64(60) {
		f := inSteps(t)
		rng := rand.New(rand.NewPCG(seed, 1))
		queue := func() string { return fmt.Sprint("q", rng.IntN(6)) }
		typ := func() string { return []string{"T", "U", "q1"}[rng.IntN(3)] }
		limits := map[string]core.Limit{}
		for range 250 {
			name := fmt.Sprint(rng.IntN(3))
			switch rng.IntN(12) {
			case 0:
				l := core.Limit{Name: name, Throttle: core.Throttle{Leased: uint32(1 + rng.IntN(3))}}
				if rng.IntN(2) == 0 {
					l.Queues = []string{queue(), queue()}
				}
				if rng.IntN(3) > 0 || len(l.Queues) == 0 {
					l.Types = []string{typ(), typ()}
				}
				f.limit(l)
				limits[name] = l
			case 1:
				if _, err := f.rules.Remove(core.LimitID{Name: name}, false); err == nil {
					delete(limits, name)
				}
			case 2, 3, 4, 5, 6:
				f.submit(fmt.Sprintf("%s type=%s", queue(), typ()), queue())
			case 7, 8:
				f.next(queue(), 1)
			case 9:
				if len(f.leased) > 0 {
					f.finish(f.table.At(f.leased[0]).Seq)
				}
			default:
				f.advance(sortPause)
			}
			f.check()
		}
		f.finishWalk()
		for len(f.leased) > 0 {
			f.finish(f.table.At(f.leased[0]).Seq)
		}
		for i := range 6 {
			for f.next(fmt.Sprint("q", i), 1) != 0 {
				f.wantWithin(limits)
			}
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// wantWithin counts the leased jobs under each limit.
func (f *fixture) wantWithin(limits map[string]core.Limit) {
	f.Helper()
	for name, l := range limits {
		leased := uint32(0)
		for _, h := range f.leased {
			e := f.table.At(h)
			if slices.Contains(l.Queues, f.rules.queues[e.Queue].Name) || slices.Contains(l.Types, f.table.TypeOf(e)) {
				leased++
			}
		}
		if leased > l.Leased || f.rules.shared.byName[name].bucket.slots != leased {
			f.Errorf("%d leases under limit %s of %d, or another count", leased, name, l.Leased)
		}
	}
}
