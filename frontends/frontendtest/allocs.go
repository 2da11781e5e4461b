package frontendtest

import (
	"iter"
	"net"
	"runtime"
	"testing"

	"broker/frontends"
)

// Counter feeds a session on a broker that stores nothing, and counts the memory taken by each step: by the session, the
// engine and the machine together. Tests that use it do not run in parallel, since memory is counted for the process.
type Counter struct {
	t       testing.TB
	session frontends.Session
	conn    *muteConn
	said    []byte
	allocs  map[string]uint64
	steps   map[string]int
	warming bool // nothing is counted
}

// NewCounter opens a session of the front-end.
func NewCounter(t testing.TB, maker Maker) *Counter {
	t.Helper()
	stage := Open(t, maker, InMemory)
	conn := &muteConn{}
	return &Counter{
		t: t, session: stage.Front.Open(conn), conn: conn, allocs: make(map[string]uint64), steps: make(map[string]int),
	}
}

// warmRounds is how many rounds it takes until slabs, maps and buffers have grown to their size.
const warmRounds = 10

// Rounds numbers the rounds of a measurement from zero: some in which nothing is counted, then so many that are.
func (c *Counter) Rounds(counted int) iter.Seq[int] {
	return func(yield func(int) bool) {
		for round := range warmRounds + counted {
			c.warming = round < warmRounds
			if !yield(round) {
				return
			}
		}
	}
}

// Say feeds requests and answers what the session says to them, valid until the next call. What it allocates is counted
// for the step of that name, as so many requests; with no name it is not counted.
func (c *Counter) Say(step string, requests int, in []byte) []byte {
	c.t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for len(in) > 0 {
		n := c.session.Feed(in)
		if n == 0 {
			c.t.Fatalf("stuck before %.60q, said %.80q", in, c.conn.out.Sendable(0))
		}
		in = in[n:]
	}
	runtime.ReadMemStats(&after)
	c.said = append(c.said[:0], c.conn.out.Sendable(0)...)
	c.conn.out.Sent(len(c.said))
	if step != "" && !c.warming {
		c.allocs[step] += after.Mallocs - before.Mallocs
		c.steps[step] += requests
	}
	return c.said
}

// Want fails where a step took more than so many allocations a request.
func (c *Counter) Want(step string, most float64) {
	c.t.Helper()
	if c.steps[step] == 0 {
		c.t.Fatalf("%s was never counted", step)
	}
	got := float64(c.allocs[step]) / float64(c.steps[step])
	c.t.Logf("%s: %.2f allocations", step, got)
	if got > most+detectorAllocs {
		c.t.Errorf("%s: %.2f allocations a request, want at most %.2f", step, got, most)
	}
}

// muteConn is a connection whose other end takes everything at once.
type muteConn struct{ out frontends.Outbox }

func (c *muteConn) Out() *frontends.Outbox { return &c.out }
func (c *muteConn) Backpressured() bool    { return false }
func (c *muteConn) Wake()                  {}
func (c *muteConn) CloseAfterFlush()       {}
func (c *muteConn) Abort()                 {}
func (c *muteConn) RemoteAddr() net.Addr   { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }
func (c *muteConn) FD() int                { return -1 }
