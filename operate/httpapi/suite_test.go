package httpapi

import (
	"encoding/json"
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
	"broker/frontends/frontendtest"
	"broker/operate/service"
)

// HTTP passes the test suite of the front-ends. A stage has no sockets. Its connections are pipes to a net/http server,
// which has its own goroutines. A synctest bubble detects when they are idle.
func TestHTTPBehavesAsAFrontend(t *testing.T) {
	t.Parallel()
	frontendtest.Run(t, frontendtest.Dialect{Within: func(t *testing.T, run func(*testing.T, frontendtest.Dialect)) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) { run(t, suiteDialect(t)) })
	}})
}

func suiteDialect(t *testing.T) frontendtest.Dialect {
	t.Helper()
	return frontendtest.Dialect{
		New: func(b core.Broker) frontends.Frontend { return newSuiteFront(t, b) },
		SubmitRequest: func(n int, queue, body string) []byte {
			job, err := json.Marshal(map[string]any{
				"id": fmt.Sprintf("job-%d", n), "queue": queue, "body": body, "lease_for_s": 60, "backoff": "none",
			})
			if err != nil {
				t.Fatal(err)
			}
			return suiteRequest("POST", "/api/v1/jobs", string(job))
		},
		SubmitReply: func(c *frontendtest.Client, n int) {
			t.Helper()
			if status, job := suiteResponse(t, c); status != http.StatusCreated ||
				job["id"] != fmt.Sprintf("job-%d", n) {
				t.Fatalf("submission %d: %d %v", n, status, job)
			}
		},
		Lease: func(c *frontendtest.Client, queue string) (frontendtest.Leased, bool) {
			t.Helper()
			c.SendBytes(suiteRequest("POST", "/api/v1/queues/"+queue+"/lease", "{}"))
			status, lease := suiteResponse(t, c)
			if status == http.StatusNoContent {
				return frontendtest.Leased{}, false
			}
			job, _ := lease["job"].(map[string]any)
			token, _ := lease["lease"].(string)
			body, _ := job["body"].(string)
			return frontendtest.Leased{ID: token, Queue: queue, Body: body}, status == http.StatusOK
		},
		Complete: func(c *frontendtest.Client, job frontendtest.Leased) {
			t.Helper()
			c.SendBytes(suiteRequest("POST", "/api/v1/leases/"+job.ID+"/complete", `{"result":"done"}`))
			if status, p := suiteResponse(t, c); status != http.StatusNoContent {
				t.Fatalf("complete: %d %v", status, p)
			}
		},
		LeaseFor: time.Minute,
		Ping:     suiteRequest("GET", "/nothing", ""),
		Pong: func(c *frontendtest.Client) {
			t.Helper()
			if status, p := suiteResponse(t, c); status != http.StatusNotFound || p["code"] != codeRouteNotFound {
				t.Fatalf("ping: %d %v", status, p)
			}
		},
		Garbage: [][]byte{
			[]byte("\x00REQ\x00\x00\x00\x01"), []byte("GET\r\n\r\n"), []byte("GET / HTTP/9.9\r\n\r\n"),
			suiteRequest("POST", "/api/v1/jobs", "{"),
			[]byte("POST /api/v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n"),
			[]byte("POST /api/v1/jobs HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"),
		},
		Oversize: []byte("POST /api/v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\n\r\n"),
	}
}

func suiteRequest(method, path, body string) []byte {
	return fmt.Appendf(nil, "%s %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", method, path,
		len(body), body)
}

