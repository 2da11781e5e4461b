package eventloop

import (
	"io"
	"net"

	"github.com/rs/zerolog"
)

// refusesTLS reports that the first bytes on a port without TLS are a TLS handshake, and logs it. No protocol begins
// with these bytes. A server would take them for the beginning of a request and wait for its end.
func refusesTLS(first []byte, log zerolog.Logger, name, remote string) bool {
	if !isHandshake(first) {
		return false
	}
	log.Info().Str("frontend", name).Str("remote", remote).
		Msg("connection closed, the client uses tls on a port without tls")
	return true
}

// isHandshake reports whether bytes begin with a TLS record of type handshake (22) and version 3 (RFC 8446, section
// 5.1).
func isHandshake(b []byte) bool { return len(b) > 1 && b[0] == 22 && b[1] == 3 }

// PlainListener makes the connections of a port without TLS end at once if their client uses TLS. It is for sockets
// that another server serves, such as net/http's.
func PlainListener(ln net.Listener, name string, log zerolog.Logger) net.Listener {
	return &plainListener{ln, name, log}
}

type plainListener struct {
	net.Listener
	name string
	log  zerolog.Logger
}

// Accept implements net.Listener.
func (l *plainListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &plainConn{Conn: c, log: l.log, name: l.name}, nil
}

// plainConn is a connection without TLS that another server reads.
type plainConn struct {
	net.Conn
	log   zerolog.Logger
	name  string
	heard bool // some bytes were read
}

// Read implements net.Conn. It closes the connection if its first bytes are a TLS handshake: net/http reads on after an
// end of the input, to find out which version of HTTP the client speaks.
func (c *plainConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 && !c.heard {
		c.heard = true
		if refusesTLS(p[:n], c.log, c.name, c.RemoteAddr().String()) {
			_ = c.Conn.Close() // nothing was sent
			return 0, io.EOF
		}
	}
	return n, err
}

// NetConn is for frontends.SharedConnOf.
func (c *plainConn) NetConn() net.Conn { return c.Conn }

// CloseWrite is for net/http, which ends its side before it closes a connection that is still sending.
func (c *plainConn) CloseWrite() error {
	if w, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return w.CloseWrite()
	}
	return nil
}
