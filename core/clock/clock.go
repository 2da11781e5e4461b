// Package clock is the only place that reads the time.
package clock

import (
	"time"

	"broker/core"
)

// Clock tells the time.
type Clock interface{ Now() core.Instant }

// Monotonic is a Clock that can tell a span that has passed from a clock that was set.
type Monotonic interface {
	Clock
	// Read is the time, and the span since some fixed moment, which goes on evenly whatever happens to the wall clock.
	Read() (core.Instant, time.Duration)
}

// System is the machine's clock.
type System struct{}

// began is the fixed moment of System.Read: it carries a reading of the monotonic clock.
var began = time.Now()

// Read implements Steady.
func (System) Read() (core.Instant, time.Duration) {
	t := time.Now()
	return core.InstantOf(t), t.Sub(began)
}

// Now implements Clock.
func (System) Now() core.Instant { return core.InstantOf(time.Now()) }
