package frontendtest

import (
	"iter"
	"net"
	"runtime"
	"testing"

	"broker/frontends"
)

// Counter feeds a session on a broker without storage and counts the allocations of each step, by the session, the
// engine and the machine together. Tests that use it must not run in parallel: allocations are counted for the whole
// process.
type Counter struct {
	t       testing.TB
	session frontends.Session
	conn    *discardConn
	replies []byte
	allocs  map[string]uint64
	steps   map[string]int
	warming bool // do not count
}

// NewCounter opens a session of the front-end.
func NewCounter(t testing.TB, maker Maker) *Counter {
	t.Helper()
	stage := Open(t, maker, InMemory)
	conn := &discardConn{}
	return &Counter{
		t: t, session: stage.Front.Open(conn), conn: conn, allocs: make(map[string]uint64), steps: make(map[string]int),
	}
}

// warmRounds is the number of rounds after which slabs, maps and buffers have their final size.
const warmRounds = 10

// Rounds numbers the rounds of a measurement: some to warm up, then counted ones.
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

// Send feeds requests to the session and returns its replies, which are valid until the next call. The allocations
// count for the named step and number of requests. Without a name they do not count.
func (c *Counter) Send(step string, requests int, in []byte) []byte {
	c.t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for len(in) > 0 {
		n := c.session.Feed(in)
		if n == 0 {
			c.t.Fatalf("Feed used nothing of %.60q, replied %.80q", in, c.conn.out.Sendable(0))
		}
		in = in[n:]
	}
	runtime.ReadMemStats(&after)
	c.replies = append(c.replies[:0], c.conn.out.Sendable(0)...)
	c.conn.out.Sent(len(c.replies))
	if step != "" && !c.warming {
		c.allocs[step] += after.Mallocs - before.Mallocs
		c.steps[step] += requests
	}
	return c.replies
}

// Want fails the test if a step took more allocations for each request.
func (c *Counter) Want(step string, most float64) {
	c.t.Helper()
	if c.steps[step] == 0 {
		c.t.Fatalf("%s was never counted", step)
	}
	got := float64(c.allocs[step]) / float64(c.steps[step])
	c.t.Logf("%s: %.2f allocations", step, got)
	if got > most+raceDetectorAllocs {
		c.t.Errorf("%s: %.2f allocations a request, want at most %.2f", step, got, most)
	}
}

// discardConn is a connection whose client reads everything at once.
type discardConn struct{ out frontends.Outbox }

func (c *discardConn) Out() *frontends.Outbox { return &c.out }
func (c *discardConn) Backpressured() bool    { return false }
func (c *discardConn) Wake()                  {}
func (c *discardConn) CloseAfterFlush()       {}
func (c *discardConn) Abort()                 {}
func (c *discardConn) RemoteAddr() net.Addr   { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }
func (c *discardConn) FD() int                { return -1 }
