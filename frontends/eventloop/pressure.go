package eventloop

// Bounds of a conn whose client takes less than it asks for, in bytes.
const (
	maxUnsent    = 1 << 20   // on its way out: no more input is fed until it is less
	maxHeldInput = 256 << 10 // input that waits meanwhile: beyond it the socket is not read
)

// Backpressured implements frontends.Conn.
func (c *conn) Backpressured() bool {
	c.measure()
	return c.overHighWater()
}

// squeezed is Backpressured by what was measured last.
func (c *conn) overHighWater() bool {
	if c.unsent <= c.group.highWater() {
		return false
	}
	c.backpressured = true
	return true
}

// highWater is far enough below the limit that one more reply does not end the connection.
func (g *group) highWater() int { return min(maxUnsent, g.limits.MaxOutput/4) }

// measure notes how much is on its way out and reports whether writing has failed.
func (c *conn) measure() (failed bool) {
	pending, failed := c.transport.pending()
	c.out.Late(pending)
	c.unsent = c.out.Unsent()
	return failed
}

// press looks after a serving conn that was found crowded. It is looked at again when the backlog is written, or when
// a commit lets replies leave: each marks the conn.
func (c *conn) pauseIfBackpressured() {
	c.measure()
	switch {
	case c.unsent <= c.group.highWater():
		c.backpressured = false
		c.Wake()
	case !c.paused && !c.eof && c.in.len() > maxHeldInput:
		if c.paused = c.transport.pause(); c.paused {
			c.loop.unread[c] = struct{}{}
		}
	}
}

// relieve reads the socket again after a turn that has left no crowd, and nothing that input waits for.
func (c *conn) resumeReads() {
	if c.backpressured || c.marked.Load() || c.inputBlocked() {
		return
	}
	c.paused = false
	if err := c.transport.resume(c); err != nil {
		c.srv.log.Warn().Err(err).Str("frontend", c.group.name).Str("remote", c.remoteText()).
			Msg("connection lost while it was not read")
		c.drop()
	}
}

// conclude ends the session of a conn whose peer sends no more, once it has answered what it was sent: while it is
// crowded, due for another turn, or waits for what its client is to have, there may be more.
func (c *conn) finishEOF() {
	if !c.eof || c.phase != serving || c.backpressured || c.marked.Load() || c.keepHalfClosed() {
		return
	}
	c.session.EOF(c.in.unread())
	c.in.clear()
	c.flush()
	c.closeSending()
}
