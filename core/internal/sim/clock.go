package sim

import (
	"time"

	"broker/core"
	"broker/core/coretest"
)

// clock is a wall clock that can be set, and a monotonic one.
type clock struct {
	monotonic *coretest.Clock
	ahead     time.Duration // of the wall clock, compared with the monotonic clock
	most      core.Instant  // the latest time that the wall clock has shown
}

func newClock() *clock {
	c := &clock{monotonic: coretest.NewClock()}
	c.most = c.Now()
	return c
}

// Now implements clock.Clock.
func (c *clock) Now() core.Instant { return c.monotonic.Now().Add(c.ahead) }

// Read implements clock.Monotonic.
func (c *clock) Read() (core.Instant, time.Duration) { return c.Now(), c.monotonic.Now().Sub(0) }

// pass lets time pass.
func (c *clock) pass(d time.Duration) {
	c.monotonic.Advance(d)
	c.most = max(c.most, c.Now())
}

// set moves the wall clock by d without time passing.
func (c *clock) set(d time.Duration) {
	c.ahead += d
	c.most = max(c.most, c.Now())
}

// toMonotonic converts a time of the wall clock to the monotonic one; zero stays zero.
func (c *clock) toMonotonic(wall core.Instant) core.Instant {
	if wall == 0 {
		return 0
	}
	return wall.Add(-c.ahead)
}
