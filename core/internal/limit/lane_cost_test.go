package limit

import (
	"fmt"
	"math/bits"
	"testing"

	"broker/core"
	"broker/core/internal/queue"
)

// counted counts the comparisons of the orders in which a queue keeps its lanes. Whatever opens, blocks or moves a
// lane needs some.
func counted(x *lanes) *int {
	n := new(int)
	for _, before := range []*queue.Before{&x.before, &x.laneBefore, &x.groupBefore} {
		order := *before
		*before = func(a, b uint32) bool {
			*n++
			return order(a, b)
		}
	}
	return n
}

// TestHandOutBelowAReachedLimitTouchesFewLanes leases and finishes jobs of keys that take turns, while a limit keeps
// all others back.
func TestHandOutBelowAReachedLimitTouchesFewLanes(t *testing.T) {
	t.Parallel()
	for _, limit := range []string{"type", "shared", "key"} {
		for _, keys := range []int{100, 20_000} {
			f := setup(t)
			f.share(core.Sharing{Queue: "q", Key: core.JobKey{Kind: core.KeyTag, Tag: "c"}, Fair: true})
			switch throttle := (core.Throttle{Leased: 2}); limit {
			case "type":
				f.limit(core.Limit{Selector: core.InQueue("q", core.ScopeType, ""), Throttle: throttle})
			case "shared":
				f.limit(core.Limit{Name: "s", Selector: core.Selector{Types: []string{"T"}}, Throttle: throttle})
			case "key":
				f.limit(core.Limit{Selector: core.InQueue("q", core.ScopeKey, ""), Throttle: throttle})
			}
			for i := range keys {
				f.submit(fmt.Sprint("q type=T tag=c:", i))
			}
			held := []uint64{f.table.At(f.next("q", 1)).Seq, f.table.At(f.next("q", 1)).Seq}
			f.next("q", 1)
			comparisons := counted(f.queue("q").lanes)
			const rounds = 50
			for i := range rounds {
				f.submit(fmt.Sprint("q type=T tag=c:", i))
				h := f.table.Handle(held[0])
				e := f.giveUp(h)
				f.rules.ForgetLimits(h)
				f.table.Unlist(h, e)
				f.table.Remove(h)
				held = append(held[1:], f.table.At(f.next("q", 1)).Seq)
				f.next("q", 1)
			}
			if each, most := *comparisons/rounds, 20*bits.Len(uint(keys)); each > most {
				t.Errorf("limit of the %s, %d keys: %d comparisons for a job, want at most %d", limit, keys, each, most)
			}
			f.check()
		}
	}
}

// TestLongSearchGoesOnInTheNextOne has one key with jobs of many limited types: each of its turns moves all lanes.
func TestLongSearchGoesOnInTheNextOne(t *testing.T) {
	t.Parallel()
	f := setup(t)
	const types = 5 * searchSteps / 2
	f.share(core.Sharing{Queue: "q", Key: core.JobKey{Kind: core.KeyTag, Tag: "c"}, Fair: true})
	f.limit(core.Limit{Selector: core.InQueue("q", core.ScopeType, ""), Throttle: core.Throttle{Leased: 1}})
	for i := range types {
		f.submit(fmt.Sprintf("q type=%d tag=c:a", i))
	}
	f.next("q", 1)
	var ends []bool
	for range 3 {
		h, unfinished := f.rules.OpenFront(f.queue("q"), Asker{})
		if ends = append(ends, unfinished); unfinished == (h != 0) {
			t.Errorf("job %d of a search that is unfinished: %v", h, unfinished)
		}
	}
	if fmt.Sprint(ends) != "[true true false]" {
		t.Errorf("%d moves take searches that are unfinished: %v", types, ends)
	}
	f.check()
}

// TestSearchPassesFewLanesAtALimitOfTheWorker has a worker with a job of each of many keys, of which each worker may
// have one.
func TestSearchPassesFewLanesAtALimitOfTheWorker(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.share(core.Sharing{Queue: "q", Key: core.JobKey{Kind: core.KeyTag, Tag: "c"}})
	f.limit(core.Limit{Selector: core.InQueue("q", core.ScopeKey, ""), Throttle: core.Throttle{LeasedPerWorker: 1}})
	for i := range 2 * maxPassed {
		f.submit(fmt.Sprint("q tag=c:", i%maxPassed))
	}
	f.submit("q tag=c:last")
	for range maxPassed {
		f.next("q", 1)
	}
	f.want("q", 1)
	if h := f.next("q", 2); h == 0 || f.table.At(h).Seq != maxPassed+1 {
		t.Errorf("another worker gets handle %d", h)
	}
	f.want("q", 1, 2*maxPassed+1) // a lane less to pass
}

