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
	srv     *Server
	group   *group
	loop    *loop
	wire    wire
	session frontends.Session
	out     frontends.Outbox
	in      inbuf
	remote  net.Addr
	fd      int

	phase   phase
	shut    bool   // the session wants to leave
	eof     bool   // the peer has closed its sending side
	refusal []byte // of the closed session

	// fresh says that nothing was on its way out when the session was last called with a clean slate: what it has
	// written since is let through, whatever its size.
	fresh bool

	// excess is by how much one reply to an idle connection is larger than the limit: that much more may wait until
	// nothing waits any more.
	excess int

	ahead   int  // bytes on their way out when that was last measured
	crowded bool // input, or the session, waits until there are fewer
	paused  bool // the socket is not read meanwhile

	known int  // how much of the unread input the session has been offered
	late  bool // there is input for the next turn

	lastPending int       // bytes on their way out, and when that was last seen to change: who takes nothing for too
	lastMoved   time.Time // long while leaving is cut off

	working atomic.Bool // the loop is at work on it
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
func (c *conn) CloseAfterFlush() { c.shut = true }

// Wake implements frontends.Conn. Who wakes itself has more to do than is good for others in one turn.
func (c *conn) Wake() {
	switch {
	case c.marked.Swap(true):
	case c.working.Load():
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
	c.fresh = true
	c.session = c.group.frontend.Open(c)
	c.settle()
}

// received takes what came in; p dies when it returns.
func (c *conn) received(p []byte) {
	if c.phase != serving {
		return
	}
	defer c.recovered()
	c.working.Store(true)
	defer c.working.Store(false)
	c.fresh = c.idle()
	switch {
	case c.late:
		c.in.hold(p)
	case c.in.len() == 0:
		c.in.hold(p[c.feed(p):])
	case c.in.len()+len(p) <= cap(c.loop.scratch):
		// The joint of two reads is mended in the loop's scratch space, so that the conn keeps no large buffer itself.
		all := append(append(c.loop.scratch[:0], c.in.unread()...), p...)
		c.in.clear()
		c.in.hold(all[c.feed(all):])
	default:
		c.in.hold(p)
		c.in.used(c.feed(c.in.unread()))
	}
	c.settle()
}

// feed offers p to the session until it takes no more or has had its share of the loop's time, and returns how much it
// took. What p begins with was offered before as far as the session knows it.
func (c *conn) feed(p []byte) int {
	at, piece := 0, c.known+feedPiece
	c.late = false
	var began time.Time
	if len(p) > piece {
		began = time.Now()
	}
	for at < len(p) && c.phase == serving && !c.shut && !c.aborted.Load() && !c.squeezed() {
		end := min(at+piece, len(p))
		n := c.session.Feed(p[at:end])
		if n == 0 && end < len(p) { // half a message
			end = len(p)
			n = c.session.Feed(p[at:])
		}
		at += n
		c.known = end - at
		if n == 0 {
			break
		}
		if c.out.Len() > flushAt {
			c.flush()
			c.limit()
			c.fresh = c.idle()
		}
		if piece *= 2; end < len(p) && time.Since(began) > feedTime {
			c.late = true
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
	c.working.Store(true)
	defer c.working.Store(false)
	c.fresh = c.idle()
	if c.phase == serving && !c.aborted.Load() {
		c.crowded = false
		if c.paused && c.stuffed() {
			c.heed()
		}
	}
	if c.phase == serving && !c.aborted.Load() {
		c.session.Deliver()
		if c.in.len() > 0 {
			c.in.used(c.feed(c.in.unread()))
		}
	}
	c.settle()
}

// hungUp is told that no more will come in: the peer has closed its sending side (eof), or the connection is broken.
// The socket dies when it returns, unless the wire was told to keep it.
func (c *conn) hungUp(eof bool) {
	defer c.recovered()
	if !eof || c.phase == lingering || c.aborted.Load() {
		c.drop()
		return
	}
	c.eof = true
	c.conclude()
	if c.phase == gone {
		return
	}
	failed := c.measure()
	keep := !failed && (c.phase == serving || c.ahead > 0)
	if err := c.wire.hangup(keep); err != nil || !keep {
		c.drop()
		return
	}
	c.loop.departed[c], c.loop.watched[c] = struct{}{}, struct{}{}
}

// settle follows every call of the session: it sends what may leave and carries out what was asked for meanwhile.
func (c *conn) settle() {
	if c.phase == gone {
		return
	}
	if c.aborted.Load() {
		c.drop()
		return
	}
	c.flush()
	c.limit()
	if c.phase == serving && c.crowded {
		c.press()
	}
	if c.phase == serving && c.stopReading() {
		c.relieve()
	}
	c.conclude()
	if c.phase == serving && c.shut {
		c.leave()
	}
	if c.phase == leaving {
		c.depart()
	}
}

// flush sends what the commits on disk allow.
func (c *conn) flush() {
	if c.out.Len() == 0 || c.phase == gone {
		return
	}
	if c.out.Held() > 0 && c.srv.broker.Stopped() {
		c.refuse()
	}
	p := c.out.Sendable(c.srv.broker.Committed())
	if len(p) == 0 {
		return
	}
	n, err := c.wire.send(p)
	c.out.Sent(n)
	if err != nil {
		c.drop()
	}
}

// refuse replaces what no commit will release any more.
func (c *conn) refuse() {
	if c.phase == serving {
		c.refusal = c.session.Refusal()
	}
	c.out.Refuse(c.refusal)
}

// idle reports that nothing is on its way out.
func (c *conn) idle() bool {
	c.measure()
	return c.ahead == 0
}

// limit drops a conn that makes us hold too much.
func (c *conn) limit() {
	if c.phase == gone {
		return
	}
	if failed := c.measure(); failed {
		c.drop()
		return
	}
	over := c.ahead - c.group.limits.MaxOutput
	switch {
	case c.ahead == 0:
		c.excess = 0
	case c.fresh:
		c.excess = max(0, over)
	case over > c.excess:
		c.log("output_limit", c.ahead)
		c.drop()
		return
	}
	if c.in.len() > c.group.limits.MaxInput && !c.stopReading() {
		c.log("input_limit", c.in.len())
		c.drop()
	}
}

// log tells of a conn that was cut off.
func (c *conn) log(why string, held int) {
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
func (c *conn) leave() {
	if c.phase != serving {
		return
	}
	c.phase, c.refusal = leaving, c.session.Refusal()
	c.in.clear()
	c.closeSession()
	if c.phase == leaving {
		c.loop.departed[c] = struct{}{}
		c.srv.leaving.Add(1)
		c.srv.hurry()
	}
}

// depart moves a leaving conn on once all is out.
func (c *conn) depart() {
	if !c.idle() {
		return
	}
	if c.eof {
		c.drop()
		return
	}
	c.wire.finish()
	c.phase = lingering
	c.srv.leaving.Add(-1)
	c.lastMoved = time.Now()
}

// retire ends the session because the server stops.
func (c *conn) retire() {
	defer c.recovered()
	if s, may := c.session.(frontends.Stopper); may && !c.shut {
		s.Stop()
	}
	c.shut = true
	c.settle()
}

// age is called now and then for a conn whose peer has closed its sending side, or that is leaving or lingering.
func (c *conn) age(now time.Time) {
	defer c.recovered()
	switch c.phase {
	case gone:
	case serving, leaving:
		c.fresh = false
		c.settle()
		c.measure()
		waits := c.phase == serving && c.ahead == 0 // and not for its client
		if c.ahead != c.lastPending || c.lastMoved.IsZero() || waits {
			c.lastPending, c.lastMoved = c.ahead, now
		}
		if (c.phase == serving || c.phase == leaving) && now.Sub(c.lastMoved) > c.srv.patience(leaving) {
			c.drop()
		}
	case lingering:
		if now.Sub(c.lastMoved) > c.srv.patience(lingering) {
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
		if _, counted := c.loop.departed[c]; counted {
			c.srv.leaving.Add(-1)
		}
	case lingering, gone:
	}
	c.measure()
	lost := c.ahead
	c.in, c.out, c.refusal = inbuf{}, frontends.Outbox{}, nil
	delete(c.loop.conns, c)
	delete(c.loop.departed, c)
	delete(c.loop.watched, c)
	c.wire.close()
	c.lose(lost)
	c.srv.left(c.group)
}

// closeSession tells the session, once, that the connection is gone.
func (c *conn) closeSession() {
	defer c.recovered()
	if s := c.session; s != nil {
		s.Closed()
	}
}

// lose tells the session how much of what it wrote has not gone to the socket and never will.
func (c *conn) lose(bytes int) {
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
