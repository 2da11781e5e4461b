package cluster_test

import (
	"bytes"
	"io"
	"net"
	"sync"
	"testing"
	"time"
)

// network is what lies between the nodes: each is called through a proxy, which knows from the greeting who calls.
type network struct {
	mu    sync.Mutex // guards the fields below
	cut   map[string]bool
	mute  map[string]chan struct{} // closed when the node is heard again
	slow  time.Duration
	pairs map[*pair]struct{}
}

// pair is a connection between two nodes.
type pair struct {
	from, to string
	a, b     net.Conn
}

func newNetwork() *network {
	return &network{cut: make(map[string]bool), mute: make(map[string]chan struct{}), pairs: make(map[*pair]struct{})}
}

// proxy serves a node's address until the test ends; the node listens at to.
func (w *network) proxy(t *testing.T, id, to string) (address string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	t.Cleanup(func() { _ = ln.Close() })
	go func() { // ends with the test
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			go w.pass(conn, id, to)
		}
	}()
	return ln.Addr().String()
}

// pass reads the greeting and passes everything on.
func (w *network) pass(a net.Conn, id, to string) {
	defer func() { _ = a.Close() }()
	var said bytes.Buffer
	var from greeting
	if receiveFrame(io.TeeReader(a, &said), len(greetingMagic), &from) != nil || w.isCut(from.From, id) {
		return
	}
	w.awaitUnsilenced(from.From, id)
	b, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	defer func() { _ = b.Close() }()
	p := &pair{from.From, id, a, b}
	w.mu.Lock()
	w.pairs[p] = struct{}{}
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		delete(w.pairs, p)
		w.mu.Unlock()
	}()
	if _, err := b.Write(said.Bytes()); err != nil {
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.copy(p, a, b)
		_ = a.Close()
	}()
	w.copy(p, b, a)
	_ = b.Close()
	<-done
}

func (w *network) copy(p *pair, to, from net.Conn) {
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		w.mu.Lock()
		slow := w.slow
		w.mu.Unlock()
		if slow > 0 {
			time.Sleep(slow)
		}
		w.awaitUnsilenced(p.from, p.to)
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}

func (w *network) isCut(a, b string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.cut[a] || w.cut[b]
}

// isolate cuts a node off from all others.
func (w *network) isolate(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut[id] = true
	for p := range w.pairs {
		if p.from == id || p.to == id {
			_ = p.a.Close()
			_ = p.b.Close()
		}
	}
}

// silence keeps whatever is sent from or to a node until heal: no connection ends, buffers fill, and new connections
// are accepted.
func (w *network) silence(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mute[id] = make(chan struct{})
}

// awaitUnsilenced waits while one of two nodes is silenced.
func (w *network) awaitUnsilenced(ids ...string) {
	for _, id := range ids {
		w.mu.Lock()
		heard := w.mute[id]
		w.mu.Unlock()
		if heard != nil {
			<-heard
		}
	}
}

// delay makes every piece of data between nodes take longer, until heal.
func (w *network) delay(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.slow = d
}

// heal ends all of that.
func (w *network) heal() {
	w.mu.Lock()
	defer w.mu.Unlock()
	clear(w.cut)
	for _, heard := range w.mute {
		close(heard)
	}
	clear(w.mute)
	w.slow = 0
}
