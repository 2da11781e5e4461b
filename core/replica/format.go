package replica

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"broker/core/internal/record"
)

// Nodes are upgraded one after another, so a leader writes entries in the newest format that all members can read:
//
//   - Every node reports the newest format it can read, in its greetings and its status.
//   - The first leader of a cluster starts with the newest format that it reads, since all nodes that found a cluster
//     have the same version. Every other leader starts with the format of the last entry of its store, or with a
//     newer one if all members report in time that they can read it. Later it changes to a newer format once all
//     members, including learners, have reported in the same round that they can read it. A member that does not
//     answer may run an older program.
//   - Every entry carries its format, and the store of every node keeps the format of the last entry. The format of a
//     cluster never goes back. A program that is too old for it is refused by other nodes, cannot open the store, and
//     stops when it gets such an entry.

// oldestFormat is the format that other nodes must be able to read. Raise it when support for an old format is
// dropped.
const oldestFormat = 1

// formats tell another node, in a greeting, which formats this node reads and needs.
type formats struct {
	Reads   int    `json:"reads,omitempty"` // the newest
	Needs   int    `json:"needs,omitempty"` // the format that the other node must read
	Version string `json:"version,omitempty"`
}

func (n *Node) formats() formats {
	return formats{Reads: n.o.newestFormat, Needs: max(oldestFormat, n.formatInForce()), Version: n.o.Version}
}

// formatInForce is the format that every member must read: that of the last entry of this node's store, or a newer
// one that the store needed before it became part of a cluster.
func (n *Node) formatInForce() int {
	s := n.store.Load()
	return max(s.Position().Format, s.Format())
}

// raiseFormat makes a leader write a newer format once all members can read it. all has their latest status.
func (n *Node) raiseFormat(all map[string]*Status) {
	j := n.journal.Load()
	if j == nil || j.ended.Load() {
		return
	}
	if lowest := n.readByAll(all); lowest > max(1, int(j.format.Load())) {
		j.format.Store(int32(lowest))
		n.log.Info("all nodes read a newer format; new entries use it, and older programs are refused", "format",
			lowest)
	}
}

// readByAll is the newest format that all members can read by their latest status; zero: not all members have
// answered.
func (n *Node) readByAll(all map[string]*Status) int {
	lowest := n.o.newestFormat
	for _, s := range n.servers() {
		st := all[string(s.ID)]
		if st == nil {
			return 0
		}
		lowest = min(lowest, st.Reads)
	}
	return lowest
}

// firstFormatWithin is how long a new leader waits for members to report the formats they read.
const firstFormatWithin = 300 * time.Millisecond

// firstFormat is the format with which a leader starts; at is the last entry of its store. All nodes that found a
// cluster have the same version, so its first leader needs no answers.
func (n *Node) firstFormat(at record.Position) int {
	last := n.formatInForce()
	switch {
	case last >= n.o.newestFormat:
		return last
	case at.Epoch == 0:
		return n.o.newestFormat
	}
	return max(last, n.readByAll(n.askOthers(context.Background(), firstFormatWithin, nil)))
}

// tooOld says which of two programs is too old for the other; empty: neither.
func tooOld(own, other formats, ownID, otherID string) string {
	const text = "the program of node %s (%s) is too old for node %s (%s), which needs format %d: upgrade %s"
	switch {
	case own.Reads < other.Needs:
		return fmt.Sprintf(text, ownID, cmp.Or(own.Version, "unknown"), otherID, cmp.Or(other.Version, "unknown"),
			other.Needs, ownID)
	case other.Reads < own.Needs:
		return fmt.Sprintf(text, otherID, cmp.Or(other.Version, "unknown"), ownID, cmp.Or(own.Version, "unknown"),
			own.Needs, otherID)
	}
	return ""
}
