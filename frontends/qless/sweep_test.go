package qless

import (
	"testing"
	"time"

	"broker/core"
	"broker/frontends/frontendtest"
)

func TestSyncLeavesDueScheduledJobUnchanged(t *testing.T) {
	t.Parallel()
	s, c := setup(t, frontendtest.InMemory)
	c.call("put", "1", "me", "q", "a", "K", "{}", "60")
	epoch := func() uint32 {
		client := s.Broker.Open(core.ClientOptions{})
		defer s.Broker.Close(client)
		r := s.Broker.Do(client, []core.Op{&core.Inspect{Ref: core.Ref{ID: "a"}, Brief: true}}, nil)
		if r[0].Info == nil || r[0].Info.State != core.Ready {
			t.Fatalf("the job of the broker: %+v", r[0])
		}
		return r[0].Info.Epoch
	}
	s.Advance(time.Second)
	before := epoch()
	for range 5 {
		s.Advance(time.Second)
	}
	if after := epoch(); after != before {
		t.Errorf("its epoch went from %d to %d without a call", before, after)
	}
	c.want("{}", "pop", "50", "q", "w", "1")
	c.want(":1", "length", "50", "q")
	if got := c.call("pop", "61", "q", "w", "1"); got == "{}" {
		t.Error("a job is not due by the now of its callers")
	}
}
