package core

import "time"

// Instant is a point in time: microseconds since the Unix epoch. Zero means "not set". Microseconds, because the year
// 9999 that a Workq client may name does not fit into nanoseconds.
type Instant int64

// InstantOf converts t; the zero time.Time becomes the zero Instant.
func InstantOf(t time.Time) Instant {
	if t.IsZero() {
		return 0
	}
	return Instant(t.UnixMicro())
}

// Time converts i to UTC; the zero Instant becomes the zero time.Time.
func (i Instant) Time() time.Time {
	if i == 0 {
		return time.Time{}
	}
	return time.UnixMicro(int64(i)).UTC()
}

// Add moves i by d, which is cut to whole microseconds.
func (i Instant) Add(d time.Duration) Instant { return i + Instant(d/time.Microsecond) }

// Sub is the span from j to i.
func (i Instant) Sub(j Instant) time.Duration { return time.Duration(i-j) * time.Microsecond }
