package clock

import (
	"time"

	"broker/core"
)

// OffsetClock is the machine's clock, wrong by a fixed span: what a host with a bad clock would show.
type OffsetClock struct{ Offset time.Duration }

// Now implements Clock.
func (s OffsetClock) Now() core.Instant { return System{}.Now().Add(s.Offset) }

// Read implements Steady.
func (s OffsetClock) Read() (core.Instant, time.Duration) {
	now, steady := System{}.Read()
	return now.Add(s.Offset), steady
}
