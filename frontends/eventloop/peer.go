package eventloop

import "broker/frontends"

// peerState is the kernel's view of the peer of a socket that is not being read.
type peerState uint8

// In this order: the peer may still send; it has closed its sending side; it has closed the connection; the connection
// is broken.
const (
	peerThere peerState = iota
	peerEnded
	peerClosed
	peerBroken
)

// inputBlocked reports that too much input is held, because a command waits for its reply or for the next turn. Then no
// more input should be read.
func (c *conn) inputBlocked() bool {
	if c.in.len() <= min(maxHeldInput, c.maxInput()) {
		return false
	}
	s, may := c.session.(frontends.Blocker)
	return c.inputLeft || may && s.Blocked()
}

// pauseIfBlocked stops reading while inputBlocked, and reports whether the socket is paused.
func (c *conn) pauseIfBlocked() bool {
	if c.paused || c.eof || !c.inputBlocked() {
		return c.paused
	}
	if c.paused = c.transport.pause(); c.paused {
		c.loop.unread[c] = struct{}{}
	}
	return c.paused
}

// keepHalfClosed offers the unread input to the session of a half-closed connection. It reports whether the session
// must stay open, because replies to its client are pending.
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

// checkPeer polls the peer of a conn whose socket is not read. If the connection is closed, the conn is dropped; if the
// peer has only closed its sending side, the session stops waiting for jobs that the client would have to answer.
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

// watchPeer is called periodically for a conn whose socket is paused.
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
