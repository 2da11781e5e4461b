package eventloop

import (
	"net"
	"runtime/debug"
	"sync/atomic"
	"time"

	"broker/frontends"
)

// phase is where a connection is between its first and its last byte; the picture is in doc.go.
type phase uint8

const (
	serving   phase = iota
	leaving         // the session is closed; what it wrote is on its way out
	lingering       // all is out and the peer was told; it may still be sending
	gone
)

// Bounds of one turn.
const (
	flushAt   = 256 << 10              // bytes that are collected before they are written
	feedPiece = 1 << 10                // bytes of input that are fed at first, before time is looked at; then twice as many each
	feedTime  = 250 * time.Microsecond // after that what is left of the input is for the next turn
)

// conn is one connection, whatever carries it. Used on its loop only, but for Wake and Abort.
type conn struct {
	srv       *Server
	group     *group
	loop      *loop
	transport transport
	session   frontends.Session
	out       frontends.Outbox
	in        inbuf
	remote    net.Addr
	fd        int

	phase          phase
	closeRequested bool   // the session wants to leave
	eof            bool   // the peer has closed its sending side
	refusal        []byte // of the closed session

	// fresh says that nothing was on its way out when the session was last called with a clean slate: what it has
	// written since is let through, whatever its size.
	startedIdle bool

	// excess is by how much one reply to an idle connection is larger than the limit: that much more may wait until
	// nothing waits any more.
	allowance int

	unsent        int  // bytes on their way out when that was last measured
	backpressured bool // input, or the session, waits until there are fewer
	paused        bool // the socket is not read meanwhile

	offered   int  // how much of the unread input the session has been offered
	inputLeft bool // there is input for the next turn

	lastUnsent int       // bytes on their way out, and when that was last seen to change: who takes nothing for too
	lastMoved  time.Time // long while leaving is cut off

	inTurn  atomic.Bool // the loop is at work on it
	marked  atomic.Bool // on one of the loop's lists
	aborted atomic.Bool
}

// Out implements frontends.Conn.
func (c *conn) Out() *frontends.Outbox { return &c.out }

// RemoteAddr implements frontends.Conn.
func (c *conn) RemoteAddr() net.Addr { return c.remote }

// FD implements frontends.Conn.
func (c *conn) FD() int { return c.fd }

// CloseAfterFlush implements frontends.Conn.
func (c *conn) CloseAfterFlush() { c.closeRequested = true }

// Wake implements frontends.Conn. Who wakes itself has more to do than is good for others in one turn.
func (c *conn) Wake() {
	switch {
	case c.marked.Swap(true):
	case c.inTurn.Load():
		c.loop.markLater(c)
	default:
		c.loop.mark(c)
	}
}

// Abort implements frontends.Conn.
func (c *conn) Abort() {
	c.aborted.Store(true)
	c.Wake()
}

// open starts the session.
func (c *conn) open() {
	defer c.recovered()
	c.startedIdle = true
	c.session = c.group.frontend.Open(c)
	c.afterSession()
}

// received takes what came in; p dies when it returns.
func (c *conn) onData(p []byte) {
	if c.phase != serving {
		return
	}
	defer c.recovered()
	c.inTurn.Store(true)
	defer c.inTurn.Store(false)
	c.startedIdle = c.idle()
	switch {
	case c.inputLeft:
		c.in.append(p)
	case c.in.len() == 0:
		c.in.append(p[c.feed(p):])
	case c.in.len()+len(p) <= cap(c.loop.scratch):
		// The joint of two reads is mended in the loop's scratch space, so that the conn keeps no large buffer itself.
		all := append(append(c.loop.scratch[:0], c.in.unread()...), p...)
		c.in.clear()
		c.in.append(all[c.feed(all):])
	default:
		c.in.append(p)
		c.in.consume(c.feed(c.in.unread()))
	}
	c.afterSession()
}

