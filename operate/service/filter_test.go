package service

import (
	"testing"
	"time"

	"broker/core"
)

// slowSearch is a broker whose clock moves by two seconds with each search.
type slowSearch struct {
	core.Broker
	searches int
}

// Do implements core.Broker.
func (b *slowSearch) Do(id core.ClientID, ops []core.Op, into []core.Reply) []core.Reply {
	for _, op := range ops {
		if _, ok := op.(*core.Find); ok {
			b.searches++
		}
	}
	return b.Broker.Do(id, ops, into)
}

// Now implements core.Broker.
func (b *slowSearch) Now() core.Instant {
	return b.Broker.Now().Add(time.Duration(b.searches) * 2 * time.Second)
}

func TestASearchThatTakesLongContinuesOnTheNextPage(t *testing.T) {
	t.Parallel()
	s, e := setup(t)
	submitMany(t, e, "q", 100_000)
	client := e.Open(core.ClientOptions{Protocol: core.HTTP, Wake: func() {}})
	defer e.Close(client)
	e.Do(client, []core.Op{&core.Submit{Job: &core.Job{Queue: "q", Priority: 9}}}, nil)
	slow := &slowSearch{Broker: e}
	s.o.Broker = slow
	filter, page := JobFilter{MinPriority: new(int64)}, JobPage{Limit: 10}
	*filter.MinPriority = 9
	found, empty := 0, 0
	for more := true; more; more = page.Cursor != "" {
		slow.searches = 0
		list, err := s.Jobs(t.Context(), everyone, filter, page)
		if err != nil {
			t.Fatal(err)
		}
		if slow.searches > 3 {
			t.Fatalf("a page took %d searches", slow.searches)
		}
		if len(list.Jobs) == 0 && list.Cursor != "" {
			empty++
		}
		found, page.Cursor = found+len(list.Jobs), list.Cursor
	}
	if found != 1 || empty == 0 {
		t.Errorf("%d jobs found, want one; %d pages were empty, want some", found, empty)
	}
}
