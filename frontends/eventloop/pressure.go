package eventloop

// Bounds of a conn whose client takes less than it asks for, in bytes.
const (
	crowdedAt = 1 << 20   // on its way out: no more input is fed until it is less
	heldInput = 256 << 10 // input that waits meanwhile: beyond it the socket is not read
)

// Backpressured implements frontends.Conn.
func (c *conn) Backpressured() bool {
	c.measure()
	return c.squeezed()
}

// squeezed is Backpressured by what was measured last.
func (c *conn) squeezed() bool {
	if c.ahead <= c.group.crowdedAt() {
		return false
	}
	c.crowded = true
	return true
}

// crowdedAt is far enough below the limit that one more reply does not end the connection.
func (g *group) crowdedAt() int { return min(crowdedAt, g.limits.MaxOutput/4) }

// measure notes how much is on its way out and reports whether writing has failed.
func (c *conn) measure() (failed bool) {
	pending, failed := c.wire.pending()
	c.out.Late(pending)
	c.ahead = c.out.Unsent()
	return failed
}

// press looks after a serving conn that was found crowded. It is looked at again when the backlog is written, or when
// a commit lets replies leave: each marks the conn.
func (c *conn) press() {
	c.measure()
	switch {
	case c.ahead <= c.group.crowdedAt():
		c.crowded = false
		c.Wake()
	case !c.paused && !c.eof && c.in.len() > heldInput:
		if c.paused = c.wire.pause(); c.paused {
			c.loop.watched[c] = struct{}{}
		}
	}
}

// relieve reads the socket again after a turn that has left no crowd, and nothing that input waits for.
func (c *conn) relieve() {
	if c.crowded || c.marked.Load() || c.stuffed() {
		return
	}
	c.paused = false
	if err := c.wire.resume(c); err != nil {
		c.srv.log.Warn().Err(err).Str("frontend", c.group.name).Str("remote", c.remoteText()).
			Msg("connection lost while it was not read")
		c.drop()
	}
}

// conclude ends the session of a conn whose peer sends no more, once it has answered what it was sent: while it is
// crowded, due for another turn, or waits for what its client is to have, there may be more.
func (c *conn) conclude() {
	if !c.eof || c.phase != serving || c.crowded || c.marked.Load() || c.stays() {
		return
	}
	c.session.EOF(c.in.unread())
	c.in.clear()
	c.flush()
	c.leave()
}
