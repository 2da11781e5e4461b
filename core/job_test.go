package core

import (
	"testing"
	"time"
)

// A copy of a job for a later submission has its times as much later, and shares nothing that changes.
func TestLaterMovesTheTimesThatAreSet(t *testing.T) {
	t.Parallel()
	old := Job{ExpiresAt: 100, RetainUntil: 300, Rare: &RareFields{Deadline: 200, RerunOf: 7}}
	j := old
	j.Later(func(at Instant) Instant { return at.Add(time.Microsecond) })
	if j.ExpiresAt != 101 || j.RetainUntil != 301 || j.Rares() != (RareFields{Deadline: 201, RerunOf: 7}) ||
		j.StartBefore != 0 || j.UniqueUntil != 0 {
		t.Errorf("moved to %+v, %+v", j, j.Rare)
	}
	if old.Rares().Deadline != 200 {
		t.Errorf("the old job has the deadline %d", old.Rares().Deadline)
	}
	plain := Job{}
	if plain.Later(func(at Instant) Instant { return at + 1 }); plain.Rare != nil || plain.ExpiresAt != 0 {
		t.Errorf("times that are not set became %+v", plain)
	}
}

func TestJobIsLateAfterItsDeadlineUnlessItHadEnded(t *testing.T) {
	t.Parallel()
	j := Job{Rare: &RareFields{Deadline: 200}}
	for _, c := range []struct {
		ended, now Instant
		want       bool
	}{{0, 200, false}, {0, 201, true}, {200, 500, false}, {201, 500, true}} {
		if got := j.IsLate(c.ended, c.now); got != c.want {
			t.Errorf("ended at %d, now %d: late %v", c.ended, c.now, got)
		}
	}
	if (&Job{}).IsLate(0, 500) {
		t.Error("a job without a deadline is late")
	}
}