// feed offers p to the session until it takes no more or has had its share of the loop's time, and returns how much it
// took. What p begins with was offered before as far as the session knows it.
func (c *conn) feed(p []byte) int {
	at, piece := 0, c.offered+feedPiece
	c.inputLeft = false
	var began time.Time
	if len(p) > piece {
		began = time.Now()
	}
	for at < len(p) && c.phase == serving && !c.closeRequested && !c.aborted.Load() && !c.overHighWater() {
		end := min(at+piece, len(p))
		n := c.session.Feed(p[at:end])
		if n == 0 && end < len(p) { // half a message
			end = len(p)
			n = c.session.Feed(p[at:])
		}
		at += n
		c.offered = end - at
		if n == 0 {
			break
		}
		if c.out.Len() > flushAt {
			c.flush()
			c.enforceLimits()
			c.startedIdle = c.idle()
		}
		if piece *= 2; end < len(p) && time.Since(began) > feedTime {
			c.inputLeft = true
			c.Wake()
			break
		}
	}
	return at
}

// turn serves a marked conn: replies that the broker has, then input that waited for them, then output.
func (c *conn) turn() {
	c.marked.Store(false)
	if c.phase == gone {
		return
	}
	defer c.recovered()
	c.inTurn.Store(true)
	defer c.inTurn.Store(false)
	c.startedIdle = c.idle()
	if c.phase == serving && !c.aborted.Load() {
		c.backpressured = false
		if c.paused && c.inputBlocked() {
			c.checkPeer()
		}
	}
	if c.phase == serving && !c.aborted.Load() {
		c.session.Deliver()
		if c.in.len() > 0 {
			c.in.consume(c.feed(c.in.unread()))
		}
	}
	c.afterSession()
}

// onHangup is told that no more will come in: the peer has closed its sending side (eof), or the connection is broken.
// The socket dies when it returns, unless the wire was told to keep it.
func (c *conn) onHangup(eof bool) {
	defer c.recovered()
	if !eof || c.phase == lingering || c.aborted.Load() {
		c.drop()
		return
	}
	c.eof = true
	c.finishEOF()
	if c.phase == gone {
		return
	}
	failed := c.measure()
	keep := !failed && (c.phase == serving || c.unsent > 0)
	if err := c.transport.hangup(keep); err != nil || !keep {
		c.drop()
		return
	}
	c.loop.closing[c], c.loop.unread[c] = struct{}{}, struct{}{}
}

// settle follows every call of the session: it sends what may leave and carries out what was asked for meanwhile.
func (c *conn) afterSession() {
	if c.phase == gone {
		return
	}
	if c.aborted.Load() {
		c.drop()
		return
	}
	c.flush()
	c.enforceLimits()
	if c.phase == serving && c.backpressured {
		c.pauseIfBackpressured()
	}
	if c.phase == serving && c.pauseIfBlocked() {
		c.resumeReads()
	}
	c.finishEOF()
	if c.phase == serving && c.closeRequested {
		c.closeSending()
	}
	if c.phase == leaving {
		c.finishLeaving()
	}
}

// flush sends what the commits on disk allow.
func (c *conn) flush() {
	if c.out.Len() == 0 || c.phase == gone {
		return
	}
	if c.out.Held() > 0 && c.srv.broker.Stopped() {
		c.refuseUncommitted()
	}
	p := c.out.Sendable(c.srv.broker.Committed())
	if len(p) == 0 {
		return
	}
	n, err := c.transport.send(p)
	c.out.Sent(n)
	if err != nil {
		c.drop()
	}
}

// refuse replaces what no commit will release any more.
func (c *conn) refuseUncommitted() {
	if c.phase == serving {
		c.refusal = c.session.Refusal()
	}
	c.out.Refuse(c.refusal)
}

// idle reports that nothing is on its way out.
func (c *conn) idle() bool {
	c.measure()
	return c.unsent == 0
}

// limit drops a conn that makes us hold too much.
func (c *conn) enforceLimits() {
	if c.phase == gone {
		return
	}
	if failed := c.measure(); failed {
		c.drop()
		return
	}
	over := c.unsent - c.group.limits.MaxOutput
	switch {
	case c.unsent == 0:
		c.allowance = 0
	case c.startedIdle:
		c.allowance = max(0, over)
	case over > c.allowance:
		c.logCutOff("output_limit", c.unsent)
		c.drop()
		return
	}
	if c.in.len() > c.group.limits.MaxInput && !c.pauseIfBlocked() {
		c.logCutOff("input_limit", c.in.len())
		c.drop()
	}
}

