package machine

import (
	"testing"

	"broker/core"
)

func TestUnlistedClientsAreLeftOutOfListsAndCounts(t *testing.T) {
	t.Parallel()
	l := newLimited()
	part := l.OpenClient(2, core.ClientOptions{Protocol: core.Qless, Unlisted: true})
	l.OpenClient(2, core.ClientOptions{Protocol: core.Qless, Address: "client"})
	if r := l.do(&core.ListClients{Protocol: core.Qless}); len(r.Clients) != 1 || r.Clients[0].Address != "client" {
		t.Errorf("listed: %+v", r.Clients)
	}
	l.CloseClient(2, part)
	if n := l.Stats().Clients[core.Qless]; n != 1 {
		t.Errorf("%d clients are counted instead of one", n)
	}
	if err := l.Check(); err != nil {
		t.Error(err)
	}
}
