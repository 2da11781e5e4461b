package httpapi

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"strings"
	"sync"

	"broker/access"
)

// guestConns is the number of connections above the limit. They are for clients that have not logged in: health checks
// and newcomers.
const guestConns = 32

// connLimiter limits the connections of the HTTP port, because the store needs file descriptors too. A connection
// belongs to its guest, a network address, until a request on it is authenticated; then it belongs to the principal.
//
// The connections of principals are places of a pool, so no principal gets all of them. A principal without a free
// place loses its own connection that has been idle for longest, and is refused if all of them are busy. Guests may use
// what is left, and guestConns in addition. When all is used, a newcomer displaces the oldest connection of the address
// with the most guests, also if that has a request in progress: a slow reader of a public page, or half a body.
type connLimiter struct {
	max  int // 0: no limit
	pool *access.Pool

	mu    sync.Mutex // guards the fields below
	clock uint64     // counts events
	conns map[net.Conn]*limitedConn
}

// limitedConn is the state of a connection.
type limitedConn struct {
	since    uint64        // time of its start or of the last start or end of a request, by connLimiter.clock
	requests int           // requests in progress; may be several under HTTP/2
	holder   access.Holder // its address, or its principal once it is admitted
	admitted bool          // it has a place of the pool
}

func newConnLimiter(limit int) *connLimiter {
	return &connLimiter{max: limit, pool: access.NewPool(limit), conns: make(map[net.Conn]*limitedConn)}
}

// connState is http.Server.ConnState. net/http calls it for a new connection before it reads from it.
func (l *connLimiter) connState(nc net.Conn, state http.ConnState) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch state {
	case http.StateNew:
		l.clock++
		l.conns[nc] = &limitedConn{since: l.clock, holder: access.HolderOf(nil, nc.RemoteAddr().String())}
		if l.max > 0 && len(l.conns) > l.max+guestConns {
			l.displaceGuest(nc)
		}
	case http.StateClosed, http.StateHijacked:
		l.forget(nc)
	case http.StateActive, http.StateIdle: // also active while net/http waits for a body that the handler did not read
	}
}

// forget removes a connection. The caller holds mu.
func (l *connLimiter) forget(nc net.Conn) {
	if c := l.conns[nc]; c != nil && c.admitted {
		l.pool.Return(c.holder, 1)
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
	if l.max == 0 || l.take(nc, access.HolderOf(p, r.RemoteAddr)) {
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
	for l.pool.Take(h, 1) != nil {
		if !l.closeIdle(h) {
			return false
		}
	}
	if c.admitted { // HTTP/2, or a proxy: the connection carries requests of several principals
		l.pool.Return(c.holder, 1)
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
	l.close(oldest)
	return true
}

// displaceGuest closes the oldest connection of the address with the most guests. It closes the new connection only if
// there is no other guest. The caller holds mu.
func (l *connLimiter) displaceGuest(fresh net.Conn) {
	guests := make(map[access.Holder]int)
	for _, c := range l.conns {
		if !c.admitted {
			guests[c.holder]++
		}
	}
	victim := fresh
	for nc, c := range l.conns {
		if nc == fresh || c.admitted {
			continue
		}
		old := l.conns[victim]
		more := guests[c.holder] - guests[old.holder]
		if victim == fresh || more > 0 || more == 0 && c.since < old.since {
			victim = nc
		}
	}
	l.close(victim)
}

// close closes a connection. Its own goroutine sees the end. The caller holds mu.
func (l *connLimiter) close(nc net.Conn) {
	l.forget(nc)
	if t, ok := nc.(*tls.Conn); ok {
		nc = t.NetConn() // closing at the TLS level would wait for the peer
	}
	_ = nc.Close() // the peer may be gone already
}
