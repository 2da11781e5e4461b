package frontends

import (
	"net"
	"time"

	"broker/core"
)

// Frontend makes sessions that speak one protocol. Open is called on an event loop and must not block.
type Frontend interface {
	Name() string
	Open(Conn) Session

	// Bounds limits the memory that one connection may use.
	Bounds() Bounds

	// Tick is called about four times a second, always from the same goroutine. A protocol uses it for deadlines of its
	// connections: handshakes, missed heartbeats.
	Tick(now core.Instant)
}

// PauseAt is the amount of output, in bytes, after which Feed returns, so that the loop sends it and checks the limits.
const PauseAt = 256 << 10

// Bounds of one connection: its memory in bytes, and its time to log in.
type Bounds struct {
	// MaxInput limits the unread input of a session: a partial packet, or commands behind a blocked one. Above it the
	// connection is closed.
	MaxInput int

	// MaxOutput limits the output that waits for a slow reader or a commit. Above it the connection is closed. A
	// session that checks Backpressured stays well below it.
	MaxOutput int

	// LoginFor is the time until the login of a client, where it can log in; zero: DefaultLoginFor.
	LoginFor time.Duration
}

// Session is the state of one connection. Its methods are called on the connection's own loop, one at a time, and must
// not block.
type Session interface {
	// Feed takes input from the client and returns the number of bytes that it used. The loop offers the rest again
	// when more input arrives, or after Deliver. The slice is valid only until Feed returns.
	Feed(in []byte) int

	// Deliver is called when the broker has replies for the session. It fetches them with Broker.Do and writes them to
	// the Outbox. It may also be called when there are no replies.
	Deliver()

	// Refusal is the protocol's complete reply for a server error. It replaces every held reply after the store has
	// failed.
	Refusal() []byte

	// EOF is called when the client has closed its sending side. input is the rest that Feed left unread. Output of the
	// session is sent before the connection is closed.
	EOF(input []byte)

	// Closed is called once, after either side has closed the connection.
	Closed()
}

// UnsentHandler is a Session that takes back work which its client cannot have received. HandleUnsent is called at most
// once, after Closed, if the connection ended before the socket accepted all output of the session.
type UnsentHandler interface {
	HandleUnsent(bytes int)
}

// Stopper is a Session that answers waiting commands when the server stops. Stop is called at most once, before Closed.
// Its output is sent before the connection is closed.
type Stopper interface {
	Stop()
}

// Blocker is a Session that leaves input unread while a command waits for its answer. If a lot of input has
// accumulated, the loop calls Blocked and stops reading the socket until the session has its answer.
type Blocker interface {
	Blocked() bool
}

// HalfCloseWaiter is a Session that may still owe its client a reply when the client has closed its sending side.
// WaitsHalfClosed is then called before EOF, possibly many times. It cancels commands whose answer must not go to a
// client that may be gone, and reports whether other replies are still pending. The connection stays open until it
// returns false; then EOF is called.
type HalfCloseWaiter interface {
	WaitsHalfClosed() bool
}

// Conn is the session's side of a connection.
type Conn interface {
	// Out is the outbox of the session. Use it on the session's own loop only. The loop sends after each call of the
	// session.
	Out() *Outbox

	// Backpressured reports a slow reader: a lot of output waits to be sent. The session should keep further output for
	// a later call of Deliver, which comes once there is room. Input is paused too. Call it on the loop only.
	Backpressured() bool

	// Wake requests a call of Deliver soon. Any goroutine may call it. Several wakes may cause one call.
	Wake()

	// CloseAfterFlush closes the connection once all output is sent. Further input is dropped. Call it on the loop
	// only.
	CloseAfterFlush()

	// Abort closes the connection soon and drops unsent replies. Any goroutine may call it.
	Abort()

	RemoteAddr() net.Addr

	// FD is the file descriptor of the socket, for lists of connections; -1 if there is none.
	FD() int
}
