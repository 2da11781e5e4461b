package replica

import (
	"fmt"
	"time"

	"github.com/hashicorp/raft"
)

// A copy of the store that is not followed by the log was in vain: the log was cut beyond its index while it was sent
// and installed, or it did not arrive. The next copy may fare no better. A member that accepts entries and soon needs
// another copy does not keep up either. So the leader counts the copies of a member until it has followed for
// followsFor without another one.

// followsFor is how long a member accepts entries after a copy before the copy is forgotten.
const followsFor = time.Hour

// hasRoom returns why a member gets no copy of the store: its disk would be full, or nearly, before the copy has
// arrived, and the next attempt would fail in the same way. Nothing is known of a member that has not answered yet.
func (n *Node) hasRoom(id raft.ServerID, size int64) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	k := n.peerLocked(string(id))
	need := uint64(size) + n.o.MinFreeDisk
	free := k.status.FreeBytes
	if free == 0 || free >= need {
		k.noRoom = false
		return nil
	}
	if !k.noRoom {
		k.noRoom = true
		n.log.Error("a node needs a copy of the store and has no room for it; free some space on its disk", "node",
			string(id), "free_bytes", free, "needed_bytes", need)
	}
	return fmt.Errorf("node %s has %d bytes of free disk space, a copy needs %d", id, free, need)
}

// copyBegins counts a copy that is sent to a member.
func (n *Node) copyBegins(id raft.ServerID) {
	n.mu.Lock()
	k := n.peerLocked(string(id))
	k.copies++
	k.following = 0
	again := k.copies
	n.mu.Unlock()
	n.copies.Add(1)
	if again == 1 {
		return
	}
	n.repeatedCopies.Add(1)
	n.log.Warn("a node needs another copy of the store; if that goes on, raise cluster.keep_log or look at its disk",
		"node", string(id), "copies", again, "keep_log_bytes", n.keepLogBytes(), "log_bytes", n.logs.log.Bytes())
}

// endCopies ends the count of a member that has accepted entries of the log for a while.
func (n *Node) endCopies(id raft.ServerID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	k, now := n.peers[string(id)], n.lease.now().monotonic
	switch {
	case k == nil || k.copies == 0:
	case k.following == 0:
		k.following = now
	case now-k.following >= followsFor:
		k.copies = 0
	}
}

// copiesSent returns the copies of each member that are counted.
func (n *Node) copiesSent() map[string]int {
	n.mu.Lock()
	defer n.mu.Unlock()
	var all map[string]int
	for id, k := range n.peers {
		if k.copies > 0 {
			if all == nil {
				all = make(map[string]int)
			}
			all[id] = k.copies
		}
	}
	return all
}
