package frontendtest

import (
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"broker/core"
	"broker/frontends"
)

// httpFront is a net/http server as a front-end. A stage has no sockets: its connections are pipes to the server, which
// has its own goroutines. The bubble of the test detects when they are idle, so a case runs in one (WithinBubble).
type httpFront struct {
	accept  chan net.Conn
	closed  chan struct{}
	refused []byte
}

// WithinBubble is a Dialect whose cases run in synctest bubbles, each with a dialect of its own. atLeader is
// Dialect.AtLeader.
func WithinBubble(atLeader bool, dialect func(*testing.T) Dialect) Dialect {
	return Dialect{AtLeader: atLeader, Within: func(t *testing.T, run func(*testing.T, Dialect)) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			d := dialect(t)
			d.Settle = synctest.Wait
			run(t, d)
		})
	}}
}

// NewHTTP makes a front-end of a server. refused is a request that a broker with a failed store refuses; stop is called
// at the end of the test, after the last request.
func NewHTTP(t *testing.T, server *http.Server, refused []byte, stop func()) frontends.Frontend {
	t.Helper()
	f := &httpFront{accept: make(chan net.Conn), closed: make(chan struct{}), refused: refused}
	served := make(chan struct{})
	go func() { // the cleanup waits for it
		defer close(served)
		_ = server.Serve(f) // ends when the server is closed
	}()
	t.Cleanup(func() {
		_ = server.Close() // the connections are pipes
		<-served
		stop()
		time.Sleep(time.Second) //nolint:forbidigo // bubble time: the server closes a connection half a second late
	})
	return f
}

// HTTPRequest is a request with a body. headers are lines, each with its end.
func HTTPRequest(method, path, body string, headers ...string) []byte {
	return fmt.Appendf(nil, "%s %s HTTP/1.1\r\nHost: localhost\r\n%sContent-Length: %d\r\n\r\n%s", method, path,
		strings.Join(headers, ""), len(body), body)
}

// HTTPResponse reads a response.
func (c *Client) HTTPResponse() (status int, body []byte) {
	c.stage.t.Helper()
	head := c.ReadUntil("\r\n\r\n")
	number := func(text string, base int) int {
		n, err := strconv.ParseInt(strings.TrimSpace(text), base, 32)
		if err != nil {
			c.stage.t.Fatalf("%v: %q", err, head)
		}
		return int(n)
	}
	if _, rest, sized := strings.Cut(head, "Content-Length: "); sized {
		text, _, _ := strings.Cut(rest, "\r\n")
		body = c.Read(number(text, 10))
	} else if strings.Contains(head, "Transfer-Encoding: chunked") {
		for n := -1; n != 0; {
			n = number(c.ReadUntil("\r\n"), 16)
			body = append(body, c.Read(n + 2)[:n]...)
		}
	}
	return number(strings.Fields(head)[1], 10), body
}

func (f *httpFront) Accept() (net.Conn, error) {
	select {
	case c := <-f.accept:
		return c, nil
	case <-f.closed:
		return nil, net.ErrClosed
	}
}

func (f *httpFront) Close() error   { close(f.closed); return nil }
func (f *httpFront) Addr() net.Addr { return &net.TCPAddr{} }
func (f *httpFront) Name() string   { return "http" }
func (f *httpFront) Bounds() frontends.Bounds {
	return frontends.Bounds{MaxInput: 1 << 20, MaxOutput: 1 << 30}
}
func (f *httpFront) Tick(core.Instant) {}
func (f *httpFront) dial() (client net.Conn) {
	client, server := net.Pipe()
	f.accept <- server
	return client
}

func (f *httpFront) Open(c frontends.Conn) frontends.Session {
	s := &httpSession{front: f, conn: c, pipe: f.dial()}
	s.more = sync.NewCond(&s.mu)
	go s.send()    // both end when the pipe is closed
	go s.receive() // likewise
	return s
}

// httpSession is a connection to the server.
type httpSession struct {
	front *httpFront
	conn  frontends.Conn // nil: no client waits for the response
	pipe  net.Conn

	mu    sync.Mutex // guards the fields below
	more  *sync.Cond // in has grown, or the pipe is closed
	in    []byte
	out   []byte
	ended bool
}

// send passes the client's input to the server.
func (s *httpSession) send() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		for len(s.in) == 0 && !s.ended {
			s.more.Wait()
		}
		if s.ended {
			return
		}
		p := s.in
		s.in = nil
		s.mu.Unlock()
		_, err := s.pipe.Write(p)
		s.mu.Lock()
		s.ended = s.ended || err != nil
	}
}

// receive stores the server's output.
func (s *httpSession) receive() {
	buf := make([]byte, 64<<10)
	for {
		n, err := s.pipe.Read(buf)
		s.mu.Lock()
		s.out = append(s.out, buf[:n]...)
		s.ended = s.ended || err != nil
		s.more.Broadcast()
		s.mu.Unlock()
		if s.conn != nil {
			s.conn.Wake()
		}
		if err != nil {
			return
		}
	}
}

func (s *httpSession) Feed(in []byte) int {
	s.mu.Lock()
	s.in = append(s.in, in...)
	s.more.Broadcast()
	s.mu.Unlock()
	s.Deliver()
	return len(in)
}

func (s *httpSession) Deliver() {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.out) > 0 {
		s.conn.Out().Put(append(s.conn.Out().Buf(), s.out...), 0)
		s.out = nil
	}
	if s.ended {
		s.conn.CloseAfterFlush()
	}
}

// Refusal is the response to the refused request after the store has failed.
func (s *httpSession) Refusal() []byte {
	c := &httpSession{front: s.front, pipe: s.front.dial()}
	c.more = sync.NewCond(&c.mu)
	go c.send()
	go c.receive()
	defer c.Closed()
	c.mu.Lock()
	c.in = s.front.refused
	c.more.Broadcast()
	c.mu.Unlock()
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.out
}

func (s *httpSession) EOF([]byte) {}

func (s *httpSession) Closed() { _ = s.pipe.Close() }
