package replica

import (
	"cmp"
	"fmt"
)

// Formats of what nodes send each other and write to their logs. A node reads all up to newestFormat; those that a cluster is
// upgraded to together write one only when all of them read it. Raise oldestFormat when support for an old one is dropped.
const (
	newestFormat = 1
	oldestFormat = 1 // other nodes must read at least this
)

// formats are what a node says of itself in a greeting.
type formats struct {
	Reads   int    `json:"reads,omitempty"` // newestFormat; zero: a program that did not say, which reads 1
	Needs   int    `json:"needs,omitempty"` // oldestFormat
	Version string `json:"version,omitempty"`
}

func (n *Node) formats() formats {
	return formats{Reads: newestFormat, Needs: oldestFormat, Version: n.o.Version}
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
