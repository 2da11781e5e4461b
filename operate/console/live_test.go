package console

import (
	"strconv"
	"testing"
	"time"

	"broker/operate/service"
)

// TestTabLearnsOfChangesBeforeItsStreamBegan: a change between a page and its event stream is seen by a look before the
// tab joins.
func TestTabLearnsOfChangesBeforeItsStreamBegan(t *testing.T) {
	t.Parallel()
	l := newLive(func() *service.Service { return nil }, func() time.Time { return time.Unix(2, 0) })
	told := func(turn uint64) bool {
		changed, ok := l.join(strconv.FormatUint(turn, 10))
		if !ok {
			t.Fatal("the tab is refused")
		}
		defer l.leave(changed)
		return len(changed) == 1
	}
	turn := l.turn.Load()
	if told(turn) {
		t.Error("a tab that has everything is told of a change")
	}
	l.turn.Add(1)
	if !told(turn) {
		t.Error("a tab that lacks a change is not told")
	}
	if before := newLive(l.service, func() time.Time { return time.Unix(1, 0) }); before.turn.Load() == turn {
		t.Error("the turns of two starts are alike")
	}
}
