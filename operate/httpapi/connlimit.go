package httpapi

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"strings"
	"sync"
)

// reservedConns is the number of connections above the limit. They only serve health checks.
const reservedConns = 32

// connLimiter limits the connections of the HTTP port, because the store needs file descriptors too. At the limit, a new
// connection replaces the connection that has been idle for longest. Idle means that it has sent no request or only a part of
// one, or is kept alive for another. If all connections have a request in progress, the new one is accepted above the limit,
// but only health checks are served on it. A client that does not read its response loses its connection when the write
// deadline passes.
type connLimiter struct {
	max int // 0: no limit

	mu    sync.Mutex // guards the fields below
	clock uint64     // counts events
	conns map[net.Conn]*limitedConn
}

// limitedConn is the state of a connection.
type limitedConn struct {
	since    uint64 // time of its start or of its last response, by connLimiter.clock
	requests int    // requests in progress; may be several under HTTP/2
	reserved bool   // it was accepted above the limit
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
	case http.StateActive, http.StateIdle: // also active while net/http waits for a body that the handler did not read
	}
}

// connKey is the context key of the connection of a request.
type connKey struct{}

// connContext is http.Server.ConnContext.
func (l *connLimiter) connContext(ctx context.Context, nc net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, nc)
}

// limited protects a connection from being replaced while next serves its request.
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

// isHealth reports whether a path is a health check.
func isHealth(path string) bool {
	return strings.HasPrefix(path, "/health") || path == "/readyz"
}

// count records that a request begins or ends, and reports whether its connection is above the limit.
func (l *connLimiter) count(nc net.Conn, by int) (reserved bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.conns[nc]
	if c == nil {
		return false // closed by closeIdle
	}
	l.clock++
	c.since = l.clock
	c.requests += by
	return c.reserved
}

// closeIdle closes the connection that has been idle for longest. It closes the new connection only if the reserve is used up.
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
		oldest = t.NetConn() // closing at the TLS level would wait for the peer
	}
	_ = oldest.Close() // its own goroutine sees the end
	return true
}
