package hostile

import (
	"net"
	"sync"
	"time"

	"broker/core"
)

// Connections are the open connections of all protocols. Any goroutine may use it.
type Connections struct {
	mu   sync.Mutex // guards open
	open map[endpoint]line
}

// endpoint identifies a connection, and the same connection as a client of the broker.
type endpoint struct{ protocol, address string }

// line is a connection whose output can be delayed and cut.
type line interface {
	// delay delays the next output.
	delay(by time.Duration)

	// cut closes the connection after that share of the next output. onCut, if not nil, gets the number of bytes.
	cut(share float64, onCut func(sent int))
}

// NewConnections makes an empty list.
func NewConnections() *Connections { return &Connections{open: make(map[endpoint]line)} }

func (a *Connections) add(at endpoint, l line) {
	a.mu.Lock()
	a.open[at] = l
	a.mu.Unlock()
}

// remove removes a connection, unless a newer connection has the same address.
func (a *Connections) remove(at endpoint, l line) {
	a.mu.Lock()
	if a.open[at] == l {
		delete(a.open, at)
	}
	a.mu.Unlock()
}

// find returns nil if the connection does not exist.
func (a *Connections) find(at endpoint) line {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.open[at]
}

// due returns the connections on the event loop whose delay has ended.
func (a *Connections) due(now core.Instant) (due []*conn) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, l := range a.open {
		if c, ok := l.(*conn); ok {
			if until := c.until.Load(); until != 0 && until <= int64(now) {
				due = append(due, c)
			}
		}
	}
	return due
}

// Listen wraps a listener for net/http, so that its connections can be delayed and cut.
func (a *Connections) Listen(protocol core.Protocol, l net.Listener) net.Listener {
	return &listener{Listener: l, conns: a, protocol: protocol}
}

type listener struct {
	net.Listener
	conns    *Connections
	protocol core.Protocol
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	real, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &netConn{
		Conn: real, conns: l.conns, at: endpoint{l.protocol.String(), real.RemoteAddr().String()},
		closed: make(chan struct{}),
	}
	l.conns.add(c.at, c)
	return c, nil
}

// netConn is a connection with one request at a time, so the next output is the reply.
type netConn struct {
	net.Conn
	conns *Connections
	at    endpoint

	once   sync.Once // guards the close of closed
	closed chan struct{}

	mu      sync.Mutex // guards the fields below
	wait    time.Duration
	cutting bool
	share   float64
	onCut   func(sent int)
}

// NetConn is the connection below, as that of crypto/tls.
func (c *netConn) NetConn() net.Conn { return c.Conn }

// delay implements line.
func (c *netConn) delay(by time.Duration) {
	c.mu.Lock()
	c.wait = max(c.wait, by)
	c.mu.Unlock()
}

// cut implements line.
func (c *netConn) cut(share float64, onCut func(sent int)) {
	c.mu.Lock()
	if !c.cutting {
		c.cutting, c.share, c.onCut = true, share, onCut
	}
	c.mu.Unlock()
}

// Write implements net.Conn.
func (c *netConn) Write(p []byte) (int, error) {
	c.mu.Lock()
	wait, cutting, share, onCut := c.wait, c.cutting, c.share, c.onCut
	c.wait = 0
	c.mu.Unlock()
	if wait > 0 {
		c.pause(wait)
	}
	if !cutting {
		return c.Conn.Write(p)
	}
	n, err := c.Conn.Write(p[:int(share*float64(len(p)))])
	if onCut != nil {
		onCut(n) // before the client can notice
	}
	_ = c.Close() // the connection ends here in any case
	if err == nil {
		err = net.ErrClosed
	}
	return n, err
}

// pause returns earlier when the connection is closed.
func (c *netConn) pause(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-c.closed:
	}
}

// Close implements net.Conn.
func (c *netConn) Close() error {
	c.once.Do(func() {
		c.conns.remove(c.at, c)
		close(c.closed)
	})
	return c.Conn.Close()
}
