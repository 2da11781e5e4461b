package replica

import (
	"testing"
	"time"

	"broker/core/clock"
)

// A follower that entries do not reach has applied all that it knows to be committed, and lags behind all the same.
func TestLagCountsWhatTheOthersHaveCommitted(t *testing.T) {
	t.Parallel()
	n := &Node{seen: map[string]*seen{"n2": {status: Status{Committed: 50}}, "n3": {status: Status{Committed: 7}}}}
	for _, c := range []struct {
		own  Status
		want uint64
	}{
		{Status{Committed: 10, Applied: 10}, 40}, {Status{Committed: 60, Applied: 55}, 5}, {Status{Committed: 60, Applied: 60}, 0},
	} {
		if got := n.lag(&c.own); got != c.want {
			t.Errorf("lag of %+v is %d, not %d", c.own, got, c.want)
		}
	}
}

func TestFollowerServesClientsWhileItsLeaderDoes(t *testing.T) {
	t.Parallel()
	n := &Node{o: Options{Clock: clock.System{}}, seen: map[string]*seen{}}
	now := n.now()
	n.seen["n2"] = &seen{status: Status{Serving: true}, at: now}
	n.seen["n3"] = &seen{status: Status{Serving: true}, at: now.Add(-time.Minute)}
	n.seen["n4"] = &seen{status: Status{}, at: now}
	for id, want := range map[string]bool{"n2": true, "n3": false, "n4": false, "n5": false, "": false} {
		if n.servedBy(id) != want {
			t.Errorf("served by %q: %v", id, !want)
		}
	}
}
