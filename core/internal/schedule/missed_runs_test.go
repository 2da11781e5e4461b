package schedule

import (
	"testing"
	"time"

	"broker/core"
)

// countingTimes counts how often a time is computed.
type countingTimes struct {
	every
	asked *int
}

func (c countingTimes) Next(t time.Time) time.Time {
	*c.asked++
	return c.every.Next(t)
}

// Catching up on missed runs takes time in proportion to their number.
func TestMissedRunsAreCountedOnce(t *testing.T) {
	t.Parallel()
	const most, missed = core.MaxMissed, 5 * core.MaxMissed
	asked := 0
	s := &schedule{
		Schedule: core.Schedule{Missed: core.MissedAll, MaxMissed: most},
		times:    countingTimes{every{every: 1000}, &asked},
	}
	s.next = 1000
	upTo, runs := core.Instant(missed*1000+500), 0
	for ; s.next <= upTo; runs++ {
		due := s.firstRun(upTo)
		s.at, s.next = due, s.after(due)
	}
	if runs != most {
		t.Errorf("%d runs were made, want %d", runs, most)
	}
	if asked > 40*most { // each of the searches for the oldest run halves an interval of some millions
		t.Errorf("%d times were computed for %d runs", asked, runs)
	}
	upTo += 3000
	if due := s.firstRun(upTo); due != s.next {
		t.Errorf("the next run is that of %d, want %d", due, s.next)
	}
}
