package limit

import (
	"fmt"
	"testing"
	"time"

	"broker/core"
)

// FuzzHandOut changes limits, jobs, workers and time at random. After each step, the counters must agree, and a queue
// must not have more leases than its limit allowed when the last one was granted.
func FuzzHandOut(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100})
	f.Add([]byte("limits of types, keys and queues change while jobs are leased and finished"))
	f.Fuzz(func(t *testing.T, steps []byte) {
		x := setup(t)
		jobs := []string{"q", "q type=a tag=c:1", "q type=b tag=c:2", "p type=a", "p tag=c:1", "q cost=2 tag=c:1"}
		for i, step := range steps[:min(len(steps), 200)] {
			n, queue := int(step>>4), []string{"q", "p"}[step>>4&1]
			switch step & 15 {
			case 0, 1, 2, 3:
				x.submit(jobs[n%len(jobs)])
			case 4, 5, 6:
				if h := x.next(queue, n%3); h != 0 {
					if b := x.queue(queue).whole; b != nil && b.limit.Leased > 0 && b.slots > b.limit.Leased {
						t.Fatalf("step %d: %d leases of %s with a limit of %d", i, b.slots, queue, b.limit.Leased)
					}
				}
			case 7, 8:
				if len(x.leased) > 0 {
					x.finish(x.table.At(x.leased[n%len(x.leased)]).Seq)
				}
			case 9:
				if len(x.leased) > 0 {
					h := x.leased[n%len(x.leased)]
					x.giveUp(h)
					x.ready(h)
				}
			case 10:
				x.limit(core.Limit{
					Selector: core.InQueue(queue, core.ScopeQueue, ""),
					Throttle: core.Throttle{Leased: uint32(n), LeasedPerWorker: 2, SlotFor: time.Second},
				})
			case 11:
				x.limit(core.Limit{
					Selector: core.InQueue(queue, core.ScopeType, ""),
					Throttle: core.Throttle{Leased: 1, Rate: float64(n%3 + 1)},
				})
			case 12:
				// there may be none
				_, _ = x.rules.Remove(core.LimitID{Queue: queue, Scope: core.LimitScope(n % 3)}, false)
			case 13:
				x.share(core.Sharing{
					Queue:   queue,
					Key:     []core.JobKey{{}, {Kind: core.KeyTag, Tag: "c"}, {Kind: core.KeyTag, Tag: "c"}}[n%3],
					Ordered: n%3 == 1, Fair: n%3 == 2,
				})
			case 14:
				if n%2 == 0 {
					// valid
					_, _ = x.rules.Put(&core.Limit{
						Name: "s", Selector: core.Selector{Queues: []string{"p"}, Types: []string{"a"}},
						Throttle: core.Throttle{Leased: 2},
					})
				} else {
					_, _ = x.rules.Remove(core.LimitID{Name: "s"}, false) // there may be none
				}
			case 15:
				x.advance(time.Duration(n) * 100 * time.Millisecond)
			}
			x.check()
		}
	})
}

// FuzzRulesAreRestored restores any stored value: accepted rules apply, and are the same once they are stored and
// restored again.
func FuzzRulesAreRestored(f *testing.F) {
	f.Add([]byte(
		`{"limits":[{"leased":2,"slot_for":1000000000},{"scope":1,"name":"VA==","rate":0.5,"burst":3}],"key":1,"tag":"c","fair":true,"weights":{"a":2}}`,
	))
	f.Add([]byte(`{"limits":[{"rate":1e300}],"key":2}`))
	f.Add([]byte(`{"key":9}`))
	f.Fuzz(func(t *testing.T, value []byte) {
		x := setup(t)
		if x.rules.Restore(RulesPrefix+"q", value) != nil {
			return
		}
		x.check()
		was := x.rules.List(&core.ListLimits{})
		limits := was.Limits
		x.limit(core.Limit{Selector: core.InQueue("q", core.ScopeQueue, ""), Throttle: core.Throttle{Leased: 7}})
		stored := x.table.Meta()[RulesPrefix+"q"]
		y := setup(t)
		if err := y.rules.Restore(RulesPrefix+"q", stored); err != nil {
			t.Fatalf("%s is stored as %s: %v", value, stored, err)
		}
		is := y.rules.List(&core.ListLimits{})
		have := is.Limits
		if len(have) == len(limits)+1 {
			have = have[1:] // the limit of the whole queue is new
		} else {
			have[0] = limits[0]
		}
		if fmt.Sprint(have, is.Sharings) != fmt.Sprint(limits, was.Sharings) {
			t.Errorf("%s is restored as\n%+v %+v, stored as %s and then\n%+v %+v", value, limits, was.Sharings, stored,
				have, is.Sharings)
		}
	})
}
