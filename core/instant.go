package core

import (
	"math"
	"time"
)

// Instant is a point in time: microseconds since the Unix epoch. Zero means "not set". It uses microseconds because
// Workq clients may use the year 9999, which does not fit in 64 bits of nanoseconds.
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

// Add moves i by d, truncated to whole microseconds. A result beyond the range of an Instant is clamped to it.
func (i Instant) Add(d time.Duration) Instant {
	span := Instant(d / time.Microsecond)
	sum := i + span
	switch {
	case span > 0 && sum < i:
		return math.MaxInt64
	case span < 0 && sum > i:
		return math.MinInt64
	}
	return sum
}

// Sub returns the span from j to i, clamped to the range of a time.Duration (292 years).
func (i Instant) Sub(j Instant) time.Duration {
	const most = math.MaxInt64 / int64(time.Microsecond)
	span := int64(i) - int64(j)
	switch {
	case i > j && (span < 0 || span > most):
		return math.MaxInt64
	case i < j && (span > 0 || span < -most):
		return math.MinInt64
	}
	return time.Duration(span) * time.Microsecond
}
