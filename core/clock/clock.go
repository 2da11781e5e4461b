// Package clock is the only place that reads the time.
package clock

import (
	"time"

	"broker/core"
)

// Clock tells the time.
type Clock interface{ Now() core.Instant }

// System is the machine's clock.
type System struct{}

// Now implements Clock.
func (System) Now() core.Instant { return core.InstantOf(time.Now()) }
