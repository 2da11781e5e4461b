package frontendtest

import (
	"bytes"
	"net"
	"sync/atomic"

	"broker/core"
	"broker/frontends"
)

// Client is one connection: the client for the test, and the frontends.Conn for the session.
type Client struct {
	Name string

	stage         *Stage
	number        int
	session       frontends.Session
	out           frontends.Outbox
	unread        []byte // input that Feed has not used
	received      []byte // sent by the session, and not read by the test
	woken         atomic.Bool
	aborted       atomic.Bool
	eof           bool   // the client has closed its sending side
	closing       bool   // the session accepts no more input; what it wrote is still sent
	sessionClosed bool   // Session.Closed was called
	refusal       []byte // Refusal of the closed session
	loginBy       core.Instant
	loggedIn      bool // no login is due any more
	closed        bool
}

// Send feeds text to the session, byte by byte on a split stage.
func (c *Client) Send(text string) { c.SendBytes([]byte(text)) }

// SendBytes is Send for bytes.
func (c *Client) SendBytes(p []byte) {
	c.stage.t.Helper()
	step := len(p)
	if c.stage.Split {
		step = 1
	}
	c.SendIn(step, p)
}

// SendIn feeds p in pieces of step bytes, on any stage.
func (c *Client) SendIn(step int, p []byte) {
	c.stage.t.Helper()
	for len(p) > 0 && c.alive() {
		n := min(step, len(p))
		c.unread = append(c.unread, p[:n]...)
		p = p[n:]
		c.feed()
		c.flush()
		c.stage.turn()
	}
}

// Want reads text, which may contain ${name} patterns, and fails the test if it receives anything else or nothing.
func (c *Client) Want(text string) {
	c.stage.t.Helper()
	c.expect(parsePattern([]byte(text)), bindings{})
}

// WantBytes reads exactly p.
func (c *Client) WantBytes(p []byte) {
	c.stage.t.Helper()
	c.expect(pattern{{literal: p}}, bindings{})
}

// Read waits for n bytes and returns them.
func (c *Client) Read(n int) []byte {
	c.stage.t.Helper()
	if !c.stage.until(func() bool { return len(c.received) >= n || c.closed }) || len(c.received) < n {
		c.stage.fatalf("%s: got %q, want %d bytes (closed: %v)", c.Name, c.received, n, c.closed)
	}
	p := c.received[:n:n]
	c.received = c.received[n:]
	return p
}

// ReadUntil waits for end and returns everything up to and including it.
func (c *Client) ReadUntil(end string) string {
	c.stage.t.Helper()
	p := pattern{{name: "text", capture: true}, {literal: []byte(end)}}
	vars := bindings{}
	c.expect(p, vars)
	return vars["text"] + end
}

// Rest settles the stage and returns all unread bytes.
func (c *Client) Rest() []byte {
	c.stage.t.Helper()
	c.stage.Settle()
	p := c.received
	c.received = nil
	return p
}

// Unheld returns the unread bytes that have been sent without waiting for a commit.
func (c *Client) Unheld() []byte {
	c.stage.turn()
	return c.received
}

// WantSilence settles the stage and fails the test if there are unread bytes.
func (c *Client) WantSilence() {
	c.stage.t.Helper()
	if p := c.Rest(); len(p) > 0 {
		c.stage.fatalf("%s: got %q, want nothing more", c.Name, p)
	}
}

// WantClosed fails the test unless the front-end closes the connection without sending anything else.
func (c *Client) WantClosed() {
	c.stage.t.Helper()
	c.stage.until(func() bool { return c.closed || len(c.received) > 0 })
	switch {
	case len(c.received) > 0:
		c.stage.fatalf("%s: got %q, want the connection closed", c.Name, c.received)
	case !c.closed:
		c.stage.fatalf("%s: the connection is open, want it closed", c.Name)
	}
}

// Closed reports whether the connection is closed.
func (c *Client) Closed() bool {
	c.stage.turn()
	return c.closed
}

// EOF closes the client's sending side. The session answers what it can, then the connection ends.
func (c *Client) EOF() {
	c.stage.t.Helper()
	if !c.alive() {
		return
	}
	c.eof = true
	c.finishEOF()
	c.stage.turn()
}

// finishEOF closes the session of a client that has closed its sending side, unless it still waits for a reply.
func (c *Client) finishEOF() {
	c.stage.t.Helper()
	for w, ok := c.session.(frontends.HalfCloseWaiter); ok; {
		if w.WaitsHalfClosed() {
			c.flush()
			return
		}
		before := len(c.unread)
		if c.feed(); len(c.unread) == before {
			break
		}
	}
	if !c.alive() {
		return
	}
	in := bytes.Clone(c.unread)
	c.session.EOF(in)
	overwrite(in)
	c.unread = nil
	c.closing = true
	c.closeSession()
	c.flush()
}

// Hangup closes the connection. Unread bytes are lost.
func (c *Client) Hangup() {
	if c.closed {
		return
	}
	c.received = nil
	c.close()
	c.stage.turn()
}

