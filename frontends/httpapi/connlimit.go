package httpapi

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
)

// crowd bounds the connections of the HTTP port, as the store needs descriptors too. When there are too many, the one that
// has waited for longest makes room: it has asked for nothing, was answered and is kept for another request, or owes the rest
// of one that nobody waits for. A new one is closed if all others are being served.
type crowd struct {
	most int

	mu   sync.Mutex // guards the rest
	last uint64
	open map[net.Conn]*place
}

// place is one connection.
type place struct {
	since    uint64 // the step in which it came or was last answered
	requests int    // being served; several under HTTP/2
}

func newCrowd(most int) *crowd { return &crowd{most: most, open: make(map[net.Conn]*place)} }

// watch is http.Server.ConnState. A new connection is told of before anything is read from it.
func (c *crowd) watch(nc net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch state {
	case http.StateNew:
		c.last++
		c.open[nc] = &place{since: c.last}
		if c.most > 0 && len(c.open) > c.most {
			c.closeOne()
		}
	case http.StateClosed, http.StateHijacked:
		delete(c.open, nc)
	case http.StateActive, http.StateIdle: // active also while a body is awaited that the handler did not want
	}
}

// connKey is where a request's context has its connection.
type connKey struct{}

// note is http.Server.ConnContext.
func (c *crowd) note(ctx context.Context, nc net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, nc)
}

// served keeps the places of connections whose requests next answers.
func (c *crowd) served(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		nc, _ := r.Context().Value(connKey{}).(net.Conn)
		c.count(nc, 1)
		defer c.count(nc, -1)
		next.ServeHTTP(w, r)
	})
}

// count notes that a request begins or ends.
func (c *crowd) count(nc net.Conn, by int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := c.open[nc]; p != nil { // it was not closed here
		c.last++
		p.since = c.last
		p.requests += by
	}
}

// closeOne closes the connection that has waited for longest; the newest is not served, so there is one.
func (c *crowd) closeOne() {
	var oldest net.Conn
	for nc, p := range c.open {
		if p.requests == 0 && (oldest == nil || p.since < c.open[oldest].since) {
			oldest = nc
		}
	}
	delete(c.open, oldest)
	if secured, ok := oldest.(*tls.Conn); ok {
		oldest = secured.NetConn() // no goodbye, which could wait for its peer
	}
	_ = oldest.Close() // its own goroutine sees the end
}
