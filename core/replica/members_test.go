package replica

import (
	"errors"
	"net"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"broker/core/clock"
)

// A follower that entries do not reach has applied all that it knows to be committed, and lags behind all the same.
func TestLagCountsWhatTheOthersHaveCommitted(t *testing.T) {
	t.Parallel()
	n := &Node{peers: map[string]*peerStatus{"n2": {status: Status{Committed: 50}}, "n3": {status: Status{Committed: 7}}}}
	for _, c := range []struct {
		own  Status
		want uint64
	}{
		{Status{Committed: 10, Applied: 10}, 40}, {Status{Committed: 60, Applied: 55}, 5}, {Status{Committed: 60, Applied: 60}, 0},
	} {
		if got := n.lag(&c.own); got != c.want {
			t.Errorf("lag of %+v is %d, not %d", c.own, got, c.want)
		}
	}
}

func TestFollowerServesClientsWhileItsLeaderDoes(t *testing.T) {
	t.Parallel()
	n := &Node{o: Options{Clock: clock.System{}}, peers: map[string]*peerStatus{}}
	now := n.now()
	n.peers["n2"] = &peerStatus{status: Status{Serving: true}, at: now}
	n.peers["n3"] = &peerStatus{status: Status{Serving: true}, at: now.Add(-time.Minute)}
	n.peers["n4"] = &peerStatus{status: Status{}, at: now}
	for id, want := range map[string]bool{"n2": true, "n3": false, "n4": false, "n5": false, "": false} {
		if n.servedBy(id) != want {
			t.Errorf("served by %q: %v", id, !want)
		}
	}
}

// A member that takes calls and does not answer does not delay the end of another one.
func TestClosedNodeWaitsForNoAnswer(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "n1", "n2", "n3")
	c.start("n1", "n2", "n3")
	_, _, e := c.leader()
	defer shutdown(t, e)
	n := c.nodes["n1"]
	conn, err := n.stream.Dial(raft.ServerAddress(n.o.Members[1].Address), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	read := make(chan error, 1)
	go func() { // ends with the connection
		_, err := conn.Read(make([]byte, 1))
		read <- err
	}()
	n.stream.closeCalls()
	if err := <-read; !errors.Is(err, net.ErrClosed) {
		t.Errorf("an open call ended with %v", err)
	}
	if _, err := n.stream.Dial(raft.ServerAddress(n.o.Members[1].Address), time.Minute); err == nil {
		t.Error("a closed node calls another one")
	}
}
