package core

import (
	"math"
	"testing"
	"time"
)

func TestInstantsSaturate(t *testing.T) {
	t.Parallel()
	const last, first = Instant(math.MaxInt64), Instant(math.MinInt64)
	now := InstantOf(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))
	year9999 := InstantOf(time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC))
	for _, c := range []struct {
		name      string
		got, want any
	}{
		{"a span", now.Add(time.Hour).Sub(now), time.Hour},
		{"a span back", now.Sub(now.Add(time.Hour)), -time.Hour},
		{"292 years", now.Add(292 * 365 * 24 * time.Hour).Sub(now), 292 * 365 * 24 * time.Hour},
		{"to the year 9999", year9999.Sub(now), time.Duration(math.MaxInt64)},
		{"back from the year 9999", now.Sub(year9999), time.Duration(math.MinInt64)},
		{"over all instants", last.Sub(first), time.Duration(math.MaxInt64)},
		{"back over all instants", first.Sub(last), time.Duration(math.MinInt64)},
		{"beyond the last instant", last.Add(time.Hour), last},
		{"before the first instant", first.Add(-time.Hour), first},
		{"up to the last instant", (last - 5).Add(5 * time.Microsecond), last},
		{"nothing at the end", last.Add(0), last},
	} {
		if c.got != c.want {
			t.Errorf("%s: %v, want %v", c.name, c.got, c.want)
		}
	}
}
