package eventloop

import (
	"net"

	"broker/access"
	"broker/frontends"
)

// DefaultBuffers is the default of Options.Buffers.
const DefaultBuffers = 1 << 30

// Sizes of what is counted in the pools of bytes.
const (
	uncounted  = 4 << 10  // of each connection, which are not counted
	blockBytes = 32 << 10 // the rest is counted in blocks
	largest    = 4        // inputs of the largest size fit into the pool, so that any client can send one
	guestPart  = 16       // guests share this part of the pool
)

// pools are what the connections of all front-ends share.
type pools struct {
	sockets *access.Connections
	buffers *access.Pool // bytes of unread input and unsent output of admitted clients
	guests  *access.Pool // the same of clients without a right
}

func newPools(o Options) pools {
	size := o.Buffers
	if size <= 0 {
		size = DefaultBuffers
	}
	for _, f := range o.Frontends {
		size = max(size, largest*f.Bounds().MaxInput)
	}
	return pools{
		sockets: access.NewConnections(access.ConnectionOptions{Size: o.MaxSockets}),
		buffers: access.NewPool(size),
		guests:  access.NewPool(size / guestPart),
	}
}

// place is what a connection has of the limits of connections: one of its front-end and one descriptor.
type place struct {
	port, socket *access.Connection
	remote       string
}

// enter counts a new connection; nil: a limit is reached.
func (s *Server) enter(g *group, remote net.Addr) *place {
	from := ""
	if remote != nil {
		from = remote.String()
	}
	port := g.conns.Enter(from)
	if port == nil {
		return nil
	}
	socket := s.pools.sockets.Enter(from)
	if socket == nil {
		port.Leave()
		return nil
	}
	g.open.Add(1)
	return &place{port: port, socket: socket, remote: from}
}

// guest lets newcomers displace the connection.
func (p *place) guest(close func()) {
	p.port.Guest(close)
	p.socket.Guest(close)
}

// admit gives the connection to a principal.
func (p *place) admit(of *access.Principal) error {
	if err := p.port.Admit(access.HolderOf(of, p.remote)); err != nil {
		return err
	}
	return p.socket.Admit(access.ClientHolder(of, p.remote))
}

// leave ends the connection.
func (s *Server) leave(g *group, p *place) {
	p.port.Leave()
	p.socket.Leave()
	g.open.Add(-1)
}

// secondSocket counts the descriptor of a backlog; nil: there is none for this client.
func (c *conn) secondSocket() *access.Connection {
	second := c.srv.pools.sockets.Enter(c.place.remote)
	if second == nil || !c.admitted {
		return second
	}
	if second.Admit(c.holder) != nil {
		second.Leave()
		return nil
	}
	return second
}

// meetClient gives a connection to its client once that is known. Until then it is a guest.
func (c *conn) meetClient() {
	a := c.admission()
	if a.Rights != frontends.Admitted {
		return
	}
	if c.place.admit(a.Principal) != nil {
		c.dismiss("connections", frontends.DismissConns)
		return
	}
	if c.charged > 0 {
		c.srv.pools.guests.Return(c.holder, c.charged)
		c.charged = 0
	}
	c.holder, c.admitted = access.ClientHolder(a.Principal, c.place.remote), true
}

// displaced ends a guest, because a client with fewer connections comes. Any goroutine may call it.
func (c *conn) displaced() {
	c.group.dismissed.Add(1)
	c.Abort()
}

// overShare ends a connection whose client may not hold its bytes.
func (c *conn) overShare() {
	if _, knows := c.session.(frontends.Admitter); knows && !c.closeRequested && c.in.len() > c.unsent {
		c.dismiss("shared_bytes", frontends.DismissBytes)
		return
	}
	c.group.dismissed.Add(1)
	c.logCutOff("shared_bytes", c.in.len()+c.unsent)
	c.drop()
}

// bytesPool is where the bytes of the connection count.
func (c *conn) bytesPool() *access.Pool {
	if c.admitted {
		return c.srv.pools.buffers
	}
	return c.srv.pools.guests
}

// charge counts the bytes that the connection holds, and reports whether its client may hold them.
func (c *conn) charge() bool {
	held, want := c.in.len()+c.unsent, 0
	if held > uncounted {
		want = (held + blockBytes - 1) / blockBytes * blockBytes
	}
	switch {
	case want > c.charged:
		if c.bytesPool().Take(c.holder, want-c.charged) != nil {
			return false
		}
		c.charged = want
	case want == 0 && c.charged > 0, want < c.charged/2:
		c.bytesPool().Return(c.holder, c.charged-want)
		c.charged = want
	}
	return true
}

// release gives everything back.
func (c *conn) release() {
	if c.charged > 0 {
		c.bytesPool().Return(c.holder, c.charged)
		c.charged = 0
	}
	c.srv.leave(c.group, c.place)
}
