package hostile

import (
	"sync/atomic"
	"time"

	"broker/core"
	"broker/core/clock"
)

// Clock is a clock that can be set, as by an operator or a time server. Its monotonic time does not jump. Any goroutine
// may use it.
type Clock struct {
	clock.Monotonic
	by atomic.Int64 // a time.Duration
}

// NewClock makes a Clock that shows the right time.
func NewClock(right clock.Monotonic) *Clock { return &Clock{Monotonic: right} }

// Now implements clock.Clock.
func (c *Clock) Now() core.Instant { return c.Monotonic.Now().Add(c.offset()) }

// Read implements clock.Monotonic.
func (c *Clock) Read() (core.Instant, time.Duration) {
	now, span := c.Monotonic.Read()
	return now.Add(c.offset()), span
}

// set makes the clock wrong by a duration.
func (c *Clock) set(by time.Duration) { c.by.Store(int64(by)) }

// offset is the error of the clock; zero for a nil clock.
func (c *Clock) offset() time.Duration {
	if c == nil {
		return 0
	}
	return time.Duration(c.by.Load())
}
