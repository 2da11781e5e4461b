package engine_test

import (
	"testing"
	"time"

	"broker/core"
	"broker/core/coretest"
	"broker/core/engine"
)

// settableClock is a clock that stands still. Its wall clock can be set while its monotonic clock does not move.
type settableClock struct {
	*coretest.Clock
	set time.Duration
}

func (c *settableClock) Now() core.Instant { return c.Clock.Now().Add(c.set) }

func (c *settableClock) Read() (core.Instant, time.Duration) { return c.Now(), c.Clock.Now().Sub(0) }

func TestLeaseKeepsItsLengthWhenTheClockIsSet(t *testing.T) {
	t.Parallel()
	for name, by := range map[string]time.Duration{"forward": 48 * time.Hour, "back": -48 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clk := &settableClock{Clock: coretest.NewClock()}
			d := setup(t, func(o *engine.Options) { o.Clock = clk })
			c := d.client(core.Workq)
			lease := func() core.Reply {
				d.one(c, &core.Submit{Job: &core.Job{Queue: "q", Origin: core.Workq, LeaseFor: 3 * time.Second}})
				return d.one(c, &core.Lease{Queues: []string{"q"}, Holder: core.HeldByNobody})
			}
			state := func(seq uint64) core.State {
				d.Tick()
				return d.one(c, &core.Inspect{Ref: core.Ref{Seq: seq}}).Info.State
			}
			before := lease()
			clk.set = by
			after := lease() // the first to look at the clock since it was set
			clk.Advance(3*time.Second - time.Millisecond)
			for _, seq := range []uint64{before.Seq, after.Seq} {
				if s := state(seq); s != core.Leased {
					t.Errorf("job %d is %v a millisecond before the end of its lease", seq, s)
				}
			}
			clk.Advance(time.Millisecond)
			for _, seq := range []uint64{before.Seq, after.Seq} {
				if s := state(seq); s != core.Ready {
					t.Errorf("job %d is %v at the end of its lease", seq, s)
				}
			}
		})
	}
}

// A delay keeps its length over a restart with a wall clock that is behind. With one that is ahead, the broker may
// have been down, and the delay is over.
func TestTimeDoesNotGoBackAtARestart(t *testing.T) {
	t.Parallel()
	const delay = time.Minute
	for name, c := range map[string]struct{ set, early, late time.Duration }{
		"an hour behind":   {-time.Hour, delay - time.Second, delay * 20 / 19},
		"a minute behind":  {-time.Minute, delay - time.Second, delay * 20 / 19},
		"right":            {0, delay - time.Second, delay},
		"half the delay":   {delay / 2, delay/2 - time.Second, delay / 2},
		"down for an hour": {time.Hour, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clk := &settableClock{Clock: coretest.NewClock()}
			options := func(o *engine.Options) { o.Clock = clk }
			d := setup(t, options)
			job := &core.Job{Queue: "q", Origin: core.Workq, ReadyAt: d.Now().Add(delay)}
			seq := d.one(d.client(core.Workq), &core.Submit{Job: job}).Seq
			d.Flush()
			before := d.Now()
			d.shutdown()
			clk.set = c.set
			d.open(options)
			if after := d.Now(); after < before {
				t.Errorf("the time went back by %v", before.Sub(after))
			}
			state := func() core.State {
				d.Tick()
				return d.one(d.client(core.Workq), &core.Inspect{Ref: core.Ref{Seq: seq}}).Info.State
			}
			clk.Advance(c.early)
			if s := state(); c.early > 0 && s != core.Scheduled {
				t.Errorf("the job is %v after %v", s, c.early)
			}
			clk.Advance(c.late - c.early + time.Millisecond)
			if s := state(); s != core.Ready {
				t.Errorf("the job is %v after %v", s, c.late)
			}
		})
	}
}
