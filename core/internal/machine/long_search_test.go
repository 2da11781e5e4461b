package machine

import (
	"fmt"
	"testing"

	"broker/core"
)

// TestWaitingLeaseGetsTheJobOfALongSearch has a queue in which a search for the next job takes several steps: one key
// that takes turns has jobs of many limited types.
func TestWaitingLeaseGetsTheJobOfALongSearch(t *testing.T) {
	t.Parallel()
	l := newLimited()
	l.do(&core.ShareQueue{Sharing: core.Sharing{Queue: "q", Key: byCustomer.Key, Fair: true}})
	l.do(&core.PutLimit{Limit: core.Limit{
		Selector: core.InQueue("q", core.ScopeType, ""), Throttle: core.Throttle{Leased: 1},
	}})
	for i := range 2_500 {
		l.do(&core.Submit{Job: &core.Job{Queue: "q", Type: fmt.Sprint(i), Tags: []string{"customer:a"}}})
	}
	lease := &core.Lease{Queues: []string{"q"}, Holder: core.HeldByConn}
	if r := l.do(lease); r.Kind != core.Assigned {
		t.Fatalf("got %v", r.Kind)
	}
	waiting := *lease
	waiting.Deadline = core.Instant(0).Add(1e9)
	l.Apply(2, l.id, []core.Op{&waiting})
	steps := 0
	for ; len(l.Take(l.id, nil)) == 0; steps++ {
		if err := l.Check(); err != nil {
			t.Fatal(err)
		}
		if at := l.NextDeadline(); at > 2 || steps > 10 {
			t.Fatalf("step %d is due at %d, and no job came", steps, at)
		}
		l.Tick(2, 1)
	}
	if steps == 0 {
		t.Error("the search took no further step")
	}
}
