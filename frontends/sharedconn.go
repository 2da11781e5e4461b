package frontends

import (
	"net"
	"time"

	"broker/access"
)

// SharedConn is a connection that another server serves, such as net/http's, and that has a share of the limits of
// connections and bytes. Any goroutine may use it.
type SharedConn interface {
	// Admit gives the connection to the principal of a request that was authenticated. An error says that the principal
	// has its share of connections already.
	Admit(*access.Principal) error

	// Hold counts bytes that a request holds: for the principal that the connection was given to, before for its
	// address. It reports whether the client may hold them.
	Hold(bytes int) (release func(), ok bool)

	// Idle ends the connection after a time in which neither Busy nor Admit is called. It has no effect once the
	// connection was admitted.
	Idle(most time.Duration)
	Busy()
}

// SharedConnOf finds the SharedConn below a connection; nil: there is none.
func SharedConnOf(nc net.Conn) SharedConn {
	for {
		if s, ok := nc.(SharedConn); ok {
			return s
		}
		above, ok := nc.(interface{ NetConn() net.Conn })
		if !ok {
			return nil
		}
		nc = above.NetConn()
	}
}
