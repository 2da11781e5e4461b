package httpapi

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"broker/access"
)

// guestConns is the number of connections above the limit. They are for clients that have not logged in: health checks
// and newcomers.
const guestConns = 32

// guestIdle is the time that a connection without a login may stay idle between two requests.
const guestIdle = 10 * time.Second

// connLimiter limits the connections of the HTTP port, because the store needs file descriptors too. It divides them as
// access.Connections says; a connection is admitted once a request on it is authenticated. A principal without a free
// place loses its own connection that has been idle for longest, and is refused if all of them are busy. Guests may use
// what is left, and guestConns in addition. They are displaced also while a request is in progress: a slow reader of a
// public page, or half a body.
type connLimiter struct {
	places *access.Connections

	mu    sync.Mutex // guards the fields below
	clock uint64     // counts events
	conns map[net.Conn]*limitedConn
}

// limitedConn is the state of a connection.
type limitedConn struct {
	place    *access.Connection
	since    uint64        // time of its start or of the last start or end of a request, by connLimiter.clock
	requests int           // requests in progress; may be several under HTTP/2
	holder   access.Holder // its principal, once it is admitted
	admitted bool          // it has a place of the pool
}

func newConnLimiter(limit int) *connLimiter {
	places := access.NewConnections(access.ConnectionOptions{Size: limit, Extra: guestConns, Renew: true})
	return &connLimiter{places: places, conns: make(map[net.Conn]*limitedConn)}
}

// connState is http.Server.ConnState. net/http calls it for a new connection before it reads from it.
func (l *connLimiter) connState(nc net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		l.enter(nc)
	case http.StateActive:
		if c := l.find(nc); c != nil {
			c.place.Busy()
		}
	case http.StateIdle:
		if c := l.find(nc); c != nil {
			c.place.Idle(guestIdle)
		}
	case http.StateClosed, http.StateHijacked:
		l.mu.Lock()
		defer l.mu.Unlock()
		l.forget(nc)
	}
}

func (l *connLimiter) enter(nc net.Conn) {
	place := l.places.Enter(nc.RemoteAddr().String())
	if place == nil {
		closeNow(nc)
		return
	}
	place.Guest(func() { closeNow(nc) })
	l.mu.Lock()
	defer l.mu.Unlock()
	l.clock++
	l.conns[nc] = &limitedConn{place: place, since: l.clock}
}

func (l *connLimiter) find(nc net.Conn) *limitedConn {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.conns[nc]
}

// forget removes a connection. The caller holds mu.
func (l *connLimiter) forget(nc net.Conn) {
	if c := l.conns[nc]; c != nil {
		c.place.Leave()
	}
	delete(l.conns, nc)
}

// connKey is the context key of the connection of a request.
type connKey struct{}

// connContext is http.Server.ConnContext.
func (l *connLimiter) connContext(ctx context.Context, nc net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, nc)
}

// counted counts the requests in progress of a connection.
func (l *connLimiter) counted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		nc, _ := r.Context().Value(connKey{}).(net.Conn)
		l.count(nc, 1)
		defer l.count(nc, -1)
		next.ServeHTTP(w, r)
	})
}

// isHealth reports whether a path is a health check.
func isHealth(path string) bool {
	return strings.HasPrefix(path, "/health") || path == "/readyz"
}

// count records that a request begins or ends.
func (l *connLimiter) count(nc net.Conn, by int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c := l.conns[nc]; c != nil { // else it was closed here
		l.clock++
		c.since = l.clock
		c.requests += by
	}
}

// admit makes the connection of an authenticated request one of its principal. It returns nil if the principal may have
// the connection.
func (l *connLimiter) admit(r *http.Request, p *access.Principal) *Problem {
	nc, _ := r.Context().Value(connKey{}).(net.Conn)
	if l.take(nc, access.HolderOf(p, r.RemoteAddr)) {
		return nil
	}
	full := problem(http.StatusServiceUnavailable, codeTooManyConns, "too many connections of this principal")
	full.retryAfterS = 1
	return full
}

// take moves a connection to a holder, and reports whether the holder has a place for it.
func (l *connLimiter) take(nc net.Conn, h access.Holder) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.conns[nc]
	if c == nil || c.admitted && c.holder == h {
		return true
	}
	for c.place.Admit(h) != nil {
		if !l.closeIdle(h) {
			return false
		}
	}
	c.holder, c.admitted = h, true
	return true
}

// closeIdle closes the connection of a holder that has been idle for longest, if there is one. The caller holds mu.
func (l *connLimiter) closeIdle(h access.Holder) bool {
	var oldest net.Conn
	for nc, c := range l.conns {
		if c.admitted && c.holder == h && c.requests == 0 && (oldest == nil || c.since < l.conns[oldest].since) {
			oldest = nc
		}
	}
	if oldest == nil {
		return false
	}
	l.forget(oldest)
	closeNow(oldest)
	return true
}

// closeNow closes a connection. Its own goroutine sees the end.
func closeNow(nc net.Conn) {
	if t, ok := nc.(*tls.Conn); ok {
		nc = t.NetConn() // closing at the TLS level would wait for the peer
	}
	_ = nc.Close() // the peer may be gone already
}
