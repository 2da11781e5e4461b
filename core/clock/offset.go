package clock

import (
	"time"

	"broker/core"
)

// OffsetClock is the system's clock with a fixed error, like the clock of a host that is set wrong.
type OffsetClock struct{ Offset time.Duration }

// Now implements Clock.
func (s OffsetClock) Now() core.Instant { return System{}.Now().Add(s.Offset) }

// Read implements Monotonic.
func (s OffsetClock) Read() (core.Instant, time.Duration) {
	now, steady := System{}.Read()
	return now.Add(s.Offset), steady
}
