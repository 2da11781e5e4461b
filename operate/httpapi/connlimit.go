package httpapi

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"strings"
	"sync"
)

// reservedConns are connections beyond the limit on which health alone is answered.
const reservedConns = 32

// connLimiter bounds the connections of the HTTP port, as the store needs file descriptors too. At the limit a new
// connection takes the place of the one that has been idle for longest: it has sent no request, or not all of one, or is
// kept for another. If all are in the middle of a request, the new one is let in beyond the limit, and anything but health
// is refused there. A client that does not read its answer loses its place when the write deadline passes.
type connLimiter struct {
	max int // 0: no limit

	mu    sync.Mutex // guards the rest
	clock uint64     // counts what happens
	conns map[net.Conn]*limitedConn
}

// limitedConn is what is known of a connection.
type limitedConn struct {
	since    uint64 // when it came or was last answered, by connLimiter.clock
	requests int    // being served; several under HTTP/2
	reserved bool   // it was let in beyond the limit
}

func newConnLimiter(limit int) *connLimiter {
	return &connLimiter{max: limit, conns: make(map[net.Conn]*limitedConn)}
}

// connState is http.Server.ConnState. net/http calls it for a new connection before it reads from it.
func (l *connLimiter) connState(nc net.Conn, state http.ConnState) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch state {
	case http.StateNew:
		l.clock++
		c := &limitedConn{since: l.clock}
		l.conns[nc] = c
		if l.max > 0 && len(l.conns) > l.max {
			c.reserved = !l.closeIdle(nc)
		}
	case http.StateClosed, http.StateHijacked:
		delete(l.conns, nc)
	case http.StateActive, http.StateIdle: // active also while a body is awaited that the handler did not want
	}
}

// connKey is where a request's context has its connection.
type connKey struct{}

// connContext is http.Server.ConnContext.
func (l *connLimiter) connContext(ctx context.Context, nc net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, nc)
}

// limited keeps the places of connections whose requests next answers.
func (l *connLimiter) limited(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		nc, _ := r.Context().Value(connKey{}).(net.Conn)
		reserved := l.count(nc, 1)
		defer l.count(nc, -1)
		if reserved {
			w.Header().Set("Connection", "close")
			if !isHealth(r.URL.Path) {
				p := problem(http.StatusServiceUnavailable, codeTooManyConns, "too many connections")
				p.retryAfterS = 1
				p.write(w)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// isHealth reports whether a path is one of the pages that monitors ask for.
func isHealth(path string) bool {
	return strings.HasPrefix(path, "/health") || path == "/readyz"
}

// count notes that a request begins or ends, and reports whether its connection is beyond the limit.
func (l *connLimiter) count(nc net.Conn, by int) (reserved bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.conns[nc]
	if c == nil {
		return false // it was closed here
	}
	l.clock++
	c.since = l.clock
	c.requests += by
	return c.reserved
}

// closeIdle closes the connection that has been idle for longest. It spares the new one, unless the reserve is used up.
func (l *connLimiter) closeIdle(fresh net.Conn) bool {
	var oldest net.Conn
	for nc, c := range l.conns {
		if nc != fresh && c.requests == 0 && (oldest == nil || c.since < l.conns[oldest].since) {
			oldest = nc
		}
	}
	if oldest == nil {
		if len(l.conns) <= l.max+reservedConns {
			return false
		}
		oldest = fresh
	}
	delete(l.conns, oldest)
	if t, ok := oldest.(*tls.Conn); ok {
		oldest = t.NetConn() // TLS would first say goodbye, and wait for its peer
	}
	_ = oldest.Close() // its own goroutine sees the end
	return true
}
