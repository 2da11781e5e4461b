// Package clock reads the time. Other packages of the core get a Clock.
package clock

import (
	"time"

	"broker/core"
)

// Clock returns the time.
type Clock interface{ Now() core.Instant }

// Monotonic is a Clock that also measures time independently of changes to the wall clock.
type Monotonic interface {
	Clock
	// Read returns the time, and the time since a fixed start. Changes of the wall clock do not affect the latter.
	Read() (core.Instant, time.Duration)
}

// System is the machine's clock.
type System struct{}

// began is the fixed start for System.Read; it includes a reading of the monotonic clock.
var began = time.Now()

// Read implements Monotonic.
func (System) Read() (core.Instant, time.Duration) {
	t := time.Now()
	return core.InstantOf(t), t.Sub(began)
}

// Now implements Clock.
func (System) Now() core.Instant { return core.InstantOf(time.Now()) }
