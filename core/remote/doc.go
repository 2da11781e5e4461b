// Package remote lets the clients of a node that follows use the broker of the leader. A Broker is the leader's broker
// over one connection between the two nodes, a link; the leader's Server opens a client of its own broker for each
// client of the node.
//
//	node that follows                           leader
//	session ─▶ Broker.Do ── msgDo ────────────▶ Server ─▶ core.Broker.Do
//	        ◀───────────── msgDone ────────────   │
//	Wake    ◀───────────── msgPush ────────────   └─ Wake: replies that came later, or a commit is done
//
// The operations of one call are one message; those of many clients are under way at once, and are written together.
// Each write of the leader begins with its newest commit, so that a reply which waits for a commit leaves when the
// leader's would. Pushed replies that the client has not fetched are given back when it cancels its waits or leaves:
// they have not been handed out. A client gets no more of them before it has fetched those, so that a slow one fills no
// memory.
//
// Beside operations, the owners of both sides speak to each other: what the front-ends of all nodes share and the core
// does not know is at the leader.
//
// When a link ends, its clients end on both sides. The connections of clients are closed before any call returns: what
// was under way may or may not apply, and no client is told either.
//
//	coder.go     numbers, texts, bytes
//	values.go    jobs, grants, failures, errors
//	ops.go       operations
//	replies.go   replies
//	link.go      messages, their bounds, hello, beats
//	broker.go    the side of the node that follows
//	time.go      the leader's time
//	server.go    the side of the leader
//	owner.go     questions, answers and what one owner tells the other
package remote
