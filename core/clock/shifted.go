package clock

import (
	"time"

	"broker/core"
)

// Shifted is the machine's clock, wrong by a fixed span: what a host with a bad clock would show.
type Shifted struct{ By time.Duration }

// Now implements Clock.
func (s Shifted) Now() core.Instant { return System{}.Now().Add(s.By) }

// Read implements Steady.
func (s Shifted) Read() (core.Instant, time.Duration) {
	now, steady := System{}.Read()
	return now.Add(s.By), steady
}
