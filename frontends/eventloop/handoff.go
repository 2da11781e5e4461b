package eventloop

import (
	"crypto/tls"
	"net"
	"sync"
	"sync/atomic"
	"time"

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
	c := net.Conn(&handedConn{Conn: nc, remote: remote, srv: s, group: g, place: p})
	if b.TLS != nil {
		c = tls.Server(c, b.TLS())
	} else {
		c = &plainConn{Conn: c, log: s.log, name: g.name}
	}
	g.handoff.pass(c)
}

// handedConn is a connection that was passed on. It implements frontends.SharedConn.
type handedConn struct {
	net.Conn
	remote  net.Addr
	srv     *Server
	group   *group
	place   *place
	once    sync.Once
	current atomic.Pointer[access.Principal] // whose place it has; nil: nobody's yet
}

// Admit implements frontends.SharedConn.
func (c *handedConn) Admit(p *access.Principal) error {
	if c.current.Load() == p {
		return nil
	}
	if err := c.place.admit(p); err != nil {
		return err
	}
	c.current.Store(p)
	return nil
}

// Hold implements frontends.SharedConn.
func (c *handedConn) Hold(bytes int) (release func(), ok bool) {
	pool, holder := c.srv.pools.guests, access.AddressHolder(c.place.remote)
	if p := c.current.Load(); p != nil {
		pool, holder = c.srv.pools.buffers, access.ClientHolder(p, c.place.remote)
	}
	if pool.Take(holder, bytes) != nil {
		return nil, false
	}
	return func() { pool.Return(holder, bytes) }, true
}

// Idle implements frontends.SharedConn.
func (c *handedConn) Idle(most time.Duration) { c.place.port.Idle(most) }

// Busy implements frontends.SharedConn.
func (c *handedConn) Busy() { c.place.port.Busy() }

// RemoteAddr implements net.Conn.
func (c *handedConn) RemoteAddr() net.Addr { return c.remote }

// Close implements net.Conn.
func (c *handedConn) Close() error {
	c.once.Do(func() { c.srv.leave(c.group, c.place) })
	return c.Conn.Close()
}
