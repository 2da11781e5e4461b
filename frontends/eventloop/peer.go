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
func (c *conn) inputBlocked() bool {
	if c.in.len() <= min(maxHeldInput, c.group.limits.MaxInput) {
		return false
	}
	s, may := c.session.(frontends.Blocker)
	return c.inputLeft || may && s.Blocked()
}

// pauseIfBlocked leaves the socket alone while too much input waits, and reports whether it is left alone.
func (c *conn) pauseIfBlocked() bool {
	if c.paused || c.eof || !c.inputBlocked() {
		return c.paused
	}
	if c.paused = c.transport.pause(); c.paused {
		c.loop.unread[c] = struct{}{}
	}
	return c.paused
}

// stays offers a session whose client sends no more what is still unread, and reports whether it waits for something
// that its client is to have all the same.
func (c *conn) keepHalfClosed() bool {
	p, may := c.session.(frontends.HalfCloseWaiter)
	for may && c.phase == serving && !c.closeRequested && !c.backpressured {
		if p.WaitsHalfClosed() {
			c.flush()
			return true
		}
		n := c.feed(c.in.unread())
		if c.in.consume(n); n == 0 || c.inputLeft {
			break
		}
	}
	return c.phase != serving || c.backpressured || c.inputLeft
}

// heed looks after the peer of a conn whose socket is not read: one that is gone ends the conn, one that sends no more
// is not handed what it would have to work for.
func (c *conn) checkPeer() {
	state := c.transport.peer()
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
func (c *conn) watchPeer() {
	defer c.recovered()
	if c.phase != serving || !c.paused && !c.eof {
		delete(c.loop.unread, c)
		return
	}
	if c.checkPeer(); c.phase == serving && c.paused {
		c.Wake()
	}
}
