package relay

import (
	"net"
	"sync"
)

// tunnelListener is a net.Listener of the connections that other nodes open for requests.
type tunnelListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newTunnelListener() *tunnelListener {
	return &tunnelListener{conns: make(chan net.Conn), closed: make(chan struct{})}
}

func (l *tunnelListener) pass(conn net.Conn) {
	select {
	case l.conns <- tunnelConn{conn}:
	case <-l.closed:
		_ = conn.Close() // never used
	}
}

// Accept implements net.Listener.
func (l *tunnelListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *tunnelListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr implements net.Listener.
func (l *tunnelListener) Addr() net.Addr { return tunnelAddr{} }

// tunnelAddr is the local address of connections between nodes.
type tunnelAddr struct{}

// Network implements net.Addr.
func (tunnelAddr) Network() string { return "tunnel" }

func (tunnelAddr) String() string { return "tunnel" }

// tunnelConn marks a connection as one between nodes.
type tunnelConn struct{ net.Conn }

// LocalAddr implements net.Conn.
func (tunnelConn) LocalAddr() net.Addr { return tunnelAddr{} }
