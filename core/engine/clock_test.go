package engine_test

import (
	"sync/atomic"
	"testing"
	"time"

	"broker/core"
	"broker/core/clock"
	"broker/core/engine"
)

// setClock is the system's clock, set by hand.
type setClock struct {
	clock.System
	by atomic.Int64
}

func (c *setClock) Now() core.Instant { return c.System.Now() + core.Instant(c.by.Load()) }

func (c *setClock) Read() (core.Instant, time.Duration) {
	now, even := c.System.Read()
	return now + core.Instant(c.by.Load()), even
}

func TestLeaseKeepsItsLengthWhenTheClockIsSet(t *testing.T) {
	t.Parallel()
	for name, by := range map[string]time.Duration{"forward": 48 * time.Hour, "back": -48 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clk := &setClock{}
			d := setup(t, func(o *engine.Options) { o.Clock, o.ManualTimers = clk, false })
			c := d.client(core.Workq)
			d.one(c, &core.Submit{Job: &core.Job{Queue: "q", Origin: core.Workq, LeaseFor: 3 * time.Second}})
			r := d.one(c, &core.Lease{Queues: []string{"q"}, Holder: core.HeldByNobody})
			if r.Kind != core.Assigned {
				t.Fatalf("lease: %+v", r)
			}
			clk.by.Store(int64(by / time.Microsecond))
			began := time.Now()
			state := func() core.State { return d.one(c, &core.Inspect{Ref: core.Ref{Seq: r.Seq}}).Info.State }
			for state() == core.Leased {
				if time.Since(began) > 30*time.Second {
					t.Fatal("the lease does not end any more")
				}
				time.Sleep(20 * time.Millisecond)
			}
			if held := time.Since(began); held < 2*time.Second {
				t.Fatalf("the lease of 3s ended %v after the clock was set", held)
			}
		})
	}
}
