package wiretap

import (
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Kind is the kind of an event on a connection.
type Kind uint8

// The kinds of events. A connection is opened once and closed once. No events follow the close.
const (
	Opened Kind = iota
	FromClient
	FromServer
	Closed
)

// Event is an event at a proxy. Data belongs to the proxy.
type Event struct {
	At   time.Duration // since the proxy began
	Conn int
	Kind Kind
	Data []byte
}

// Watcher receives the events of a proxy. Events of one direction of a connection come in order. Watch is called before
// the bytes are passed on, so that it sees every request before its reply.
type Watcher interface{ Watch(Event) }

// Proxy passes connections on to a server.
type Proxy struct {
	Server  string // HOST:PORT
	Watcher Watcher

	// Join serves a client instead of the default, which passes all bytes on. The traffic with server is watched. After
	// Join has returned, neither connection may be used. It may be nil.
	Join func(client, server net.Conn)

	// Unreachable is called when the server does not accept connections, but not for each client. It may be nil.
	Unreachable func(error)

	// Restarted is called when the server accepts connections again, before the watcher sees the first of them. To
	// notice this, the proxy keeps a connection of its own. It may be nil. A server that is back within the time of one
	// attempt to connect is not noticed.
	Restarted func()

	began  time.Time
	number atomic.Int64
	warned atomic.Int64 // time.Duration since began of the last call of Unreachable; zero: none

	mu    sync.Mutex // guards conns, ended and down
	conns map[net.Conn]bool
	ended bool
	down  bool          // the server does not accept connections
	stop  chan struct{} // closed when ended
	work  sync.WaitGroup
}

// dialWithin limits the time to connect to the server.
const dialWithin = 10 * time.Second

// Serve accepts connections until the listener is closed, and then closes all of them.
func (p *Proxy) Serve(ln net.Listener) error {
	p.began, p.conns, p.stop = time.Now(), make(map[net.Conn]bool), make(chan struct{})
	if p.Restarted != nil {
		p.work.Go(p.stayConnected)
	}
	for {
		conn, err := ln.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			p.closeAll()
			return nil
		case err != nil: // for example no free descriptor
			time.Sleep(10 * time.Millisecond)
			continue
		}
		p.work.Go(func() { p.serve(conn) })
	}
}

func (p *Proxy) closeAll() {
	p.mu.Lock()
	p.ended = true
	close(p.stop)
	for c := range p.conns {
		_ = c.Close() // ends its goroutines
	}
	p.mu.Unlock()
	p.work.Wait()
}

// keep registers a connection, which closeAll closes.
func (p *Proxy) keep(c net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		_ = c.Close() // not used
		return
	}
	p.conns[c] = true
}

func (p *Proxy) forget(c net.Conn) {
	_ = c.Close() // both directions have ended
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
}

func (p *Proxy) serve(client net.Conn) {
	p.keep(client)
	defer p.forget(client)
	server, err := p.dial()
	if err != nil {
		return // the client sees a closed connection
	}
	defer p.forget(server)
	number := int(p.number.Add(1))
	p.watch(number, Opened, nil)
	if p.Join != nil {
		p.Join(client, &watched{Conn: server, p: p, number: number})
	} else {
		var up sync.WaitGroup
		up.Go(func() { p.pass(server, client, number, FromClient) })
		p.pass(client, server, number, FromServer)
		up.Wait()
	}
	p.watch(number, Closed, nil)
}

// dial connects to the server.
func (p *Proxy) dial() (net.Conn, error) {
	server, err := net.DialTimeout("tcp", p.Server, dialWithin)
	p.mu.Lock()
	back := p.down && err == nil
	if p.down = err != nil; back && p.Restarted != nil {
		p.Restarted()
	}
	p.mu.Unlock()
	if err != nil {
		p.unreachable(err)
		return nil, err
	}
	p.keep(server)
	return server, nil
}

// lookEvery is the time between two attempts to connect to a server that is down.
const lookEvery = time.Second

// stayConnected keeps a connection to the server, which the server closes when it ends.
func (p *Proxy) stayConnected() {
	for pause := time.Duration(0); ; pause = lookEvery {
		select {
		case <-p.stop:
			return
		case <-time.After(pause):
		}
		server, err := p.dial()
		if err != nil {
			continue
		}
		_, _ = io.Copy(io.Discard, server) // until either ends the connection
		p.forget(server)
		if server, err = p.dial(); err == nil {
			p.forget(server) // closed for another reason
		}
	}
}

// warnEvery is the time between two calls of Unreachable.
const warnEvery = 10 * time.Second

func (p *Proxy) unreachable(err error) {
	now, last := time.Since(p.began), p.warned.Load()
	if p.Unreachable != nil && (last == 0 || now-time.Duration(last) > warnEvery) &&
		p.warned.CompareAndSwap(last, int64(now)) {
		p.Unreachable(err)
	}
}

// watched is a connection to the server. The watcher sees all its traffic.
type watched struct {
	net.Conn

	p      *Proxy
	number int
}

func (w *watched) Read(b []byte) (n int, err error) {
	n, err = w.Conn.Read(b)
	if n > 0 {
		w.p.watch(w.number, FromServer, b[:n])
	}
	return n, err
}

func (w *watched) Write(b []byte) (n int, err error) {
	w.p.watch(w.number, FromClient, b)
	return w.Conn.Write(b)
}

// CloseWrite tells the server that the client has closed its sending side.
func (w *watched) CloseWrite() error {
	if half, ok := w.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return w.Close()
}

func (p *Proxy) watch(number int, k Kind, data []byte) {
	p.Watcher.Watch(Event{At: time.Since(p.began), Conn: number, Kind: k, Data: data})
}

// pass moves the bytes of one direction. At the end it closes the receiver's side. If the server has closed, it also
// closes the client's connection.
func (p *Proxy) pass(to, from net.Conn, number int, k Kind) {
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			p.watch(number, k, buf[:n])
			if _, err := to.Write(buf[:n]); err != nil {
				_ = from.Close() // the sender notices that it is not read
				return
			}
		}
		if err != nil {
			if half, ok := to.(interface{ CloseWrite() error }); ok && errors.Is(err, io.EOF) && k == FromClient {
				_ = half.CloseWrite() // fails if the server has closed
				return
			}
			_, _ = to.Close(), from.Close() // either may be closed
			return
		}
	}
}
