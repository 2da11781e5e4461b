// Package replica makes a store one of several that hold the same: a member of a cluster. One member leads; its engine
// appends entries to a Journal, which returns once a majority has synced them and the leader's store has them. Consensus,
// elections and the order of the entries are hashicorp/raft's; the entries' meaning, the stores and the folders are ours.
//
//	engine ─▶ journal ─▶ raft log (Log, synced) ══ majority ══▶ fsm ─▶ store (no log of its own)
//
// # Folder
//
// The store is in the folder of the broker, as without a cluster. Beside it:
//
//	raft/node.json       which member of which cluster this folder belongs to; without it the node is new
//	raft/log/            entries, term and vote
//	raft/snapshots/      how far the store was durable when the log was cut; a received copy until it is installed
//	raft/incoming/       a received copy that is being installed; INSTALL beside it says that it is complete
//	raft/outgoing/       copies that are being sent
//
// # Beginning
//
// A node without node.json never starts to vote on its own: it might have voted or acknowledged before its folder was lost.
// It asks all members that its list names:
//
//   - All of them are reachable and new: the one whose store holds something, else the first of the list, founds the
//     cluster. What its store holds is index 1 of the log, which the others get as a copy.
//   - One of them is a member already: the node asks the leader to be admitted. The leader takes its vote away first, which a
//     majority of the others must agree to, brings it up to date, and gives the vote back.
//
// # Large entries
//
// An entry travels in parts of partBytes, since the leader syncs in its main loop and must not miss a heartbeat. It is applied
// with its last part. No snapshot is taken between two parts.
//
// # One leader at a time
//
// What a leader decides without a commit rests on its lease (lease.go): no other member can lead before that is over, and the next one waits
// for that.
//
// # Ready to lead
//
// While a node follows, a Standby of the engine keeps the index of its store (standby.go). A lead takes it; after the lead, and
// with a copy of the store that is installed, a new one begins to read.
package replica
