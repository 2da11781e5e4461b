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
