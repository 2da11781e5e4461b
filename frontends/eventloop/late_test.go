package eventloop

import (
	"testing"
	"time"

	"broker/core"
)

// A broker that cannot say whose wake-ups are done, such as that of another node, has had them done after a long time.
func TestWakeUpsOfAnotherNodeAreDoneAfterALongTime(t *testing.T) {
	t.Parallel()
	toy := &toyBroker{}
	b := struct{ core.Broker }{toy} // it has no Woken
	var w wakes
	now := time.Now()
	for _, step := range []struct {
		after           time.Duration
		committed, want core.Commit
	}{
		{0, 3, 0},
		{time.Second, 4, 0},
		{wakeWithin - 2*time.Second, 5, 0},
		{time.Second, 6, 3},
		{wakeWithin - 1, 7, 3},
		{1, 8, 6},
		{wakeWithin, 8, 8},
	} {
		now = now.Add(step.after)
		toy.committed.Store(uint64(step.committed))
		if got := w.done(b, now); got != step.want {
			t.Errorf("%+v: %d", step, got)
		}
	}
	toy.woken.Store(9)
	if got := w.done(toy, now); got != 9 {
		t.Errorf("%d, not what the broker says", got)
	}
}
