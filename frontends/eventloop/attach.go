package eventloop

import (
	"crypto/tls"
	"net"
)

// Socket is a bound socket of a Listener.
type Socket struct {
	Listener
	Socket net.Listener
}

// Sockets returns the sockets that Bind has bound. A caller that accepts connections itself uses them, and passes the
// connections to a Server made by Attach. StopAccepting closes the sockets.
func (s *Server) Sockets() []Socket {
	all := make([]Socket, len(s.bound))
	for i, b := range s.bound {
		all[i] = Socket{b.Listener, b.ln}
	}
	return all
}

// Attach creates a Server without listening sockets. It serves the connections that Pass gets.
func Attach(listeners []Listener) *Server {
	s := newServer()
	s.attached = true
	for _, l := range listeners {
		s.bound = append(s.bound, bound{Listener: l})
	}
	return s
}

// Pass serves a connection of a front-end and takes ownership of it. remote is the address of the client, if the client
// is not the other end of the connection. If the front-end does not exist, Pass closes the connection and returns
// false.
func (s *Server) Pass(name string, nc net.Conn, remote net.Addr) bool {
	g := s.groups[name]
	if g == nil || s.stopping.Load() {
		_ = nc.Close() // never used
		return false
	}
	if remote == nil {
		remote = nc.RemoteAddr()
	}
	var b bound
	for _, l := range s.bound {
		if l.Name == name {
			b = l
			break
		}
	}
	if !b.admits(remote) {
		_ = nc.Close() // never used
		return true
	}
	s.admit(nc, remote, b, g)
	return true
}

// addSecuredConn serves a connection between nodes that already uses TLS, like a connection of a TLS listener.
func (s *Server) addSecuredConn(tc *tls.Conn, c *conn) {
	w := &streamTransport{nc: tc.NetConn(), stream: tc, tc: tc, drained: c.Wake, goOn: make(chan struct{}, 1)}
	s.startStream(w, c)
}
