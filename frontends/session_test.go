package frontends_test

import (
	"testing"

	"broker/frontends"
)

// lettered takes one letter a step. Capitals are costly.
type lettered struct {
	frontends.Requests
	steps, flushes int
}

// Step implements frontends.Stepper.
func (s *lettered) Step(in []byte) (used int, more bool) {
	s.steps++
	s.Costly = s.Costly || in[0] < 'a'
	return 1, true
}

// Flush implements frontends.Stepper.
func (s *lettered) Flush() { s.flushes++ }

// outConn is a connection that has only output.
type outConn struct {
	frontends.Conn
	out frontends.Outbox
}

// Out implements frontends.Conn.
func (c *outConn) Out() *frontends.Outbox { return &c.out }

// Feed returns after each costly request, so that the loop can serve others before the next one.
func TestFeedReturnsAfterACostlyRequest(t *testing.T) {
	t.Parallel()
	x := &lettered{}
	x.Conn = &outConn{}
	x.Init(x)
	for _, c := range []struct {
		in   string
		used int
	}{{"abc", 3}, {"aBc", 2}, {"ABC", 1}, {"abC", 3}, {"abc", 3}} {
		before := x.steps
		if n := x.Feed([]byte(c.in)); n != c.used || x.steps-before != c.used || x.flushes < x.steps {
			t.Errorf("%q: %d bytes are used in %d steps", c.in, n, x.steps-before)
		}
	}
}
