package replica

import (
	"cmp"
	"context"
	"fmt"
	"time"
)

// Nodes are upgraded one after the other, so a leader writes entries of the newest format that all members read:
//
//   - Every node says in its greetings and its status which format it reads at most.
//   - A leader begins with the format of the last entry of its store, or, where all members say in time that they read a newer one, with
//     that: the first entries of a new cluster lack nothing. It goes on to a newer one once all members, those without a
//     vote too, have said in the same round that they read it; one that does not answer may be an older program.
//   - An entry says its format, and the store of every node keeps that of the last entry. It never goes back within a cluster: a node
//     whose program is too old for it is refused, its store is not opened by that program, and an entry that it gets stops it.

// oldestFormat is what other nodes must read at least. Raise it when support for an old one is dropped.
const oldestFormat = 1

// formats are what a node says of itself in a greeting.
type formats struct {
	Reads   int    `json:"reads,omitempty"` // the newest; zero: a program that did not say, which reads 1
	Needs   int    `json:"needs,omitempty"` // what the other node must read
	Version string `json:"version,omitempty"`
}

func (n *Node) formats() formats {
	return formats{Reads: n.o.newestFormat, Needs: max(oldestFormat, n.formatInForce()), Version: n.o.Version}
}

// formatInForce is the format of the last entry of this node's store.
func (n *Node) formatInForce() int { return max(1, n.store.Load().Position().Format) }

// raiseFormat makes a leader write a newer format once all members read it. all is what they have just said of themselves.
func (n *Node) raiseFormat(all map[string]*Status) {
	j := n.journal.Load()
	if j == nil || j.ended.Load() {
		return
	}
	if lowest := n.readByAll(all); lowest > max(1, int(j.format.Load())) {
		j.format.Store(int32(lowest)) //nolint:gosec // at most record.NewestFormat
		n.log.Info("all nodes read a newer format, entries have it from now on; older programs are refused", "format", lowest)
	}
}

// readByAll is the newest format that all members have just said they read; zero: not all of them have answered.
func (n *Node) readByAll(all map[string]*Status) int {
	lowest := n.o.newestFormat
	for _, s := range n.servers() {
		said := all[string(s.ID)]
		if said == nil {
			return 0
		}
		lowest = min(lowest, cmp.Or(said.Reads, 1))
	}
	return lowest
}

// firstFormatWithin is how long a new leader waits for what the members say of the formats that they read.
const firstFormatWithin = 300 * time.Millisecond

// firstFormat is the format with which a leader begins, whose store's last entry has the given one.
func (n *Node) firstFormat(last int) int {
	if last >= n.o.newestFormat {
		return last
	}
	return max(last, n.readByAll(n.askOthers(context.Background(), firstFormatWithin, nil)))
}

// tooOld says why two nodes cannot work together; empty: they can.
func tooOld(own, other formats, ownID, otherID string) string {
	const text = "the program of node %s (%s) is too old for node %s (%s), which needs format %d: upgrade %s"
	switch {
	case cmp.Or(own.Reads, 1) < other.Needs:
		return fmt.Sprintf(text, ownID, cmp.Or(own.Version, "unknown"), otherID, cmp.Or(other.Version, "unknown"), other.Needs, ownID)
	case cmp.Or(other.Reads, 1) < own.Needs:
		return fmt.Sprintf(text, otherID, cmp.Or(other.Version, "unknown"), ownID, cmp.Or(own.Version, "unknown"), own.Needs, otherID)
	}
	return ""
}
