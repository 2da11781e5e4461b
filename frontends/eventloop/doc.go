// Package eventloop moves bytes between sockets and sessions. It is the only package that uses gnet.
//
//	net.Listener ── accept ──┬─▶ gnet loop 1 ─┐                      ┌─ frontends.Session
//	 (bound by Bind)         ├─▶ gnet loop 2 ─┼─▶ conn: input, gates ┤
//	                         └─▶ TLS: reader ─▶ own loop ────────────┘  frontends.Outbox
//
// # Division of work
//
// This package owns the listening sockets, gnet the connections. [Bind] binds all addresses before anything else
// happens, so that an address in use is reported at once and by name; each accepted connection is passed to one of
// gnet's loops. (gnet's own listeners bind one by one while it runs, remove a socket file without checking whether a
// process listens on it, and end all loops when the process runs out of file descriptors. Here the last case costs only
// a pause and a log line.)
//
// Exactly one loop drives a conn, which therefore needs no lock. Received bytes go to Session.Feed directly from the
// loop's read buffer. The conn keeps input that the session leaves unread, so that a message in a thousand pieces is
// copied a bounded number of times. One write sends all output of a turn whose commits are durable.
//
// Wake, from any goroutine, puts a conn on its loop's list of marked conns. The first mark schedules one turn of the
// loop (one eventfd write), which serves all conns that are marked by then. A conn with a lot of work marks itself
// during its own turn and is served after the sockets were polled, so that other conns get their turn. The same applies
// to a conn whose input takes longer than a quarter of a millisecond to process: its input is fed in pieces.
//
// With TLS, crypto/tls must be able to wait for input, so each connection has a reader goroutine. It serves the conn
// itself, in a turn of one of this package's loops. As without TLS, the socket takes as much output as it can at once.
//
// # Limits
//
// Slow readers are throttled: while more than maxUnsent bytes of output are pending, no input is fed and sessions write
// no further pages (frontends.Conn.Backpressured). Further input is kept up to maxHeldInput; beyond that the socket is
// not read until there is room. The same applies to input behind a command that waits (frontends.Blocker). Replies
// caused by other clients are still sent in order.
//
// As a last resort, a connection is closed when its unread input or pending output exceeds frontends.Bounds. One reply
// larger than the limit is allowed if no output was pending before it. If a socket does not take all bytes at once, a
// goroutine writes the rest and then ends.
//
// # How a connection ends
//
//	serving ──▶ leaving ──▶ lingering ──▶ gone
//
// A session is closed when it asks for that, or when the client closes its sending side (half-close) and all pending
// input and output has been processed. For the broker the client is then gone: its leases are released and it gets no
// more jobs. The remaining output is still sent, including replies that wait for a commit (leaving). If some of it
// cannot be sent, the session learns how many bytes (frontends.UnsentHandler). A session may keep a half-closed
// connection open for replies that depend on other clients (frontends.HalfCloseWaiter). It does so for results, until
// the kernel reports that the peer is gone. It cancels parked leases and foreground jobs, because a half-closed
// connection looks the same as a closed one until something is written to it.
//
// After CloseAfterFlush the broker closes its sending side. It then discards input for a moment (lingering), so that a
// reset does not overtake the last reply.
package eventloop
