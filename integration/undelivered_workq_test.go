package integration_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"broker/integration/harness"
)

// raw is a raw connection.
type raw struct {
	*net.TCPConn
	t *testing.T
	r *bufio.Reader
}

func dialRaw(t *testing.T, address string) *raw {
	t.Helper()
	nc, err := net.DialTimeout("tcp", address, harness.Patience)
	check(t, err)
	tc, isTCP := nc.(*net.TCPConn)
	if !isTCP {
		t.Fatalf("%T is not a TCP connection", nc)
	}
	t.Cleanup(func() { _ = tc.Close() })
	return rawOf(t, tc)
}

func rawOf(t *testing.T, tc *net.TCPConn) *raw {
	t.Helper()
	check(t, tc.SetDeadline(time.Now().Add(harness.Patience)))
	return &raw{TCPConn: tc, t: t, r: bufio.NewReaderSize(tc, 512)}
}

func (c *raw) send(text string) {
	c.t.Helper()
	_, err := io.WriteString(c, text)
	check(c.t, err)
}

// line reads up to the next newline.
func (c *raw) line() string {
	c.t.Helper()
	check(c.t, c.SetReadDeadline(time.Now().Add(harness.Patience)))
	text, err := c.r.ReadString('\n')
	if err != nil {
		c.t.Fatalf("after %.80q: %v", text, err)
	}
	return strings.TrimSuffix(text, "\r\n")
}

func (c *raw) want(lines ...string) {
	c.t.Helper()
	for _, want := range lines {
		if got := c.line(); got != want {
			c.t.Fatalf("got %.200q, want %q", got, want)
		}
	}
}

// skip reads a body of n bytes and the line end.
func (c *raw) skip(n int) {
	c.t.Helper()
	_, err := io.CopyN(io.Discard, c.r, int64(n)+2)
	check(c.t, err)
}

// wantEnd expects the connection to be closed without more output.
func (c *raw) wantEnd() {
	c.t.Helper()
	if rest, err := io.ReadAll(c.r); err != nil || len(rest) > 0 {
		c.t.Fatalf("got %.200q, %v; want the end", rest, err)
	}
}

func dialRawFaktory(t *testing.T, b *harness.Broker, hello string) *raw {
	t.Helper()
	conn, _ := greetFaktory(t, b.Faktory, hello)
	return rawOf(t, conn)
}

// endings are the ways in which a worker with unread replies disconnects.
var endings = map[string]func(*raw){
	"closes": func(c *raw) { _ = c.Close() },
	"resets": func(c *raw) { _, _ = c.SetLinger(0), c.Close() },
	"half-closes, then closes": func(c *raw) {
		_ = c.CloseWrite()
		time.Sleep(200 * time.Millisecond)
		_ = c.Close()
	},
}

func TestFaktoryUnsentJobGoesToTheNextWorker(t *testing.T) {
	t.Parallel()
	b := start(t)
	for how, end := range endings {
		for _, size := range []int{12 << 20, 30 << 20} {
			jid := newID()
			producer, gone := dialRawFaktory(t, b, `{"v":2}`), dialRawFaktory(t, b, `{"v":2,"wid":"gone"}`)
			producer.send(`PUSH {"jid":"` + jid + `","queue":"q","jobtype":"x","args":["`)
			producer.send(strings.Repeat("x", size) + "\"]}\r\n")
			producer.want("+OK")
			check(t, gone.SetReadBuffer(4096))
			gone.send("FETCH q\r\n")
			if head := gone.line(); len(head) < 9 {
				t.Fatalf("fetched %q", head)
			}
			gone.skip(1000)
			end(gone)
			next := dialRawFaktory(t, b, `{"v":2,"wid":"next"}`)
			head := "$-1"
			harness.Eventually(t, func() string { // a fetch waits for two seconds
				next.send("FETCH q\r\n")
				if head = next.line(); head == "$-1" {
					return fmt.Sprintf("%s, %d bytes: no job for the next worker", how, size)
				}
				return ""
			})
			n, err := strconv.Atoi(head[1:])
			check(t, err)
			check(t, next.CloseWrite()) // a half-closed client still receives its replies
			next.skip(n)
			next.wantEnd()
		}
	}
	c := dialRawFaktory(t, b, `{"v":2}`)
	c.send("FETCH q\r\n")
	c.want("$-1") // the first worker keeps the job
}

func TestWorkqUnsentJobIsLeasedAgain(t *testing.T) {
	t.Parallel()
	b := start(t)
	for how, end := range endings {
		producer, gone, next := dialRawFaktory(t, b, `{"v":2}`), dialRaw(t, b.Workq), dialRaw(t, b.Workq)
		id := newID()
		producer.send(`PUSH {"jid":"` + id + `","queue":"q","jobtype":"x","args":["`)
		producer.send(strings.Repeat("x", 12<<20) + "\"]}\r\n")
		producer.want("+OK")
		check(t, gone.SetReadBuffer(4096))
		gone.send("lease q 0\r\n")
		gone.want("+OK 1")
		gone.skip(1000)
		end(gone)
		next.send("lease q 60000\r\n")
		if first := next.line(); first != "+OK 1" {
			t.Fatalf("%s: the next worker received %q", how, first)
		}
		head := strings.Fields(next.line())
		n, err := strconv.Atoi(head[3])
		check(t, err)
		next.skip(n)
		next.send("lease q 0\r\ncomplete " + id + " 0\r\n\r\n")
		next.want("-TIMEOUT", "+OK")
	}
}
