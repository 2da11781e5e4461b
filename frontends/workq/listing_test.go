package workq

import (
	"fmt"
	"net"
	"strings"
	"testing"

	"broker/frontends"
	"broker/frontends/frontendtest"
)

// slowConn is a connection whose client reads only when the test calls read.
type slowConn struct {
	frontends.Conn
	out   frontends.Outbox
	woken bool
}

const slowLimit = 1 << 20

func (c *slowConn) Out() *frontends.Outbox { return &c.out }
func (c *slowConn) Backpressured() bool    { return c.out.Len() > slowLimit }
func (c *slowConn) Wake()                  { c.woken = true }
func (c *slowConn) RemoteAddr() net.Addr   { return nil }
func (c *slowConn) CloseAfterFlush()       {}

// read takes all output.
func (c *slowConn) read(s *frontendtest.Stage) string {
	s.Settle()
	text := string(c.out.Sendable(s.Broker.Committed()))
	c.out.Sent(len(text))
	return text
}

// A page of large jobs is read and written in steps, at the speed of the client.
func TestLargeListIsWrittenInSteps(t *testing.T) {
	t.Parallel()
	const jobs, size = 30, 1 << 20
	s := frontendtest.Open(t, plain, frontendtest.InMemory)
	producer, body := s.Dial("producer"), strings.Repeat("x", size-1)
	var want strings.Builder
	fmt.Fprintf(&want, "+OK %d\r\n", jobs)
	for n := range jobs {
		text := fmt.Sprint(body, n%10)
		producer.Send(fmt.Sprintf("add %s q 1000 60000 %d\r\n%s\r\n", idOf(n), size, text))
		producer.Want("+OK\r\n")
		payload := text
		if n == jobs-1 { // removed before it is written
			payload = ""
		}
		fmt.Fprintf(&want, "%s 12\r\nname q\r\nttr 1000\r\nttl 60000\r\npayload-size %d\r\npayload %s\r\n"+
			"max-attempts 0\r\nattempts 0\r\nmax-fails 0\r\nfails 0\r\npriority 0\r\nstate 0\r\ncreated 2030-01-01T00:00:00Z\r\n",
			idOf(n), len(payload), payload)
	}
	c := &slowConn{}
	session := s.Front.Open(c)
	in := []byte("inspect jobs q 0 100\r\ninspect queue never-used\r\n")
	used := session.Feed(in)
	if !session.(frontends.Blocker).Blocked() || session.Feed(in[used:]) != 0 ||
		!session.(frontends.HalfCloseWaiter).WaitsHalfClosed() {
		t.Fatal("the next command does not wait for the list")
	}
	producer.Send("delete " + idOf(jobs-1) + "\r\n")
	producer.Want("+OK\r\n")
	var got strings.Builder
	for range 100 * jobs {
		before := c.out.Len()
		c.woken = false
		session.Deliver()
		if n := c.out.Len(); n-before > listStep+chunkSize || n > slowLimit+chunkSize {
			t.Fatalf("one step writes %d bytes, %d wait", n-before, n)
		}
		if c.woken {
			continue
		}
		if !session.(frontends.Blocker).Blocked() {
			break
		}
		got.WriteString(c.read(s))
	}
	session.Feed(in[used:])
	got.WriteString(c.read(s))
	want.WriteString("-NOT-FOUND\r\n")
	if got.String() != want.String() {
		t.Errorf("%d bytes, want %d; they end in %q", got.Len(), want.Len(), got.String()[max(0, got.Len()-100):])
	}
	session.Closed()

	// A half-closed client gets the whole page.
	last := s.Dial("last")
	last.Send("inspect jobs q 0 3\r\n")
	last.EOF()
	if got := string(last.Rest()); !strings.HasPrefix(got, "+OK 3\r\n") || len(got) < 3*size {
		t.Errorf("half-closed: %d bytes", len(got))
	}
}
