package eventloop

import (
	"crypto/x509"
	"net"
	"runtime/debug"
	"sync/atomic"
	"time"

	"broker/access"
	"broker/frontends"
)

// phase is the stage of a connection's life; doc.go has the diagram.
type phase uint8

const (
	serving   phase = iota
	leaving         // the session is closed; its output is still being sent
	lingering       // everything was sent and the sending side is closed; the peer may still send
	gone
)

// Limits of one turn.
const (
	flushAt = 256 << 10 // bytes of output that are collected before they are written
	// bytes of input in the first piece that is fed; each following piece is twice as large
	feedPiece = 1 << 10
	feedTime  = 250 * time.Microsecond // time for feeding input; the rest is left for the next turn
)

// conn is one connection over any transport. It is used on its loop only, except for Wake and Abort.
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
	heard          bool   // the peer has sent something
	closeRequested bool   // the session asked to close
	eof            bool   // the peer has closed its sending side
	refusal        []byte // Refusal of the closed session

	// startedIdle: no output was pending when the session was last called. The output since then is allowed, regardless
	// of its size.
	startedIdle bool

	// allowance is the number of bytes by which one reply to an idle connection exceeds the output limit. It is added
	// to the limit until no output is pending.
	allowance int

	unsent        int  // bytes of pending output at the last measurement
	listed        bool // on the loop's list of conns that hold replies
	backpressured bool // the session and its input wait until less output is pending
	paused        bool // the socket is not being read

	offered   int  // bytes of the unread input that the session has seen
	inputLeft bool // input is left for the next turn

	place    *place
	holder   access.Holder // of the bytes and of the place once the client is admitted; before, its address
	admitted bool
	charged  int // bytes that are counted in a pool

	loginBy time.Time // when a client that has not logged in is dismissed

	// pending output when it last changed, and the time of that change: a leaving client that takes
	lastUnsent int
	lastMoved  time.Time // nothing for too long is dropped

	inTurn  atomic.Bool // the loop is serving it
	marked  atomic.Bool // on one of the loop's lists
	aborted atomic.Bool
}

// Out implements frontends.Conn.
func (c *conn) Out() *frontends.Outbox { return &c.out }

// RemoteAddr implements frontends.Conn.
func (c *conn) RemoteAddr() net.Addr { return c.remote }

// PeerCertificate implements frontends.CertifiedConn.
func (c *conn) PeerCertificate() *x509.Certificate {
	w, ok := c.transport.(*streamTransport)
	if !ok || w.tc == nil {
		return nil
	}
	if chains := w.tc.ConnectionState().VerifiedChains; len(chains) > 0 {
		return chains[0][0]
	}
	return nil
}

// FD implements frontends.Conn.
func (c *conn) FD() int { return c.fd }

// CloseAfterFlush implements frontends.Conn.
func (c *conn) CloseAfterFlush() { c.closeRequested = true }

// Wake implements frontends.Conn. A conn that wakes itself during its turn yields to the others first.
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

// open opens the session.
func (c *conn) open() {
	defer c.recovered()
	c.startedIdle = true
	c.holder = access.AddressHolder(c.place.remote)
	c.session = c.group.frontend.Open(c)
	if c.meetClient(); !c.admitted {
		c.place.guest(c.displaced)
	}
	c.expectLogin(time.Now())
	c.afterSession()
}

// onData handles received bytes; p is invalid after it returns.
func (c *conn) onData(p []byte) {
	if c.phase != serving {
		return
	}
	defer c.recovered()
	c.inTurn.Store(true)
	defer c.inTurn.Store(false)
	if !c.heard {
		c.heard = true
		if c.refusesTLS(p) {
			c.drop()
			return
		}
	}
	c.startedIdle = c.idle()
	switch {
	case c.inputLeft:
		c.in.append(p)
	case c.in.len() == 0:
		c.in.append(p[c.feed(p):])
	case c.in.len()+len(p) <= cap(c.loop.scratch):
		// A message split over two reads is joined in the loop's scratch space, so that the conn needs no large buffer.
		all := append(append(c.loop.scratch[:0], c.in.unread()...), p...)
		c.in.clear()
		c.in.append(all[c.feed(all):])
	default:
		c.in.append(p)
		c.in.consume(c.feed(c.in.unread()))
	}
	c.afterSession()
}

// refusesTLS reports that the first bytes on a port without TLS are a TLS handshake.
func (c *conn) refusesTLS(first []byte) bool {
	w, ok := c.transport.(*streamTransport)
	return !(ok && w.tc != nil) && refusesTLS(first, c.srv.log, c.group.name, c.remoteText())
}

// feed offers p to the session until it takes no more or has used its share of the loop's time. It returns the number
// of bytes taken. The first c.offered bytes of p were offered before.
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
		if n == 0 && end < len(p) { // the message is longer than the piece
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
			c.enforceBounds()
			c.startedIdle = c.idle()
		}
		piece = min(2*piece, len(p))
		if at == len(p) {
			break
		}
		if began.IsZero() {
			began = time.Now()
		}
		if time.Since(began) > feedTime {
			c.inputLeft = true
			c.Wake()
			break
		}
	}
	return at
}

