package eventloop

import (
	"crypto/tls"
	"net"
	"sync"

	"broker/access"
)

// Handoff is a net.Listener for another server, such as net/http's. This package accepts, counts and limits the
// connections as usual; the other server reads and writes them. Close the Handoff before the Server stops.
type Handoff struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

// NewHandoff makes a Handoff for Options.
func NewHandoff() *Handoff { return &Handoff{conns: make(chan net.Conn), closed: make(chan struct{})} }

// Accept implements net.Listener.
func (h *Handoff) Accept() (net.Conn, error) {
	select {
	case c := <-h.conns:
		return c, nil
	case <-h.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (h *Handoff) Close() error {
	h.once.Do(func() { close(h.closed) })
	return nil
}

// Addr implements net.Listener.
func (h *Handoff) Addr() net.Addr { return handoffAddr{} }

// handoffAddr is the address of a listener that has no socket.
type handoffAddr struct{}

func (handoffAddr) Network() string { return "handoff" }

func (handoffAddr) String() string { return "handoff" }

// pass gives a connection to the other server, or closes it.
func (h *Handoff) pass(c net.Conn) {
	select {
	case h.conns <- c:
	case <-h.closed:
		_ = c.Close() // never used
	}
}

// handOff passes a connection on. It counts as open until it is closed.
func (s *Server) handOff(nc net.Conn, remote net.Addr, b bound, g *group, p *place) {
	p.guest(func() {
		g.dismissed.Add(1)
		_ = nc.Close() // the other server sees the end
	})
	c := net.Conn(&handedConn{Conn: nc, remote: remote, place: p, release: func() { s.leave(g, p) }})
	if b.TLS != nil {
		c = tls.Server(c, b.TLS())
	}
	g.handoff.pass(c)
}

// handedConn is a connection that was passed on.
type handedConn struct {
	net.Conn
	remote  net.Addr
	place   *place
	once    sync.Once
	release func()
}

// Admit gives the connection to the principal of a request that was authenticated. The error says that the principal
// has its share of connections.
func (c *handedConn) Admit(p *access.Principal) error { return c.place.admit(p) }

// RemoteAddr implements net.Conn.
func (c *handedConn) RemoteAddr() net.Addr { return c.remote }

// Close implements net.Conn.
func (c *handedConn) Close() error {
	c.once.Do(c.release)
	return c.Conn.Close()
}
