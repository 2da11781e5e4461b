package workq

import (
	"fmt"
	"net"
	"testing"

	"broker/access"
	"broker/core"
	"broker/frontends"
	"broker/frontends/frontendtest"
)

// bareConn is a connection whose client reads everything at once.
type bareConn struct{ out frontends.Outbox }

func (c *bareConn) Out() *frontends.Outbox { return &c.out }
func (c *bareConn) Backpressured() bool    { return false }
func (c *bareConn) Wake()                  {}
func (c *bareConn) CloseAfterFlush()       {}
func (c *bareConn) Abort()                 {}
func (c *bareConn) RemoteAddr() net.Addr   { return nil }
func (c *bareConn) FD() int                { return -1 }

// BenchmarkAddLeaseComplete adds, leases and completes 64 jobs at a time on a broker without storage: the cost of
// session, engine and machine.
func BenchmarkAddLeaseComplete(b *testing.B) {
	s := frontendtest.Open(b, plain, frontendtest.InMemory)
	conn := &bareConn{}
	session := New(access.Unrestricted(s.Broker, core.Workq), Options{}).Open(conn)
	body := make([]byte, 256)
	talk := func(text []byte) {
		for len(text) > 0 {
			n := session.Feed(text)
			if n == 0 {
				b.Fatalf("Feed used nothing of %.40q, replied %.80q", text, conn.out.Sendable(0))
			}
			text = text[n:]
		}
		conn.out.Sent(conn.out.Len())
	}
	const together = 64
	var adds, leases, completes []byte
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		adds, leases, completes = adds[:0], leases[:0], completes[:0]
		for i := range together {
			id := core.Alias(uint64(n*together + i))
			id = "0000" + id[4:] // not an alias, but a valid UUIDv4
			adds = fmt.Appendf(adds, "add %s queue 60000 600000 %d\r\n%s\r\n", id, len(body), body)
			leases = append(leases, "lease queue 0\r\n"...)
			completes = fmt.Appendf(completes, "complete %s 2\r\nok\r\ndelete %s\r\n", id, id)
		}
		talk(adds)
		talk(leases)
		talk(completes)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*together), "ns/job")
}
