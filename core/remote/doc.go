// Package remote lets the clients of a node use the broker of the leader. A Broker is the leader's broker over one
// connection between the two nodes at a time, a link; the leader's Server opens a client of its own broker for each
// client of the node.
//
//	node that follows                           leader
//	session ─▶ Broker.Do ── msgDo ────────────▶ Server ─▶ core.Broker.Do
//	        ◀───────────── msgDone ────────────   │
//	Wake    ◀───────────── msgPush ────────────   └─ Wake: replies that came later
//	Durable ◀───────────── msgCommit ──────────   └─ Durable: a commit is done
//
// The operations of one call are one message; those of many clients are under way at once, and are written together.
// Each write of the leader begins with its newest commit, so that a reply which waits for a commit leaves when the
// leader's would: the node knows which of its clients wait for it, and wakes them. Replies leave before those of the
// next commit, however much there is to read: with a leader that is killed they are lost, although the next one has
// what they answer. Pushed replies that the client has not fetched are given back when it cancels its waits or leaves:
// they have not been handed out. A client gets no more of them before it has fetched those, so that a slow one fills no
// memory.
//
// Beside operations, the owners of both sides speak to each other: what the front-ends of all nodes share and the core
// does not know is at the leader. With each link the node's front-ends first register what the leader is to know of
// their clients; questions without an answer are asked again behind that.
//
// When a link ends, its clients end at the leader: a node that has died leaves no leases behind.
//
// # When the leader changes
//
// The clients of the node stay. The next link registers them with the next leader, which may be this node itself: then
// the link is a pipe, so that there is one way only.
//
//	node                                                   leader, before it serves
//	clients, queues, listeners, foreground jobs ─────────▶ its history: term, last commit, last message of the node
//	what front-ends register, their questions ───────────▶
//	joins, leases ─ kept until all nodes have come here ─▶ or 100 ms are over; then what nobody resumed ends
//	                                           ◀────────── serves
//	what is lost, what waits, what had no answer ────────▶
//
// For that the node keeps of each client what it has registered, what it waits for, its leases and the jobs whose
// result it waits for (kept.go), and the leases of clients that have left (left.go). Whether something under way has
// happened is not guessed:
//
//   - A reply depends on a commit, which the next leader has or has not: leaders count their commits on from each other.
//     A reply whose commit is lost has not left the node. Its operation is asked again, a submission under its number;
//     if the reply is another one, the connection is closed. Until all of this is committed, no commit is told to
//     clients, and what they see of commits is shifted so that old and new numbers do not mix.
//   - An operation without a reply is in the history or not: in front of what changes something, the leader stores the
//     number of the node's message, in the same commit or an earlier one. If it is not there, the message is sent
//     again; if it is, nobody knows the reply, and the connection is closed. If the number of a later message is
//     there, so is all of this one: then what a client ends that waits for no reply to it is done.
//
// fate.go has the rules for each operation. A job that only the memory of the leader had comes back with the number
// that its client and its worker know: from the client's node, since it has the body. Its lease comes from the worker's
// node.
//
//	coder.go     numbers, texts, bytes
//	values.go    jobs, grants, failures, errors
//	ops.go       operations
//	replies.go   replies
//	link.go      messages, their bounds, hello, beats
//	broker.go    clients of a node
//	kept.go      what a client has at the leader
//	left.go      the leases of clients that have left
//	uplink.go    a link to a leader
//	takeover.go  how clients continue at the next leader
//	pairs.go     which operations replies answer
//	fate.go      what becomes of each operation then
//	time.go      the leader's time
//	server.go    the side of the leader
//	owner.go     questions, answers and what one owner tells the other
package remote
