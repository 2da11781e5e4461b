package replica

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"broker/core/coretest"
	"broker/core/internal/store"
)

func TestAMemberWithoutRoomGetsNoCopy(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "n1")
	c.start("n1")
	n, _, _ := c.leader()
	n.o.MinFreeDisk = 100
	for name, of := range map[string]struct {
		free uint64
		ok   bool
	}{
		"room for the copy and what must stay free": {300, true},
		"too little":                  {299, false},
		"a member that does not know": {0, true},
	} {
		n.mu.Lock()
		n.peerLocked("n2").status.FreeBytes = of.free
		n.mu.Unlock()
		if err := n.hasRoom("n2", 200); (err == nil) != of.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
	n.mu.Lock()
	n.peerLocked("n2").status.FreeBytes = 1
	n.mu.Unlock()
	done := make(chan struct{})
	close(done)
	// There is no transport below it that could send something.
	over := &transport{hasRoom: n.hasRoom, onCopy: n.copyBegins, done: done}
	err := over.InstallSnapshot("n2", "", &raft.InstallSnapshotRequest{Size: 200}, nil, nil)
	if err == nil || !strings.Contains(err.Error(), "needs 300") {
		t.Errorf("a copy is sent: %v", err)
	}
	if got := n.copiesSent(); len(got) != 0 {
		t.Errorf("a copy that was not sent is counted: %v", got)
	}
	if s := n.status(); s.FreeBytes == 0 {
		t.Error("a node does not report the free space of its disk")
	}
}

// Copies are counted until the member has followed for a while: one that accepts entries and soon needs another copy
// does not keep up either.
func TestCopiesAreCountedUntilTheMemberFollows(t *testing.T) {
	t.Parallel()
	var logged []string
	clock := &handClock{monotonic: time.Hour}
	l, err := store.OpenLog(store.Options{FS: coretest.MemoryFS(), Dir: "log"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }() // in memory
	n := &Node{peers: map[string]*peerStatus{}, logs: &logStore{log: l}}
	n.lease.clock, n.o.KeepLogBytes = clock, 1
	n.log = newLogger(func(_ slog.Level, text string, _ ...any) { logged = append(logged, text) })
	check := func(counted int, sent, repeated uint64) {
		t.Helper()
		if got := n.copiesSent()["n2"]; got != counted || n.copies.Load() != sent ||
			n.repeatedCopies.Load() != repeated || len(logged) != int(repeated) {
			t.Errorf("%d copies counted, %d sent, %d repeated, log %q", got, n.copies.Load(), n.repeatedCopies.Load(),
				logged)
		}
	}
	n.endCopies("n2") // it never needed one
	check(0, 0, 0)
	n.copyBegins("n2")
	clock.pass(2 * followsFor)
	n.copyBegins("n2")
	check(2, 2, 1)
	n.endCopies("n2")
	clock.pass(followsFor - 1)
	n.endCopies("n2")
	n.copyBegins("n2")
	check(3, 3, 2)
	n.endCopies("n2")
	clock.pass(followsFor - 1)
	n.endCopies("n2")
	check(3, 3, 2)
	clock.pass(1)
	n.endCopies("n2")
	check(0, 3, 2)
	n.copyBegins("n2")
	check(1, 4, 2)
}