// suiteResponse reads a response.
func suiteResponse(t *testing.T, c *frontendtest.Client) (status int, object map[string]any) {
	t.Helper()
	head := c.ReadUntil("\r\n\r\n")
	status, err := strconv.Atoi(strings.Fields(head)[1])
	if err != nil {
		t.Fatal(err)
	}
	var body []byte
	if _, rest, sized := strings.Cut(head, "Content-Length: "); sized {
		text, _, _ := strings.Cut(rest, "\r\n")
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		body = c.Read(n)
	} else if strings.Contains(head, "Transfer-Encoding: chunked") {
		for {
			n, err := strconv.ParseInt(strings.TrimSpace(c.ReadUntil("\r\n")), 16, 32)
			if err != nil {
				t.Fatal(err)
			}
			body = append(body, c.Read(int(n) + 2)[:n]...)
			if n == 0 {
				break
			}
		}
	}
	if len(body) > 0 {
		if err := json.Unmarshal(body, &object); err != nil {
			t.Fatalf("%v: %s", err, body)
		}
	}
	return status, object
}

// suiteFront is the HTTP server as a front-end.
type suiteFront struct {
	accept chan net.Conn
	closed chan struct{}
}

func newSuiteFront(t *testing.T, b core.Broker) *suiteFront {
	t.Helper()
	s, err := service.New(service.Options{Broker: b})
	if err != nil {
		t.Fatal(err)
	}
	api := New(Options{Now: b.Now})
	api.Ready(Backend{Broker: b, Service: s})
	f := &suiteFront{accept: make(chan net.Conn), closed: make(chan struct{})}
	server := api.HTTP()
	served := make(chan struct{})
	go func() { // the cleanup waits for it
		defer close(served)
		_ = server.Serve(f) // ends when the server is closed
	}()
	t.Cleanup(func() {
		_ = server.Close() // the connections are pipes
		<-served
		s.Close()
		time.Sleep(time.Second) //nolint:forbidigo // bubble time: the server closes a connection half a second late
	})
	return f
}

func (f *suiteFront) Accept() (net.Conn, error) {
	select {
	case c := <-f.accept:
		return c, nil
	case <-f.closed:
		return nil, net.ErrClosed
	}
}

func (f *suiteFront) Close() error   { close(f.closed); return nil }
func (f *suiteFront) Addr() net.Addr { return &net.TCPAddr{} }
func (f *suiteFront) Name() string   { return "http" }
func (f *suiteFront) Bounds() frontends.Bounds {
	return frontends.Bounds{MaxInput: 1 << 20, MaxOutput: 1 << 30}
}
func (f *suiteFront) Tick(core.Instant) {}
func (f *suiteFront) dial() (client net.Conn) {
	client, server := net.Pipe()
	f.accept <- server
	return client
}

func (f *suiteFront) Open(c frontends.Conn) frontends.Session {
	s := &suiteSession{front: f, conn: c, pipe: f.dial()}
	s.more = sync.NewCond(&s.mu)
	go s.send()    // both end when the pipe is closed
	go s.receive() // likewise
	return s
}

// suiteSession is a connection to the server.
type suiteSession struct {
	front *suiteFront
	conn  frontends.Conn // nil: no client waits for the response
	pipe  net.Conn

	mu    sync.Mutex // guards the fields below
	more  *sync.Cond // in has grown, or the pipe is closed
	in    []byte
	out   []byte
	ended bool
}

// send passes the client's input to the server.
func (s *suiteSession) send() {
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
func (s *suiteSession) receive() {
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

func (s *suiteSession) Feed(in []byte) int {
	s.mu.Lock()
	s.in = append(s.in, in...)
	s.more.Broadcast()
	s.mu.Unlock()
	s.Deliver()
	return len(in)
}

func (s *suiteSession) Deliver() {
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

// Refusal is the response to a submission after the store has failed.
func (s *suiteSession) Refusal() []byte {
	c := &suiteSession{front: s.front, pipe: s.front.dial()}
	c.more = sync.NewCond(&c.mu)
	go c.send()
	go c.receive()
	defer c.Closed()
	c.mu.Lock()
	c.in = suiteRequest("POST", "/api/v1/jobs", `{"queue":"refused"}`)
	c.more.Broadcast()
	c.mu.Unlock()
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.out
}

func (s *suiteSession) EOF([]byte) {}

func (s *suiteSession) Closed() { _ = s.pipe.Close() }
