package clock

import (
	"time"

	"broker/core"
)

// OffsetClock is the system's clock with a fixed error, like the clock of a host that is set wrong.
type OffsetClock struct{ Offset time.Duration }

// Now implements Clock.
func (c OffsetClock) Now() core.Instant { return System{}.Now().Add(c.Offset) }

// Read implements Monotonic.
func (c OffsetClock) Read() (core.Instant, time.Duration) {
	now, monotonic := System{}.Read()
	return now.Add(c.Offset), monotonic
}
