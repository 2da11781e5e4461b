package gearman

import (
	"math"
	"time"

	"broker/core"
	"broker/frontends"
)

// maxEpoch is the last second of the year 9999: the other protocols cannot represent later times.
const maxEpoch = 253_402_300_799

// parseEpoch parses the time of SUBMIT_JOB_EPOCH: seconds since 1970. Later times than maxEpoch become maxEpoch.
func parseEpoch(b []byte) (core.Instant, bool) {
	n, ok := frontends.ParseUint(b, math.MaxInt64)
	return core.Instant(min(n, maxEpoch)) * core.Instant(time.Second/time.Microsecond), ok
}

// parseTimeout parses the milliseconds of CAN_DO_TIMEOUT. Anything but a positive number means no timeout; the shortest
// is one second, the longest 100 years.
func parseTimeout(b []byte) time.Duration {
	const longest = 100 * 365 * 24 * time.Hour
	ms, ok := frontends.ParseUint(b, uint64(longest/time.Millisecond))
	switch {
	case !ok && len(b) > 0 && isDigits(b):
		return longest
	case !ok || ms == 0:
		return 0
	}
	return max(time.Second, time.Duration(ms)*time.Millisecond)
}

func isDigits(b []byte) bool {
	for _, c := range b {
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
}

// anyValue in a schedule matches every minute, hour, day, month or weekday.
const anyValue = -1

// schedule is the time of SUBMIT_JOB_SCHED. All fields must match.
type schedule struct {
	minute, hour int
	day, month   int // from 1
	weekday      int // 0 is Monday
}

// parseSchedule parses the five fields; an empty field and * match always.
func parseSchedule(minute, hour, day, month, weekday []byte) (schedule, bool) {
	var c schedule
	for _, f := range [...]struct {
		in       []byte
		out      *int
		min, max int
	}{
		{minute, &c.minute, 0, 59},
		{hour, &c.hour, 0, 23},
		{day, &c.day, 1, 31},
		{month, &c.month, 1, 12},
		{weekday, &c.weekday, 0, 6},
	} {
		if len(f.in) == 0 || string(f.in) == "*" {
			*f.out = anyValue
			continue
		}
		n, ok := frontends.ParseUint(f.in, uint64(f.max))
		if !ok || int(n) < f.min {
			return schedule{}, false
		}
		*f.out = int(n)
	}
	return c, true
}

// maxYears limits the search of next. The next February 29 on a given weekday can be 40 years away.
const maxYears = 41

// next is the first matching minute that starts at now or later; false if there is none, as for April 31. A minute that
// daylight saving time skips does not match.
func (c schedule) next(now time.Time) (time.Time, bool) {
	first := now.Truncate(time.Minute)
	if first.Before(now) {
		first = first.Add(time.Minute)
	}
	for y := first.Year(); y <= first.Year()+maxYears; y++ {
		for month := time.January; month <= time.December; month++ {
			if c.month != anyValue && time.Month(c.month) != month {
				continue
			}
			if at, ok := c.inMonth(first, y, month); ok {
				return at, true
			}
		}
	}
	return time.Time{}, false
}

// inMonth searches the days of a month.
func (c schedule) inMonth(first time.Time, y int, month time.Month) (time.Time, bool) {
	days := time.Date(y, month+1, 0, 0, 0, 0, 0, time.UTC).Day()
	if time.Date(y, month, days, 23, 59, 0, 0, first.Location()).Before(first) {
		return time.Time{}, false
	}
	for day := 1; day <= days; day++ {
		if c.day != anyValue && c.day != day {
			continue
		}
		if weekday := time.Date(y, month, day, 0, 0, 0, 0, time.UTC).Weekday(); c.weekday != anyValue &&
			c.weekday != (int(weekday)+6)%7 {
			continue
		}
		if at, ok := c.inDay(first, y, month, day); ok {
			return at, true
		}
	}
	return time.Time{}, false
}

// inDay searches the minutes of a day.
func (c schedule) inDay(first time.Time, y int, month time.Month, day int) (time.Time, bool) {
	if time.Date(y, month, day, 23, 59, 0, 0, first.Location()).Before(first) {
		return time.Time{}, false
	}
	for hour := range 24 {
		if c.hour != anyValue && c.hour != hour {
			continue
		}
		for minute := range 60 {
			if c.minute != anyValue && c.minute != minute {
				continue
			}
			at := time.Date(y, month, day, hour, minute, 0, 0, first.Location())
			if !at.Before(first) && at.Hour() == hour && at.Minute() == minute {
				return at, true
			}
		}
	}
	return time.Time{}, false
}
