package coretest

import (
	"sync/atomic"
	"time"

	"broker/core"
)

// Clock is a clock.Clock that moves only when the test advances it. Safe for concurrent use.
type Clock struct{ now atomic.Int64 }

// NewClock starts at the first second of 2030, UTC.
func NewClock() *Clock {
	c := &Clock{}
	c.now.Store(int64(core.InstantOf(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))))
	return c
}

// Now implements clock.Clock.
func (c *Clock) Now() core.Instant { return core.Instant(c.now.Load()) }

// Advance moves the clock forward, or back by a negative d.
func (c *Clock) Advance(d time.Duration) core.Instant {
	return core.Instant(c.now.Add(int64(d / time.Microsecond)))
}
