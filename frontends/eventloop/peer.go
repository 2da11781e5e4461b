package eventloop

import "broker/frontends"

// peerState is what the kernel knows of the other end of a socket that is not read.
type peerState uint8

// It may still send; it has closed its sending side, or the whole connection; the connection is broken.
const (
	peerThere peerState = iota
	peerEnded
	peerClosed
	peerBroken
)

// stuffed reports that so much input waits, for the answer to what came before it or for the next turn, that no more
// should be read.
func (c *conn) stuffed() bool {
	if c.in.len() <= min(heldInput, c.group.limits.MaxInput) {
		return false
	}
	s, may := c.session.(frontends.Blocker)
	return c.late || may && s.Blocked()
}

// stopReading leaves the socket alone while the conn is stuffed, and reports whether it is left alone.
func (c *conn) stopReading() bool {
	if c.paused || c.eof || !c.stuffed() {
		return c.paused
	}
	if c.paused = c.wire.pause(); c.paused {
		c.loop.watched[c] = struct{}{}
	}
	return c.paused
}

// stays offers a session whose client sends no more what is still unread, and reports whether it waits for something
// that its client is to have all the same.
func (c *conn) stays() bool {
	p, may := c.session.(frontends.HalfCloseWaiter)
	for may && c.phase == serving && !c.shut && !c.crowded {
		if p.WaitsHalfClosed() {
			c.flush()
			return true
		}
		n := c.feed(c.in.unread())
		if c.in.used(n); n == 0 || c.late {
			break
		}
	}
	return c.phase != serving || c.crowded || c.late
}

// heed looks after the peer of a conn whose socket is not read: one that is gone ends the conn, one that sends no more
// is not handed what it would have to work for.
func (c *conn) heed() {
	state := c.wire.peer()
	switch {
	case state == peerBroken, state == peerClosed && c.eof:
		c.drop()
	case state != peerThere && c.paused:
		if p, may := c.session.(frontends.HalfCloseWaiter); may {
			p.WaitsHalfClosed()
		}
	}
}

// watch is called now and then for a conn whose socket was not read.
func (c *conn) watch() {
	defer c.recovered()
	if c.phase != serving || !c.paused && !c.eof {
		delete(c.loop.watched, c)
		return
	}
	if c.heed(); c.phase == serving && c.paused {
		c.Wake()
	}
}
