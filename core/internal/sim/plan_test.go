package sim

import (
	"cmp"
	"testing"
	"time"
)

// A clock that was far ahead leaves a position on disk that is far ahead. When the clock is set back, the schedule is
// reset. The reset is not on disk until the next commit.
func TestResetOfAScheduleMayBeLostInACrash(t *testing.T) {
	t.Parallel()
	w, err := newWorld(1)
	if err != nil {
		t.Fatal(err)
	}
	check := func(err error) {
		t.Helper()
		if err = cmp.Or(err, w.violation); err != nil {
			t.Fatal(err)
		}
	}
	set := func(d time.Duration) {
		t.Helper()
		w.clk.set(d)
		w.loosenPlans()
		for range 10 { // more runs than a backlog allows
			w.engine.Tick()
		}
		check(w.collect())
	}
	for len(w.model.plans) == 0 {
		check(w.schedule())
	}
	check(w.flush())
	set(40 * time.Hour)
	check(w.flush())
	set(-40 * time.Hour)
	w.clk.pass(2 * planEvery)
	set(40 * time.Hour)
	if w.farBack() {
		t.Fatal("the clock is still back")
	}
	w.tidy = true
	check(w.crash())
}
