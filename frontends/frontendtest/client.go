package frontendtest

import (
	"net"
	"sync/atomic"

	"broker/frontends"
)

// Client is one connection: the client's end for the test, and a frontends.Conn for the session.
type Client struct {
	Name string

	stage    *Stage
	number   int
	session  frontends.Session
	out      frontends.Outbox
	unread   []byte // what Feed has not used
	received []byte // what has left and the test has not read
	woken    atomic.Bool
	aborted  atomic.Bool
	eof      bool   // the client sends no more
	shut     bool   // the session wants nothing more; what it wrote is still sent
	ended    bool   // the session is closed
	refusal  []byte // of the closed session
	closed   bool
}

// Send offers text to the session: whole, or byte by byte on a split stage.
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

// SendIn offers p in pieces of step bytes, whatever the stage says.
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

// Want reads text, which may hold ${name} patterns, and fails the test if anything else comes or nothing does.
func (c *Client) Want(text string) {
	c.stage.t.Helper()
	c.expect(parsePattern([]byte(text)), Vars{})
}

// WantBytes reads exactly p.
func (c *Client) WantBytes(p []byte) {
	c.stage.t.Helper()
	c.expect(pattern{{literal: p}}, Vars{})
}

// Read returns the first n bytes that have come, waiting for them.
func (c *Client) Read(n int) []byte {
	c.stage.t.Helper()
	if !c.stage.until(func() bool { return len(c.received) >= n || c.closed }) || len(c.received) < n {
		c.stage.fatalf("%s: got %q, want %d bytes (closed: %v)", c.Name, c.received, n, c.closed)
	}
	p := c.received[:n:n]
	c.received = c.received[n:]
	return p
}

// ReadUntil returns what has come up to and with the first end, waiting for it.
func (c *Client) ReadUntil(end string) string {
	c.stage.t.Helper()
	p := pattern{{name: "text", capture: true}, {literal: []byte(end)}}
	vars := Vars{}
	c.expect(p, vars)
	return vars["text"] + end
}

// Rest settles the stage and returns everything that has come and was not read.
func (c *Client) Rest() []byte {
	c.stage.t.Helper()
	c.stage.Settle()
	p := c.received
	c.received = nil
	return p
}

// WantSilence settles the stage and fails the test if anything unread has come.
func (c *Client) WantSilence() {
	c.stage.t.Helper()
	if p := c.Rest(); len(p) > 0 {
		c.stage.fatalf("%s: got %q, want nothing more", c.Name, p)
	}
}

// WantClosed fails the test unless the front-end closes the connection after what was read so far.
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

// Closed reports whether the connection is gone.
func (c *Client) Closed() bool {
	c.stage.turn()
	return c.closed
}

// EOF closes the client's sending side: the session answers what it can, then the connection ends.
func (c *Client) EOF() {
	c.stage.t.Helper()
	if !c.alive() {
		return
	}
	c.eof = true
	c.conclude()
	c.stage.turn()
}

// conclude ends the session of a client that sends no more, unless there is something that it waits for.
func (c *Client) conclude() {
	c.stage.t.Helper()
	for p, may := c.session.(frontends.HalfCloseWaiter); may; {
		if p.WaitsHalfClosed() {
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
	in := append([]byte(nil), c.unread...)
	c.session.EOF(in)
	scribble(in)
	c.unread = nil
	c.shut = true
	c.end()
	c.flush()
}

// Hangup ends the connection from the client's side; what was not read is lost.
func (c *Client) Hangup() {
	if c.closed {
		return
	}
	c.received = nil
	c.close()
	c.stage.turn()
}

// expect reads what p matches, and fails the test when that cannot come any more.
func (c *Client) expect(p pattern, vars Vars) {
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
			c.stage.fatalf("%s: waited in vain\n got %q\nwant %q", c.Name, c.received, p)
		case c.closed:
			c.stage.fatalf("%s: the connection is closed\n got %q\nwant %q", c.Name, c.received, p)
		}
		c.stage.fatalf("%s: wrong bytes\n got %q\nwant %q", c.Name, c.received, p)
	}
	c.received = c.received[n:]
}

// alive reports whether the session still wants input.
func (c *Client) alive() bool { return !c.closed && !c.shut }

// deliver is what the loop does after a wake-up.
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
		c.conclude()
	}
	c.flush()
}

// feed offers what is unread until the session takes no more of it, and sends what comes in between.
func (c *Client) feed() {
	c.stage.t.Helper()
	for c.alive() && len(c.unread) > 0 {
		in := append([]byte(nil), c.unread...)
		n := c.session.Feed(in)
		if n < 0 || n > len(in) {
			c.stage.fatalf("%s: Feed used %d of %d bytes", c.Name, n, len(in))
		}
		scribble(in)
		c.unread = c.unread[:copy(c.unread, c.unread[n:])]
		if n == 0 {
			break
		}
		c.flush()
	}
	if limit := c.stage.Front.Limits().MaxInput; limit > 0 && len(c.unread) > limit {
		c.close()
	}
}

// flush sends what may leave and closes what is to be closed.
func (c *Client) flush() {
	if c.closed {
		return
	}
	if c.shut {
		c.end()
	}
	if c.stage.Broker.Stopped() {
		c.out.Refuse(c.refused())
	}
	p := c.out.Sendable(c.stage.Broker.Committed())
	c.received = append(c.received, p...)
	c.out.Sent(len(p))
	limit := c.stage.Front.Limits().MaxOutput
	if c.aborted.Load() || c.shut && c.out.Len() == 0 || limit > 0 && c.out.Len() > limit {
		c.close()
	}
}

// refused is what takes the place of replies that no commit will release.
func (c *Client) refused() []byte {
	if c.ended {
		return c.refusal
	}
	return c.session.Refusal()
}

// end closes the session, while what it wrote may still be on its way.
func (c *Client) end() {
	if c.ended {
		return
	}
	c.ended, c.refusal = true, c.session.Refusal()
	c.session.Closed()
}

func (c *Client) close() {
	c.closed = true
	c.end()
	if s, minds := c.session.(frontends.UnsentHandler); minds && c.out.Len() > 0 {
		s.HandleUnsent(c.out.Len())
	}
}

// scribble overwrites a slice that a session must not have kept.
func scribble(p []byte) {
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

// Backpressured implements frontends.Conn: the client takes all there is.
func (c *Client) Backpressured() bool { return false }

// Wake implements frontends.Conn.
func (c *Client) Wake() {
	c.woken.Store(true)
	c.stage.wake.Set()
}

// CloseAfterFlush implements frontends.Conn.
func (c *Client) CloseAfterFlush() { c.shut = true }

// Abort implements frontends.Conn.
func (c *Client) Abort() {
	c.aborted.Store(true)
	c.Wake()
}

// RemoteAddr implements frontends.Conn.
func (c *Client) RemoteAddr() net.Addr {
	return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 40_000 + c.number}
}

// FD implements frontends.Conn: a number that is stable and no socket's.
func (c *Client) FD() int { return 100 + c.number }
