package qless

import (
	"strconv"
	"testing"
)

func TestOldStatisticsAreDeleted(t *testing.T) {
	t.Parallel()
	s, c := setup(t)
	const day = 86400
	run := func(queue string, at int) {
		now := strconv.Itoa(at)
		c.call("put", now, "me", queue, queue+now, "K", "{}", "0")
		c.call("pop", now, queue, "w", "1")
		c.call("complete", now, queue+now, "w", queue, "{}")
	}
	kept := func(queue string, at int) bool {
		return c.call("stats", "1", queue, strconv.Itoa(at)) != c.call("stats", "1", queue, "-1")
	}
	c.call("config.set", "1", "stats-history", "3")
	for n := range 6 {
		run("q", n*day+100)
	}
	run("other", 100)
	want := func() {
		t.Helper()
		for n := range 6 {
			if got, want := kept("q", n*day), n >= 2; got != want {
				t.Errorf("day %d is kept: %v", n, got)
			}
		}
		if !kept("other", 0) {
			t.Error("the day of another queue was forgotten")
		}
	}
	want()
	s.Restart()
	c = dial(t, s)
	want()
	run("q", 6*day)
	if kept("q", 2*day) || !kept("q", 3*day) {
		t.Error("after a restart, the days are not those of the history")
	}
}