// expect reads text that matches p, and fails the test if the client receives anything else.
func (c *Client) expect(p pattern, vars bindings) {
	c.stage.t.Helper()
	var n int
	var m matching
	done := c.stage.until(func() bool {
		n, m = p.match(c.received, vars)
		return m != partial || c.closed
	})
	if m != full {
		switch {
		case !done:
			c.stage.fatalf("%s: timed out\n got %q\nwant %q", c.Name, c.received, p)
		case c.closed:
			c.stage.fatalf("%s: the connection is closed\n got %q\nwant %q", c.Name, c.received, p)
		}
		c.stage.fatalf("%s: wrong bytes\n got %q\nwant %q", c.Name, c.received, p)
	}
	c.received = c.received[n:]
}

// alive reports whether the session still accepts input.
func (c *Client) alive() bool { return !c.closed && !c.closing }

// deliver serves the client after a wake-up.
func (c *Client) deliver() {
	if !c.alive() || c.aborted.Load() {
		c.flush()
		return
	}
	c.session.Deliver()
	if c.alive() && len(c.unread) > 0 {
		c.feed()
	}
	if c.alive() && c.eof {
		c.finishEOF()
	}
	c.flush()
}

// feed offers the unread input to the session until it uses no more, and flushes in between.
func (c *Client) feed() {
	c.stage.t.Helper()
	for c.alive() && len(c.unread) > 0 {
		in := bytes.Clone(c.unread)
		n := c.session.Feed(in)
		if n < 0 || n > len(in) {
			c.stage.fatalf("%s: Feed used %d of %d bytes", c.Name, n, len(in))
		}
		overwrite(in)
		c.unread = c.unread[:copy(c.unread, c.unread[n:])]
		if n == 0 {
			break
		}
		c.flush()
	}
	if a, ok := c.session.(frontends.Admitter); ok && c.alive() &&
		len(c.unread) > frontends.MaxInputWithoutRights && a.Admission().Rights != frontends.Admitted {
		a.Dismiss(frontends.DismissInput)
	}
	if limit := c.stage.Front.Bounds().MaxInput; limit > 0 && len(c.unread) > limit {
		c.close()
	}
}

// checkLogin dismisses the client if its login is overdue.
func (c *Client) checkLogin(now core.Instant) {
	a, ok := c.session.(frontends.Admitter)
	if !ok || c.loggedIn || !c.alive() {
		return
	}
	if c.loggedIn = a.Admission().Rights != frontends.LoginDue; !c.loggedIn && now >= c.loginBy {
		c.loggedIn = true
		a.Dismiss(frontends.DismissLogin)
		c.flush()
	}
}

// flush sends the output that may be sent, and closes the connection when it is due.
func (c *Client) flush() {
	if c.closed {
		return
	}
	if c.aborted.Load() {
		c.close()
		return
	}
	if c.closing {
		c.closeSession()
	}
	if c.stage.Broker.Stopped() {
		c.out.Refuse(c.refusalText())
	}
	p := c.out.Sendable(c.stage.Broker.Committed())
	c.received = append(c.received, p...)
	c.out.Sent(len(p))
	limit := c.stage.Front.Bounds().MaxOutput
	if c.closing && c.out.Len() == 0 || limit > 0 && c.out.Len() > limit {
		c.close()
	}
}

// refusalText replaces replies whose commit will never be durable.
func (c *Client) refusalText() []byte {
	if c.sessionClosed {
		return c.refusal
	}
	return c.session.Refusal()
}

// closeSession closes the session. What it wrote may still be sent.
func (c *Client) closeSession() {
	if c.sessionClosed {
		return
	}
	c.sessionClosed, c.refusal = true, c.session.Refusal()
	c.session.Closed()
}

func (c *Client) close() {
	c.closed = true
	c.closeSession()
	if s, ok := c.session.(frontends.UnsentHandler); ok && c.out.Len() > 0 {
		s.HandleUnsent(c.out.Len())
	}
}

// overwrite destroys a slice that a session must not have kept.
func overwrite(p []byte) {
	if len(p) == 0 {
		return
	}
	p[0] = 0xdb
	for n := 1; n < len(p); n *= 2 {
		copy(p[n:], p[:n])
	}
}

// Out implements frontends.Conn.
func (c *Client) Out() *frontends.Outbox { return &c.out }

// Backpressured implements frontends.Conn: the client reads everything.
func (c *Client) Backpressured() bool { return false }

// Wake implements frontends.Conn.
func (c *Client) Wake() {
	c.woken.Store(true)
	c.stage.wake.Set()
}

// CloseAfterFlush implements frontends.Conn.
func (c *Client) CloseAfterFlush() { c.closing = true }

// Abort implements frontends.Conn.
func (c *Client) Abort() {
	c.aborted.Store(true)
	c.Wake()
}

// RemoteAddr implements frontends.Conn.
func (c *Client) RemoteAddr() net.Addr {
	return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 40_000 + c.number}
}

// FD implements frontends.Conn with a stable number that is not a socket.
func (c *Client) FD() int { return 100 + c.number }
