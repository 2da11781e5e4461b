package replica

import (
	"fmt"

	"github.com/hashicorp/raft"
)

// A copy of the store that is not followed by the log was in vain: the log was cut beyond its index while it was sent
// and installed, or it did not arrive. The next copy may fare no better, so the leader counts the copies that a
// member gets until it accepts entries.

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
	again := k.copies
	n.mu.Unlock()
	n.copies.Add(1)
	if again == 1 {
		return
	}
	n.repeatedCopies.Add(1)
	n.log.Warn("a node gets another copy of the store before it has caught up; if that goes on, raise cluster.keep_log",
		"node", string(id), "copies", again, "keep_log_bytes", n.keepLogBytes(), "log_bytes", n.logs.log.Bytes())
}

// endCopies ends the count of a member that gets entries of the log.
func (n *Node) endCopies(id raft.ServerID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if k := n.peers[string(id)]; k != nil {
		k.copies = 0
	}
}

// copiesSent returns the copies for members that have got no entries since.
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
