package replica

import "github.com/hashicorp/raft"

// A copy of the store that is not followed by the log was in vain: the log was cut beyond its index while it was sent
// and installed, or it did not arrive. The next copy may fare no better, so the leader counts the copies that a
// member gets until it accepts entries.

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
