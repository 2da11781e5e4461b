package replica

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"broker/core/clock"
	"broker/core/engine"
)

// A follower that gets no entries has applied all entries that it knows to be committed, and still lags behind.
func TestLagCountsEntriesCommittedByOthers(t *testing.T) {
	t.Parallel()
	n := &Node{peers: map[string]*peerStatus{
		"n2": {status: Status{Committed: 50}}, "n3": {status: Status{Committed: 7}},
	}}
	for _, c := range []struct {
		own  Status
		want uint64
	}{
		{Status{Committed: 10, Applied: 10}, 40},
		{Status{Committed: 60, Applied: 55}, 5},
		{Status{Committed: 60, Applied: 60}, 0},
	} {
		if got := n.lag(&c.own); got != c.want {
			t.Errorf("lag of %+v is %d, not %d", c.own, got, c.want)
		}
	}
}

func TestNodeLearnsFromALeaderThatItWasRemoved(t *testing.T) {
	t.Parallel()
	with, without := []Member{{ID: "n1"}, {ID: "n2"}}, []Member{{ID: "n1"}, {ID: "n3"}}
	for name, c := range map[string]struct {
		leader string // that the node follows
		status Status // of n1
		want   bool
	}{
		"by its leader":                     {"n1", Status{Role: "leader", Term: 7, Members: without}, true},
		"its leader has it":                 {"n1", Status{Role: "leader", Term: 7, Members: with}, false},
		"an earlier term of its leader":     {"n1", Status{Role: "leader", Term: 6, Members: without}, false},
		"by another node than its leader":   {"n3", Status{Role: "leader", Term: 7, Members: without}, false},
		"started again, and nobody calls":   {"", Status{Role: "leader", Term: 7, Members: without}, true},
		"started again after some terms":    {"", Status{Role: "leader", Term: 9, Members: without}, true},
		"started again, a leader has it":    {"", Status{Role: "leader", Term: 9, Members: with}, false},
		"a leader of an earlier term":       {"", Status{Role: "leader", Term: 6, Members: without}, false},
		"a follower's list may be outdated": {"", Status{Role: "follower", Term: 7, Members: without}, false},
		"a leader that gives no list":       {"", Status{Role: "leader", Term: 7}, false},
	} {
		c.status.Node = "n1"
		if got := removed("n2", c.leader, 7,
			map[string]*Status{"n1": &c.status, "n2": {Node: "n2", Role: "candidate", Members: with}}); got != c.want {
			t.Errorf("%s: %v", name, got)
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

// A member that accepts calls but does not answer does not delay the end of another member.
func TestCloseDoesNotWaitForSilentMembers(t *testing.T) {
	t.Parallel()
	c := startedCluster(t)
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

// A node with a store takes the members from it. A list with fewer or with more members than the cluster has does not
// keep it from starting; another address of its own does.
func TestNodeWithAStoreTakesTheMembersFromIt(t *testing.T) {
	t.Parallel()
	c := newStoppedCluster(t)
	own, _ := find(c.members, "n2")
	other := Member{ID: "n4", Address: freeAddress(t)}
	for name, list := range map[string][]Member{
		"fewer": {own, c.members[0]}, "others": {own, other}, "more": append([]Member{other}, c.members...),
	} {
		c.change = func(o *Options) {
			if o.ID == "n2" {
				o.Members = list
			}
		}
		c.start("n1", "n2", "n3")
		_, _, e := c.leader()
		c.caughtUp()
		if got := listText(c.nodes["n2"].Members()); got != listText(c.members) {
			t.Errorf("%s: the members are %s", name, got)
		}
		shutdown(t, e)
		c.stopAll()
	}
	c.change = func(o *Options) {
		o.Members = []Member{{ID: "n2", Address: other.Address}, c.members[0], c.members[2]}
	}
	n, err := c.open("n2")
	if !errors.Is(err, errListsDiffer) || !strings.Contains(err.Error(), "start it with "+own.String()) {
		t.Errorf("a node starts at another address: %v", err)
		_ = n.Close() // the test has failed
	}
}

// A leader that is removed hands the lead over, and the next leader removes it. Nothing is lost.
func TestLeaderThatIsRemovedHandsOver(t *testing.T) {
	t.Parallel()
	c := startedCluster(t)
	n, lead, e := c.leader()
	submit(t, e, 0, 10, 10)
	c.caughtUp()
	refused := errors.New("it cannot be noted")
	err := n.Remove(t.Context(), n.o.ID, func() error { return refused })
	if !errors.Is(err, refused) || !n.IsLeader() {
		t.Errorf("a removal that cannot be noted: %v", err)
	}
	noted := 0
	if err := n.Remove(t.Context(), n.o.ID, func() error { noted++; return nil }); err != nil || noted != 1 {
		t.Fatalf("noted %d times, %v", noted, err)
	}
	<-lead.Lost()
	e.Abandon()
	shutdown(t, e)
	if err := <-n.Failed(); !errors.Is(err, ErrRemoved) {
		t.Errorf("the removed node ends with %v", err)
	}
	c.stop(n.o.ID)
	next, _, e := c.leader()
	if members := next.Members(); len(members) != 2 || next == n {
		t.Errorf("%s leads the members %v", next.o.ID, members)
	}
	if got := jobs(t, e); got != 10 {
		t.Errorf("%d jobs", got)
	}
	submit(t, e, 10, 1, 10)
	shutdown(t, e)
}

// Every node shows which of the others have a nearly full disk, or no link for their clients.
func TestNodesSayWhatIsWrongWithThem(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "n1", "n2", "n3")
	var unlinked atomic.Value
	unlinked.Store("")
	c.change = func(o *Options) {
		id := o.ID
		o.Linked = func() bool { return unlinked.Load() != id }
	}
	c.start("n1", "n2", "n3")
	n, _, e := c.leader()
	id := c.follower(n)
	unlinked.Store(id)
	c.nodes[id].diskLow.Store(true)
	eventually(t, func() string {
		for _, i := range n.Overview(t.Context()).Nodes {
			if is := i.ID == id; i.DiskLow != is || i.Unlinked != is {
				return fmt.Sprintf("%+v", i)
			}
		}
		return ""
	})
	shutdown(t, e)
}

// A member that has not read its log yet is not taken for a stranger.
func TestNodeThatStartsSaysSo(t *testing.T) {
	t.Parallel()
	if _, err := new(Node).answer(&request{Op: opStatus}, &greeting{Cluster: "c"}); !errors.Is(err, errStarting) {
		t.Errorf("answers %v", err)
	}
}

// A node that stops does not warn that it knows no leader.
func TestNodeThatStopsWarnsOfNothing(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "n1", "n2", "n3")
	var mu sync.Mutex // guards stopping and warnings
	var stopping string
	var warnings []string
	c.change = func(o *Options) {
		id := o.ID
		o.Log = func(level slog.Level, text string, _ ...any) {
			mu.Lock()
			defer mu.Unlock()
			if id == stopping && level >= slog.LevelWarn {
				warnings = append(warnings, text)
			}
		}
	}
	c.start("n1", "n2", "n3")
	n, _, e := c.leader()
	mu.Lock()
	stopping = c.follower(n)
	mu.Unlock()
	c.stop(stopping)
	mu.Lock()
	defer mu.Unlock()
	if slices.Contains(warnings, "this node knows no leader of the cluster") {
		t.Errorf("warnings %q", warnings)
	}
	shutdown(t, e)
}

// The stores of stopped nodes say which of them is the newest.
func TestStoppedStoreSaysWhereItIsInTheLog(t *testing.T) {
	t.Parallel()
	c := newStoppedCluster(t)
	for id, dir := range c.dirs {
		x, err := engine.Inspect(t.Context(), dir, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if x.Cluster == "" || x.Applied == 0 || x.AppliedAt == 0 {
			t.Errorf("%s: cluster %q, entry %d of %v", id, x.Cluster, x.Applied, x.AppliedAt)
		}
	}
}
