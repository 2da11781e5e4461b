package hostile

import (
	"sync"
	"sync/atomic"
	"time"

	"broker/access"
	"broker/core"
	"broker/frontends"
)

// Frontend wraps a front-end whose broker is b, so that its connections can be delayed and cut.
func (b *Broker) Frontend(f frontends.Frontend) frontends.Frontend {
	return &frontend{Frontend: f, broker: b}
}

type frontend struct {
	frontends.Frontend
	broker *Broker
	turn   sync.Mutex // see usesOneClient
}

// enter begins a call of a session. The returned function ends it.
func (f *frontend) enter(c *conn) (leave func()) {
	if !usesOneClient(f.Name()) {
		return func() {}
	}
	f.turn.Lock()
	f.broker.current.Store(c)
	return func() {
		f.broker.current.Store(nil)
		f.turn.Unlock()
	}
}

// Open implements frontends.Frontend.
func (f *frontend) Open(real frontends.Conn) frontends.Session {
	c := &conn{Conn: real, broker: f.broker, at: endpoint{protocol: f.Name()}}
	if a := real.RemoteAddr(); a != nil {
		c.at.address = a.String()
	}
	f.broker.conns.add(c.at, c)
	s := &session{conn: c, frontend: f, session: f.Frontend.Open(c)}
	c.pump()
	return s
}

// Overflow is the reply to a connection above the connection limit, if the front-end has one.
func (f *frontend) Overflow() []byte {
	if o, ok := f.Frontend.(interface{ Overflow() []byte }); ok {
		return o.Overflow()
	}
	return nil
}

// Tick implements frontends.Frontend. It also wakes connections whose delay has ended.
func (f *frontend) Tick(now core.Instant) {
	f.Frontend.Tick(now)
	for _, c := range f.broker.conns.due(f.broker.monotonic()) {
		c.Wake()
	}
}

// conn is a connection whose session writes to a separate outbox. pump moves output from there to the real outbox.
type conn struct {
	frontends.Conn
	broker *Broker
	at     endpoint
	out    frontends.Outbox
	until  atomic.Int64 // no output is sent before this monotonic time; zero: no delay

	cutting bool // the reply that begins at cutFrom will be cut
	share   float64
	cutFrom uint64 // position in all bytes written
	onCut   func(sent int)
	placed  bool // cutFrom is now the end of the connection

	closing bool // the session wants the connection closed
	closed  bool // no more output
}

// Out implements frontends.Conn.
func (c *conn) Out() *frontends.Outbox { return &c.out }

// CloseAfterFlush implements frontends.Conn.
func (c *conn) CloseAfterFlush() { c.closing = true }

// delay implements line. Call it on the loop only.
func (c *conn) delay(by time.Duration) {
	c.until.Store(max(c.until.Load(), int64(c.broker.monotonic().Add(by))))
}

// cut implements line, for the next output of the session during this call. Call it on the loop only.
func (c *conn) cut(share float64, onCut func(sent int)) {
	if !c.cutting {
		c.cutting, c.share, c.cutFrom, c.onCut = true, share, c.out.Written(), onCut
	}
}

// pump moves output that may be sent. It runs after each call of the session.
func (c *conn) pump() {
	if c.cutting && !c.placed {
		sent := int(c.share * float64(c.out.Written()-c.cutFrom))
		c.cutFrom, c.placed = c.cutFrom+uint64(sent), true
		if c.onCut != nil {
			c.onCut(sent)
		}
	}
	if until := c.until.Load(); c.closed || until > int64(c.broker.monotonic()) {
		return
	}
	c.until.Store(0)
	moved := c.out.Written() - uint64(c.out.Len())
	p := c.out.Sendable(c.broker.Committed())
	if end := c.cutFrom - moved; c.placed && uint64(len(p)) >= end {
		p = p[:end]
		c.closed = true
	}
	real := c.Conn.Out()
	real.Write(p)
	c.out.Sent(len(p))
	c.out.Late(real.Unsent())
	if c.closed || c.closing && c.out.Len() == 0 {
		c.closed = true
		c.Conn.CloseAfterFlush()
	}
}

// session is a session on a conn.
type session struct {
	*conn
	frontend *frontend
	session  frontends.Session
}

// Feed implements frontends.Session.
func (s *session) Feed(in []byte) int {
	if s.closed {
		return len(in)
	}
	defer s.pump()
	defer s.frontend.enter(s.conn)()
	return s.session.Feed(in)
}

// Deliver implements frontends.Session.
func (s *session) Deliver() {
	defer s.pump()
	defer s.frontend.enter(s.conn)()
	s.session.Deliver()
}

// Refusal implements frontends.Session.
func (s *session) Refusal() []byte { return s.session.Refusal() }

// EOF implements frontends.Session.
func (s *session) EOF(input []byte) {
	s.session.EOF(input)
	s.pump()
}

// Closed implements frontends.Session. A delay ends with the connection.
func (s *session) Closed() {
	s.broker.conns.remove(s.at, s.conn)
	s.session.Closed()
	s.until.Store(0)
	s.pump()
}

// HandleUnsent implements frontends.UnsentHandler. Output that was cut off counts as sent, because a broker could not
// know.
func (s *session) HandleUnsent(bytes int) {
	if u, ok := s.session.(frontends.UnsentHandler); ok && !s.placed {
		u.HandleUnsent(bytes + s.out.Len())
	}
}

// Stop implements frontends.Stopper.
func (s *session) Stop() {
	if t, ok := s.session.(frontends.Stopper); ok {
		t.Stop()
		s.pump()
	}
}

// Blocked implements frontends.Blocker.
func (s *session) Blocked() bool {
	b, ok := s.session.(frontends.Blocker)
	return ok && b.Blocked()
}

// Admission implements frontends.Admitter.
func (s *session) Admission() frontends.Admission {
	if a, ok := s.session.(frontends.Admitter); ok {
		return a.Admission()
	}
	return frontends.Admission{Principal: access.Everyone}
}

// Dismiss implements frontends.Admitter.
func (s *session) Dismiss(text string) {
	if a, ok := s.session.(frontends.Admitter); ok {
		a.Dismiss(text)
		s.pump()
	}
}

// WaitsHalfClosed implements frontends.HalfCloseWaiter. The connection also waits for a delayed reply.
func (s *session) WaitsHalfClosed() bool {
	w, ok := s.session.(frontends.HalfCloseWaiter)
	waits := ok && w.WaitsHalfClosed()
	s.pump()
	return waits || s.until.Load() != 0
}
