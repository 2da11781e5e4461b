package eventloop

import (
	"testing"

	"broker/core"
)

// A broker that cannot say whose wake-ups are done, such as that of another node, is given a tick for them.
func TestWakeUpsOfAnotherNodeHaveATick(t *testing.T) {
	t.Parallel()
	toy := &toyBroker{}
	b := struct{ core.Broker }{toy} // it has no Woken
	var m missed
	for _, step := range []struct{ committed, want core.Commit }{{3, 0}, {4, 3}, {4, 4}, {7, 4}, {7, 7}} {
		toy.committed.Store(uint64(step.committed))
		if got := m.late(b); got.commit != step.want || got.sure {
			t.Errorf("%+v: %+v", step, got)
		}
	}
	toy.woken.Store(9)
	if got := m.late(toy); got.commit != 9 || !got.sure {
		t.Errorf("%+v, not what the broker says", got)
	}
}
