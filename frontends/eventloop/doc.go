// Package eventloop moves bytes between sockets and sessions. It is the only package that uses gnet.
//
//	net.Listener ── accept ──┬─▶ gnet loop 1 ─┐                      ┌─ frontends.Session
//	 (bound by Bind)         ├─▶ gnet loop 2 ─┼─▶ conn: input, gates ┤
//	                         └─▶ TLS: reader ─▶ own loop ────────────┘  frontends.Outbox
//
// # Who does what
//
// This package owns the listening sockets, gnet the connections. [Bind] binds all addresses before anything else happens,
// so that an address in use is reported at once and by name; each accepted connection is passed to one of gnet's loops.
// (gnet's own listeners bind one by one while it runs, remove a socket file without checking whether a process listens on
// it, and end all loops when the process runs out of file descriptors. Here the latter costs a pause and a log line.)
//
// Exactly one loop drives a conn, which therefore needs no lock. Received bytes go to Session.Feed directly from the
// loop's read buffer. The conn keeps what the session leaves unread, so that a message in a thousand pieces is copied a
// bounded number of times. All output of one turn leaves with one write, as far as the commits it depends on are durable.
//
// Wake, from any goroutine, puts a conn on its loop's list of marked conns. The first mark schedules one turn of the loop
// (one eventfd write), which serves all conns that are marked by then. A conn that marks itself during its own turn,
// because it has more work than is fair to the others, is served after the sockets were polled. The same holds for a conn
// whose input takes longer than a quarter of a millisecond to process: it is fed in pieces.
//
// # Limits
//
// Slow readers are throttled: while more than maxUnsent bytes of output are pending, no input is fed and sessions write
// no further pages (frontends.Conn.Backpressured). Input that arrives meanwhile is kept up to maxHeldInput; beyond that the
// socket is not read until there is room. The same holds for input behind a command that waits (frontends.Blocker).
// Replies caused by other clients are still sent in order.
//
// As the last resort, a connection is closed when unread input or pending output exceeds frontends.Limits. One reply
// larger than the limit is allowed if no output was pending before it. Bytes that a socket does not take at once are
// written by a goroutine that lives only while there is such a backlog.
//
// # How a connection ends
//
//	serving ──▶ leaving ──▶ lingering ──▶ gone
//
// The session is closed when it asks for that or when the client closes its sending side (half-close); a session with
// pending output or input is first served to its end. For the broker the client is gone then: its leases are released and
// no job can be handed to it. What the session has written is still sent, including replies that wait for a commit
// (leaving); the session learns how much could not be sent (frontends.UnsentHandler). A session may keep a half-closed
// connection open for replies that depend on other clients (frontends.HalfCloseWaiter). A parked lease or a foreground job
// is given up, because a half-closed connection cannot be distinguished from a closed one until something is written to it; a
// result is worth waiting for, until the kernel reports that the peer is gone.
//
// After CloseAfterFlush the broker closes its sending side, and discards for a moment what the client still sends
// (lingering), so that a reset does not overtake the last reply.
package eventloop
