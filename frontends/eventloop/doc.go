// Package eventloop moves bytes between sockets and sessions. It alone knows gnet.
//
//	net.Listener ── accept ──┬─▶ gnet loop 1 ─┐                      ┌─ frontends.Session
//	 (bound by Bind)         ├─▶ gnet loop 2 ─┼─▶ conn: input, gates ┤
//	                         └─▶ TLS: reader ─▶ own loop ────────────┘  frontends.Outbox
//
// # Who does what
//
// Listening sockets are ours, the connections are gnet's: [Bind] takes all addresses before anything else happens, so
// that a taken port is known by its name at once; each accepted connection is handed to one of gnet's loops. (gnet's own
// listeners would bind one by one inside its run, take a path for a socket away without asking whether somebody listens
// there, and end all loops when the process is out of file descriptors. Here that costs a pause and a log line.)
//
// A conn is driven by exactly one loop and needs no lock. Bytes that arrive go to Session.Feed straight from the loop's
// read buffer; what the session leaves is kept by the conn, so that a packet that comes in a thousand pieces is copied
// a bounded number of times. Everything the sessions wrote leaves with one write per turn, as far as the commits it
// rests on are on disk.
//
// Wake, from any goroutine, puts a conn on its loop's list of marked ones; the first mark schedules one turn of the loop
// (one eventfd write), which serves all conns that were marked until it runs. A conn that marks itself during its own
// turn, since it has more to do than is good for others, is served when the sockets had their turn. So is one that has
// sent more input than is worked off in a quarter of a millisecond: it is fed in pieces, and the rest waits.
//
// # Limits
//
// Who takes less than it asks for is held back: while more than a mark is on its way out, no input is fed and sessions
// write no further pages (frontends.Conn.Backpressured); input that comes meanwhile is kept up to a mark of its own, then the
// socket is not read until there is room. The same holds for input behind a command that waits (frontends.Blocker).
// Replies that others cause still go out in order.
//
// Input that the session does not take and output that the client does not take end the connection at
// frontends.Limits, as the last resort. One reply that is larger than the limit passes if nothing waited before it. What
// a socket does not take at once is written by a goroutine that lives only while there is such a backlog.
//
// # How a connection ends
//
//	serving ──▶ leaving ──▶ lingering ──▶ gone
//
// When the session shuts its connection, or the client closes its sending side (half-close), the session is closed at
// once, or when a client that was held back has had what it asked for: for the broker the client is gone, leases it held
// are free and nothing can be handed to it. What the session had written still leaves, replies that wait for a commit
// included (leaving); what has not left when the connection is gone is told to the session (frontends.UnsentHandler). Answers
// that come by waiting for other people's jobs are the session's to give up (frontends.HalfCloseWaiter): a parked lease or a
// foreground job is, for a half-closed connection cannot be told from a closed one until something is written to it; a
// result is worth waiting for, until the kernel says that the peer is gone.
// After a CloseAfterFlush the client is told that no more will come and what it still sends is thrown away for a moment
// (lingering), so that a reset does not overtake the last reply.
package eventloop
