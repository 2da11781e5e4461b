package console

import (
	"crypto/tls"
	"net"
	"net/http"
	"sync"
)

// crowd bounds the connections of the HTTP port, as the store needs descriptors too. When there are too many, the one that
// has been silent for longest makes room: it has asked for nothing, or was answered and is kept for another request. A new
// one is closed if all others are being served.
type crowd struct {
	most int

	mu   sync.Mutex // guards the rest
	last uint64
	open map[net.Conn]uint64 // since which step it is silent; busy: it is not
}

// busy is no step.
const busy = 0

func newCrowd(most int) *crowd { return &crowd{most: most, open: make(map[net.Conn]uint64)} }

// watch is http.Server.ConnState. A new connection is told of before anything is read from it.
func (c *crowd) watch(nc net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, known := c.open[nc] // not if it was closed here
	switch state {
	case http.StateNew:
		c.last++
		c.open[nc] = c.last
		if c.most > 0 && len(c.open) > c.most {
			c.closeOne()
		}
	case http.StateActive:
		if known {
			c.open[nc] = busy
		}
	case http.StateIdle:
		if known {
			c.last++
			c.open[nc] = c.last
		}
	case http.StateClosed, http.StateHijacked:
		delete(c.open, nc)
	}
}

// closeOne closes the connection that has been silent for longest; the newest is silent, so there is one.
func (c *crowd) closeOne() {
	var oldest net.Conn
	for nc, since := range c.open {
		if since != busy && (oldest == nil || since < c.open[oldest]) {
			oldest = nc
		}
	}
	delete(c.open, oldest)
	if secured, ok := oldest.(*tls.Conn); ok {
		oldest = secured.NetConn() // no goodbye, which could wait for its peer
	}
	_ = oldest.Close() // its own goroutine sees the end
}