// TestRoomInASharedLimitIsOfferedToFewQueues has many queues with clients that wait for one shared limit.
func TestRoomInASharedLimitIsOfferedToFewQueues(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.limit(core.Limit{Name: "s", Selector: core.Selector{Types: []string{"T"}}, Throttle: core.Throttle{Leased: 1}})
	const queues = 100
	for i := range queues {
		f.submit(fmt.Sprintf("q%02d type=T", i))
	}
	held := f.table.At(f.next("q00", 1)).Seq
	for i := range queues {
		f.next(fmt.Sprintf("q%02d", i), 1) // finds nothing, and waits
	}
	clear(f.offered)
	f.finish(held)
	if len(f.offered) != 1 {
		t.Fatalf("%d queues are offered for one lease", len(f.offered))
	}
	for f.rules.OfferMore() { // no client took it
	}
	if len(f.offered) != queues-1 {
		t.Errorf("%d queues are offered while the limit has room, want the %d with jobs", len(f.offered), queues-1)
	}
	f.want("q50", 1, 51)
}

// TestRoomReleasesFewGroupsAtOnce has a limit that keeps back jobs of many types, each with a limit of its own, or of
// many costs. Whenever the limit has room, a search looks at a bounded number of them.
func TestRoomReleasesFewGroupsAtOnce(t *testing.T) {
	t.Parallel()
	const groups = 10 * searchSteps
	for _, limit := range []string{"types under a shared limit of the queue", "types under a shared limit of types", "costs"} {
		f := setup(t)
		throttle := core.Throttle{Leased: 1}
		job := func(i int) string { return fmt.Sprint("q type=", i%900) }
		switch limit {
		case "costs":
			f.share(core.Sharing{Queue: "q", Key: core.JobKey{Kind: core.KeyTag, Tag: "c"}, Fair: true})
			f.limit(core.Limit{Selector: core.InQueue("q", core.ScopeType, ""), Throttle: throttle})
			job = func(i int) string { return fmt.Sprintf("q type=T tag=c:%d cost=%d", i, i+1) }
		case "types under a shared limit of types":
			f.limit(core.Limit{Selector: core.InQueue("q", core.ScopeType, ""), Throttle: core.Throttle{Leased: 9}})
			var types []string
			for i := range 900 {
				types = append(types, fmt.Sprint(i))
			}
			f.limit(core.Limit{Name: "s", Selector: core.Selector{Types: types}, Throttle: throttle})
		default:
			f.limit(core.Limit{Selector: core.InQueue("q", core.ScopeType, ""), Throttle: core.Throttle{Leased: 9}})
			f.limit(core.Limit{Name: "s", Selector: core.Selector{Queues: []string{"q"}}, Throttle: throttle})
			job = func(i int) string { return fmt.Sprint("q type=", i) }
		}
		for i := range groups {
			f.submit(job(i))
		}
		comparisons, most := counted(f.queue("q").lanes), 0
		next := func() uint32 { // searches until the search is over
			for {
				*comparisons, f.table.Touched = 0, 0
				_, unfinished := f.rules.OpenFront(f.queue("q"), Asker{})
				most = max(most, f.table.Touched, *comparisons/(2*bits.Len(groups)))
				if !unfinished {
					return f.next("q", 1)
				}
			}
		}
		held := next()
		for range 5 {
			if h := next(); held == 0 || h != 0 {
				t.Fatalf("%s: the limit is not kept", limit)
			}
			*comparisons, f.table.Touched = 0, 0
			e := f.giveUp(held)
			f.rules.ForgetLimits(held)
			f.table.Unlist(held, e)
			f.table.Remove(held)
			most = max(most, f.table.Touched, *comparisons/(2*bits.Len(groups)))
			held = next()
		}
		if most > 3*searchSteps {
			t.Errorf("%s: %d groups at once", limit, most)
		}
		f.check()
	}
}