// turn serves a marked conn: first ready replies, then held input, then output.
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

// onHangup is called when no more input will come: the peer has closed its sending side (eof), or the connection is
// broken. The socket is closed when onHangup returns, unless the transport has to keep it.
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

// afterSession runs after every call of the session. It sends the output that may be sent and closes the connection if
// the session asked for that.
func (c *conn) afterSession() {
	if c.phase == gone {
		return
	}
	if c.aborted.Load() {
		c.drop()
		return
	}
	if !c.admitted && c.phase == serving && !c.closeRequested {
		c.meetClient()
	}
	c.flush()
	c.enforceBounds()
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

// flush sends the output whose commits are durable. Once the conn is aborted nothing more leaves: nobody knows then
// what has become of the client's requests.
func (c *conn) flush() {
	committed := c.srv.broker.Committed() // before the check: an abort precedes commits that its reason lets pass
	if c.out.Len() == 0 || c.phase == gone || c.aborted.Load() {
		return
	}
	if stopped := c.srv.broker.Stopped(); stopped && c.srv.silent {
		if p := c.out.Durable(c.srv.broker.Committed()); len(p) > 0 {
			_, _ = c.transport.send(p) // what the socket does not take now is lost, as when the node dies
		}
		c.drop()
		return
	} else if stopped && c.out.Held() > 0 {
		c.refuseUncommitted()
	}
	p := c.out.Sendable(committed)
	if !c.listed && c.out.Held() > 0 {
		c.listed, c.loop.held = true, append(c.loop.held, c)
	}
	if len(p) == 0 {
		return
	}
	n, err := c.transport.send(p)
	c.out.Sent(n)
	if err != nil {
		c.drop()
	}
}

// wakeLate makes up for a wake-up that did not come, and counts it if that is sure. It reports whether the conn holds
// replies.
func (c *conn) wakeLate(m missed) (holds bool) {
	if c.phase == serving && !c.marked.Load() && c.out.Due(m.commit) {
		if m.sure {
			c.group.late.Add(1)
		}
		c.Wake()
	}
	c.listed = c.phase != gone && c.out.Held() > 0
	return c.listed
}

// refuseUncommitted replaces replies whose commit will never be durable.
func (c *conn) refuseUncommitted() {
	if c.phase == serving {
		c.refusal = c.session.Refusal()
	}
	c.out.Refuse(c.refusal)
}

// idle reports that no output is pending.
func (c *conn) idle() bool {
	c.measure()
	return c.unsent == 0
}

// enforceBounds drops a conn that exceeds its input or output limit.
func (c *conn) enforceBounds() {
	if c.phase == gone {
		return
	}
	if failed := c.measure(); failed {
		c.drop()
		return
	}
	over := c.unsent - c.group.bounds.MaxOutput
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
	if !c.charge() {
		c.overShare()
		return
	}
	most := c.maxInput()
	switch {
	case c.in.len() <= most || c.closeRequested || c.pauseIfBlocked():
	case most < c.group.bounds.MaxInput:
		c.dismiss("input_without_rights", frontends.DismissInput)
	default:
		c.logCutOff("input_limit", c.in.len())
		c.drop()
	}
}

// logCutOff logs that a conn exceeded a limit.
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

// closeSending closes the session; its pending output is still sent.
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

// finishLeaving moves a leaving conn on once all output was sent.
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

// stopSession closes the session because the server stops.
func (c *conn) stopSession() {
	defer c.recovered()
	if s, may := c.session.(frontends.Stopper); may && !c.closeRequested {
		s.Stop()
	}
	c.closeRequested = true
	c.afterSession()
}

// checkTimeouts is called periodically for a conn that is half-closed, leaving or lingering.
func (c *conn) checkTimeouts(now time.Time) {
	defer c.recovered()
	switch c.phase {
	case gone:
	case serving, leaving:
		c.startedIdle = false
		c.afterSession()
		c.measure()
		waits := c.phase == serving && c.unsent == 0 // it waits for the broker, not for its client
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

// drop closes the conn at once.
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
	delete(c.loop.loginDue, c)
	c.transport.close()
	c.reportUnsent(lost)
	c.out = frontends.Outbox{}
	c.release()
	c.endLoop()
}

// endLoop ends the loop of a conn that has one of its own.
func (c *conn) endLoop() {
	if c.loop.own {
		c.srv.endOwnLoop(c.loop)
	}
}

// closeSession tells the session, once, that its connection is closed.
func (c *conn) closeSession() {
	defer c.recovered()
	if s := c.session; s != nil {
		s.Closed()
	}
}

// reportUnsent tells the session how much of its output was never sent.
func (c *conn) reportUnsent(bytes int) {
	defer c.recovered()
	if s, minds := c.session.(frontends.UnsentHandler); minds && bytes > 0 {
		s.HandleUnsent(bytes)
	}
}

// recovered drops a conn whose session panicked. Other connections are not affected.
func (c *conn) recovered() {
	r := recover()
	if r == nil {
		return
	}
	c.srv.log.Error().Str("frontend", c.group.name).Int("conn", c.fd).Str("remote", c.remoteText()).
		Interface("panic", r).Bytes("stack", debug.Stack()).Msg("session failed")
	c.drop()
}
