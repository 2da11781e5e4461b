package replica

import (
	"strings"
	"testing"

	"github.com/hashicorp/raft"
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
