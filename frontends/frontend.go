package frontends

import (
	"net"

	"broker/core"
)

// Frontend makes sessions that speak one protocol. Open is called on an event loop and must not block.
type Frontend interface {
	Name() string
	Open(Conn) Session

	// Limits bounds what one connection may make the broker hold.
	Limits() Limits

	// Tick is called about four times a second, from one goroutine of the event loop's owner, for what a protocol must
	// do by the clock on its connections: handshake deadlines, missed heartbeats.
	Tick(now core.Instant)
}

// Limits of one connection, in bytes.
type Limits struct {
	// MaxInput is how much a session may leave unread (a half-received packet, or commands behind a blocked one) before
	// the connection is closed.
	MaxInput int

	// MaxOutput is how much may wait for a reader that does not read, or for a commit, before the connection is closed.
	// A session that checks Backpressured stays well below it.
	MaxOutput int
}

// Session is what one connection remembers. Its methods are called on the connection's own
// loop, one at a time; none may block.
type Session interface {
	// Feed takes bytes that the client sent and returns how many of them it used. The rest is offered again, with more
	// behind it, or after Deliver. The slice dies when Feed returns.
	Feed(in []byte) int

	// Deliver is called when the broker has replies for the session: it fetches them with Broker.Do and writes them to
	// the Outbox. It may be called when there is nothing.
	Deliver()

	// Refusal is the protocol's word for a server error, complete with line end or packet header: it takes the place of
	// every held reply once the store has failed.
	Refusal() []byte

	// EOF is called when the client has closed its sending side; input is what Feed had left unread. What the session
	// writes is sent before the connection is closed.
	EOF(input []byte)

	// Closed is called once, when the connection is gone, whoever closed it.
	Closed()
}

// UnsentHandler is a Session that takes back work its client cannot have received. HandleUnsent is called at most once,
// after Closed, when the connection ended before the socket had accepted the last bytes that the session wrote.
type UnsentHandler interface {
	HandleUnsent(bytes int)
}

// Stopper is a Session that has a word for a command that still waits when the server stops. Stop is called at most once,
// before Closed; what it writes is sent before the connection is closed.
type Stopper interface {
	Stop()
}

// Blocker is a Session that leaves input unread while a command waits for its answer. The loop asks when much has come
// meanwhile: it does not read the socket until the answer has come.
type Blocker interface {
	Blocked() bool
}

// HalfCloseWaiter is a Session that may still owe its client a reply when the client has closed its sending side.
// WaitsHalfClosed is then called before EOF, possibly many times: it cancels whatever must not go to a client that may be
// gone and reports whether other replies are still pending. The connection stays open until it returns false; then EOF
// is called.
type HalfCloseWaiter interface {
	WaitsHalfClosed() bool
}

// Conn is the session's side of a connection.
type Conn interface {
	// Out is where the session writes; on its own loop only. The loop sends what it may after each call of the session.
	Out() *Outbox

	// Backpressured reports a slow reader: so many bytes wait to be sent that a session with more to write should keep them
	// for a later call of Deliver, which comes once there is room. Input is paused as well. On the loop only.
	Backpressured() bool

	// Wake asks for a call of Deliver soon. Any goroutine; many wakes may become one call.
	Wake()

	// CloseAfterFlush closes the connection once all that is in Out has been sent; further input is dropped. On the loop only.
	CloseAfterFlush()

	// Abort closes the connection soon, unsent replies lost. Any goroutine.
	Abort()

	RemoteAddr() net.Addr

	// FD is the socket's number, for listings; -1 if there is none.
	FD() int
}
