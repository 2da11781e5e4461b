// Package replica replicates a store to several nodes: the members of a cluster. One member leads; its engine appends
// entries to a Journal. Append returns once a majority has synced the entry and the leader's store has applied it.
// hashicorp/raft does consensus, elections and the order of the entries. This package defines the meaning of the
// entries, the stores and the folders.
//
//	engine ─▶ journal ─▶ raft log (Log, synced) ══ majority ══▶ fsm ─▶ store (no log of its own)
//
// # Folder
//
// The store is in the folder of the broker, as without a cluster. Beside it:
//
//	raft/node.json       which member of which cluster this folder belongs to; without it the node is new
//	raft/log/            entries, term and vote
//	raft/snapshots/      last durable entry of the store when the log was cut; a received copy until it is installed
//	raft/INSTALL         the newest received copy replaces the store
//	raft/outgoing/       copies that are being sent
//
// # Beginning
//
// A node without node.json never starts to vote on its own: it might have voted or acknowledged entries before its
// folder was lost. It asks all members in its list:
//
//   - If all of them are reachable and new, one of them founds the cluster: the node whose store has content,
//     otherwise the first in the list. The content of its store is index 1 of the log, which the other nodes get as a
//     copy.
//   - If one of them is already a member, the node asks the leader to be admitted. The leader first takes the node's vote
//     away, which a majority of the other members must accept, brings the node up to date, and gives the vote back.
//
// # Large entries
//
// An entry is sent in parts of partBytes, because the leader syncs in its main loop and must not miss a heartbeat. The
// entry is applied when its last part is. No snapshot is taken between two parts.
//
// # Copies
//
// On the leader, the goroutine of one member sends the copy, beside raft's main loop. The member gets it in its main
// loop, where raft reads a snapshot to its end before it reads the next call: until the copy is installed, the member
// answers heartbeats, and does not vote. It could not win an election with its old log, and the copy ends with the
// connection of a leader that dies, or when no more of it arrives for a while (sink.watch).
//
// A copy may be newer than the index of its snapshot, which is that of the last flush; the member skips the entries
// that it has. With the index of its checkpoint fewer entries would be sent, but raft stores a snapshot with the list
// of members at its index and does not give the list of any other index.
//
// # One leader at a time
//
// Decisions that a leader makes without a commit are valid because of its lease (lease.go): no other member leads
// before the lease ends, and the next leader waits for that.
//
// # Ready to lead
//
// While a node follows, a Standby of the engine keeps the index of its store (standby.go). When the node becomes the
// leader, its engine takes that index. After it stops leading, and after a copy of the store is installed, a new
// Standby starts to read.
package replica