// log tells of a conn that was cut off.
func (c *conn) logCutOff(why string, held int) {
	c.srv.log.Info().Str("frontend", c.group.name).Int("conn", c.fd).Str("remote", c.remoteText()).
		Str("limit", why).Int("held_bytes", held).Msg("connection cut off")
}

func (c *conn) remoteText() string {
	if c.remote == nil {
		return ""
	}
	return c.remote.String()
}

// leave closes the session; what it wrote stays on its way out.
func (c *conn) closeSending() {
	if c.phase != serving {
		return
	}
	c.phase, c.refusal = leaving, c.session.Refusal()
	c.in.clear()
	c.closeSession()
	if c.phase == leaving {
		c.loop.closing[c] = struct{}{}
		c.srv.leaving.Add(1)
		c.srv.wakeTicker()
	}
}

// depart moves a leaving conn on once all is out.
func (c *conn) finishLeaving() {
	if !c.idle() {
		return
	}
	if c.eof {
		c.drop()
		return
	}
	c.transport.finish()
	c.phase = lingering
	c.srv.leaving.Add(-1)
	c.lastMoved = time.Now()
}

// retire ends the session because the server stops.
func (c *conn) stopSession() {
	defer c.recovered()
	if s, may := c.session.(frontends.Stopper); may && !c.closeRequested {
		s.Stop()
	}
	c.closeRequested = true
	c.afterSession()
}

// age is called now and then for a conn whose peer has closed its sending side, or that is leaving or lingering.
func (c *conn) checkTimeouts(now time.Time) {
	defer c.recovered()
	switch c.phase {
	case gone:
	case serving, leaving:
		c.startedIdle = false
		c.afterSession()
		c.measure()
		waits := c.phase == serving && c.unsent == 0 // and not for its client
		if c.unsent != c.lastUnsent || c.lastMoved.IsZero() || waits {
			c.lastUnsent, c.lastMoved = c.unsent, now
		}
		if (c.phase == serving || c.phase == leaving) && now.Sub(c.lastMoved) > c.srv.idleTimeout(leaving) {
			c.drop()
		}
	case lingering:
		if now.Sub(c.lastMoved) > c.srv.idleTimeout(lingering) {
			c.drop()
		}
	}
}

// drop ends the conn now.
func (c *conn) drop() {
	if c.phase == gone {
		return
	}
	was := c.phase
	c.phase = gone
	switch was {
	case serving:
		c.closeSession()
	case leaving:
		if _, counted := c.loop.closing[c]; counted {
			c.srv.leaving.Add(-1)
		}
	case lingering, gone:
	}
	c.measure()
	lost := c.unsent
	c.in, c.refusal = inbuf{}, nil
	delete(c.loop.conns, c)
	delete(c.loop.closing, c)
	delete(c.loop.unread, c)
	c.transport.close()
	c.reportUnsent(lost)
	c.out = frontends.Outbox{}
	c.srv.release(c.group)
}

// closeSession tells the session, once, that the connection is gone.
func (c *conn) closeSession() {
	defer c.recovered()
	if s := c.session; s != nil {
		s.Closed()
	}
}

// lose tells the session how much of what it wrote has not gone to the socket and never will.
func (c *conn) reportUnsent(bytes int) {
	defer c.recovered()
	if s, minds := c.session.(frontends.UnsentHandler); minds && bytes > 0 {
		s.HandleUnsent(bytes)
	}
}

// recovered ends a conn whose session has panicked, and it alone.
func (c *conn) recovered() {
	r := recover()
	if r == nil {
		return
	}
	c.srv.log.Error().Str("frontend", c.group.name).Int("conn", c.fd).Str("remote", c.remoteText()).
		Interface("panic", r).Bytes("stack", debug.Stack()).Msg("session failed")
	c.drop()
}
