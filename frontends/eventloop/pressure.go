package eventloop

// Limits of a conn with a slow reader, in bytes.
const (
	maxUnsent    = 1 << 20   // pending output: above it no more input is fed
	maxHeldInput = 256 << 10 // held input: above it the socket is not read
)

// Backpressured implements frontends.Conn.
func (c *conn) Backpressured() bool {
	c.measure()
	return c.overHighWater()
}

// overHighWater reports whether the output pending at the last measurement causes backpressure.
func (c *conn) overHighWater() bool {
	if c.unsent <= c.group.highWater() {
		return false
	}
	c.backpressured = true
	return true
}

// highWater is far enough below the output limit that one more reply does not exceed it.
func (g *group) highWater() int { return min(maxUnsent, g.bounds.MaxOutput/4) }

// measure updates the size of the pending output and reports whether writing has failed.
func (c *conn) measure() (failed bool) {
	pending, failed := c.transport.pending()
	c.out.Late(pending)
	c.unsent = c.out.Unsent()
	return failed
}

// pauseIfBackpressured checks a conn that was backpressured. It is called again when the backlog is written or a commit
// releases replies, because both mark the conn.
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

// resumeReads reads the socket again once the conn is neither backpressured nor blocked.
func (c *conn) resumeReads() {
	if c.backpressured || c.marked.Load() || c.inputBlocked() {
		return
	}
	c.paused = false
	if err := c.transport.resume(c); err != nil {
		c.srv.log.Warn().Err(err).Str("frontend", c.group.name).Str("remote", c.remoteText()).
			Msg("failed to resume connection")
		c.drop()
	}
}

// finishEOF closes the session of a half-closed connection once all input is answered. It waits while the conn is
// backpressured, due for another turn, or has replies to deliver.
func (c *conn) finishEOF() {
	if !c.eof || c.phase != serving || c.backpressured || c.marked.Load() || c.keepHalfClosed() {
		return
	}
	c.session.EOF(c.in.unread())
	c.in.clear()
	c.flush()
	c.closeSending()
}
