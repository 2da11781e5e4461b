package frontends

import (
	"time"

	"broker/access"
)

// Admission is what a session knows about the rights of its client.
type Admission struct {
	Rights    Rights
	Principal *access.Principal // of an admitted client
}

// Rights are whether a client has rights.
type Rights uint8

const (
	Admitted Rights = iota // the client has a right on this port
	LoginDue               // the client has no right, and can log in
	NoRights               // the client has no right, and cannot log in now
)

// Limits of a connection whose client has no right.
const (
	MaxInputWithoutRights = 64 << 10         // bytes of unread input
	DefaultLoginFor       = 10 * time.Second // time until the login, where a client can log in
)

// What Dismiss tells a client. The texts have no punctuation, because protocols put them into their own errors.
const (
	DismissInput = "too much input from a client without rights"
	DismissLogin = "no login in time"
	DismissConns = "too many connections of this client"
	DismissBytes = "too much unread input of this client"
)

// Admitter is a Session whose client may have no right yet. The loop limits the input and the time of such a client.
// An admitted client has a share of connections and bytes; the clients of a Session that is no Admitter have those of
// their address.
type Admitter interface {
	// Admission reports what the client may do now. It is called on the loop.
	Admission() Admission

	// Dismiss writes the protocol's error with a text, and closes the connection once all output is sent. The session
	// then ignores further input. It is called at most once, on the loop.
	Dismiss(text string)
}

// LoginTime is the time until the login of a client, where it can log in.
func (b Bounds) LoginTime() time.Duration {
	if b.LoginFor > 0 {
		return b.LoginFor
	}
	return DefaultLoginFor
}
