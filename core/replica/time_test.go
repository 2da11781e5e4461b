package replica

import (
	"fmt"
	"testing"
	"time"

	"broker/core"
	"broker/core/clock"
	"broker/core/engine"
)

// clockErrors are those of three nodes: one clock is hours ahead, one is hours behind.
var clockErrors = map[string]time.Duration{"n1": 3 * time.Hour, "n2": -5 * time.Hour, "n3": 0}

// delayed submits a job with a delay of an hour.
func delayed(t *testing.T, e *engine.Engine) core.Ref {
	t.Helper()
	job := &core.Job{ID: "delayed", Queue: "later", Type: "t", ReadyAt: e.Now().Add(time.Hour)}
	for _, r := range core.DoOnce(e, core.Internal, &core.Submit{Job: job}) {
		if r.Err != nil {
			t.Fatal(r.Err)
		}
	}
	submit(t, e, 0, 1, 10) // it is committed with this one
	return core.Ref{ID: job.ID}
}

// rest is the remaining delay of a job.
func rest(t *testing.T, e *engine.Engine, of core.Ref) time.Duration {
	t.Helper()
	for _, r := range core.DoOnce(e, core.Internal, &core.Inspect{Ref: of}) {
		if r.Info != nil && r.Info.State == core.Scheduled {
			return r.Info.ReadyAt.Sub(e.Now())
		}
	}
	t.Fatal("the job does not wait any more")
	return 0
}

// Delays keep their length while nodes lead whose wall clocks are hours apart, also after such a node was restarted,
// and each node says by how much its clock is wrong.
func TestDelaysKeepTheirLengthWithClocksHoursApart(t *testing.T) {
	t.Parallel()
	c := startedCluster(t)
	n, _, e := c.leader()
	c.change = func(o *Options) { o.Clock = clock.OffsetClock{Offset: clockErrors[o.ID]} } // when they are restarted
	began := clock.System{}.Now()
	job := delayed(t, e)
	const tolerance = 10 * time.Second // the time is slewed while the test runs
	check := func(what string) {
		t.Helper()
		passed := clock.System{}.Now().Sub(began)
		if left := rest(t, e, job); (left - (time.Hour - passed)).Abs() > tolerance+passed/10 {
			t.Errorf("%s, %v later: the delay of an hour has %v left", what, passed, left)
		}
	}
	check("the first leader")
	for range 2 {
		for _, m := range c.members {
			if m.ID == n.o.ID {
				continue
			}
			c.caughtUp()
			c.stop(m.ID)
			c.start(m.ID)
			c.caughtUp()
			n, e = c.next(n, e, m.ID)
			check(m.ID + " leads after it was restarted")
		}
	}
	eventually(t, func() string {
		for _, i := range n.Overview(t.Context()).Nodes {
			got := time.Duration(i.ClockSkew * float64(time.Second))
			if (got - clockErrors[i.ID]).Abs() > time.Minute {
				return fmt.Sprintf("the clock of %s is wrong by %v, and should be by %v", i.ID, got, clockErrors[i.ID])
			}
		}
		return ""
	})
	shutdown(t, e)
}

func TestMedianOfWallClocks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		skews     []time.Duration
		now, want time.Duration
	}{
		{[]time.Duration{0}, time.Hour, 0},
		{[]time.Duration{0, 3 * time.Hour, time.Second}, 3 * time.Hour, time.Second},
		{[]time.Duration{0, time.Hour}, time.Minute, 0},
		{[]time.Duration{0, time.Hour}, 50 * time.Minute, time.Hour},
		{[]time.Duration{0, -time.Hour, time.Second, 9 * time.Hour, -time.Second}, 0, 0},
	} {
		if got := median(c.skews, c.now); got != c.want {
			t.Errorf("median of %v at %v: %v, want %v", c.skews, c.now, got, c.want)
		}
	}
}
