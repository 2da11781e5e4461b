package replica

import (
	"context"
	"slices"
	"time"

	"broker/core"
)

// The nodes have one time: core/clock.Slewed. A node follows that of the leader, which it asks once a second. When it
// leads, it continues from there, and slews towards the median of the wall clocks of all nodes: one wrong clock
// changes nothing.

// resumeTime continues the time of the cluster after the last entry of the store, when this node becomes the leader.
func (n *Node) resumeTime(last core.Instant) core.Instant {
	if !n.time.Known() { // this process has not heard of any leader yet: the other nodes may know the time
		n.correctTime(n.askOthers(context.Background(), statusWithin, nil))
	}
	return n.time.Resume(last)
}

// followTime takes the time from the status of another node, which was asked for at asked.
func (n *Node) followTime(s *Status, asked moment) {
	useful := s.Time != 0 && (s.Role == "leader" || !n.time.Known())
	if !useful || !n.isRunning() || n.IsLeader() || s.Term < n.raft.CurrentTerm() {
		return
	}
	n.time.Follow(s.Time.Add((n.lease.now().monotonic - asked.monotonic) / 2))
}

// correctTime compares the wall clocks of the nodes.
func (n *Node) correctTime(all map[string]*Status) {
	skews := []time.Duration{0} // of this node
	n.mu.Lock()
	for id := range all {
		if k := n.peers[id]; id != n.o.ID && k != nil {
			skews = append(skews, k.skew)
		}
	}
	n.mu.Unlock()
	n.time.Correct(median(skews, -n.time.Offset()))
}

// median returns the median of wall clocks; of two in the middle, the nearer one to the time.
func median(skews []time.Duration, now time.Duration) time.Duration {
	slices.Sort(skews)
	low, high := skews[(len(skews)-1)/2], skews[len(skews)/2]
	if now-low < high-now {
		return low
	}
	return high
}

// standbyClock is the clock of a standby. While the time of the cluster is not known, it is that of the newest entry.
type standbyClock struct{ n *Node }

// Now implements clock.Clock.
func (c standbyClock) Now() core.Instant {
	if c.n.time.Known() {
		return c.n.time.Now()
	}
	return c.n.store.Load().Position().At
}
