package httpapi

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"broker/core"
)

// seat is a connection that records when it is closed.
type seat struct {
	net.Conn
	closed bool
}

// Close implements net.Conn.
func (s *seat) Close() error {
	s.closed = true
	return nil
}

func TestBusyConnectionsAreNotReplaced(t *testing.T) {
	t.Parallel()
	l := newConnLimiter(2)
	enter := func() *seat {
		s := &seat{}
		l.connState(s, http.StateNew)
		return s
	}
	first, second := enter(), enter()
	l.count(first, 1)
	l.count(second, 1)
	third := enter()
	if first.closed || second.closed || third.closed || !l.count(third, 1) {
		t.Fatal("with two busy connections a third is not let in for health alone")
	}
	l.connState(third, http.StateClosed)
	l.count(second, -1)
	fourth := enter()
	if !second.closed || fourth.closed || l.count(fourth, 0) {
		t.Fatal("a connection that was answered does not make room for a new one")
	}
	l.connState(first, http.StateClosed)
	l.connState(fourth, http.StateClosed)
	fifth, sixth := enter(), enter()
	if fifth.closed || sixth.closed || l.count(fifth, 0) || l.count(sixth, 0) {
		t.Fatal("no room, though all have left")
	}
}

func TestConnectionsBeyondTheReserveAreClosed(t *testing.T) {
	t.Parallel()
	l := newConnLimiter(1)
	for i := range 1 + reservedConns + 5 {
		s := &seat{}
		l.connState(s, http.StateNew)
		l.count(s, 1)
		if s.closed != (i > reservedConns) {
			t.Fatalf("connection %d: closed is %v", i, s.closed)
		}
	}
}

// Clients that never read their responses only use up connections; health checks are still answered.
func TestHealthIsAnsweredBesideClientsThatNeverRead(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	const limit = 4
	f := setup(t, Options{MaxConns: limit})
	f.broker.queues = make([]core.QueueInfo, maxQueues)
	for i := range f.broker.queues {
		f.broker.queues[i].Name = strings.Repeat("q", 400) + strconv.Itoa(i)
	}
	f.ready()
	s := f.HTTP()
	served := make(chan error, 1)
	go func() { served <- s.Serve(ln) }()
	t.Cleanup(func() {
		_ = s.Close() // the test is over
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	dial := func() net.Conn {
		c, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() }) // it may be closed already
		return c
	}
	for range limit {
		c := dial()
		_ = c.(*net.TCPConn).SetReadBuffer(4096) // a hint
		if _, err := io.WriteString(c, strings.Repeat("GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n", 20)); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Read(make([]byte, 1)); err != nil { // the first response begins; read no more
			t.Fatal(err)
		}
	}
	ask := func(path string) int {
		c := dial()
		if _, err := io.WriteString(c, "GET "+path+" HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		_ = resp.Body.Close() // only the status matters
		return resp.StatusCode
	}
	for deadline := time.After(20 * time.Second); ask("/metrics") != http.StatusServiceUnavailable; {
		select {
		case <-deadline:
			t.Fatal("the limit is never reached")
		default:
		}
	}
	for range 2 * reservedConns {
		if got := ask("/healthz"); got != http.StatusOK {
			t.Fatalf("/healthz: %d", got)
		}
	}
}

func TestWaitingConnectionsMakeRoomForNewOnes(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := New(Options{Log: zerolog.Nop(), MaxConns: 3}).HTTP()
	served := make(chan error, 1)
	go func() { served <- s.Serve(ln) }()
	t.Cleanup(func() {
		_ = s.Close() // the test is over
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	visit := func() net.Conn {
		c, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() }) // it may be closed already
		return c
	}
	// request gets a response; then the connection is idle.
	request := func(c net.Conn) {
		t.Helper()
		if _, err := io.WriteString(c, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }() // read to its end
		if text, err := io.ReadAll(resp.Body); err != nil || !strings.Contains(string(text), "ok") {
			t.Fatalf("%s, %v", text, err)
		}
	}
	kept, silent, half := visit(), visit(), visit()
	if _, err := io.WriteString(half, "POST /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nhalf"); err != nil {
		t.Fatal(err)
	}
	// makesRoom sends requests, on the kept connection and on new ones, until c is closed. A missing header or body closes it
	// too, but only after ten seconds.
	makesRoom := func(c net.Conn, who string) {
		t.Helper()
		end := make(chan error, 1)
		go func() {
			_, err := c.Read(make([]byte, 1))
			end <- err
		}()
		late := time.After(6 * time.Second)
		for {
			request(kept)
			request(visit())
			select {
			case err := <-end:
				if err == nil {
					t.Errorf("%s is told something", who)
				}
				return
			case <-late:
				t.Fatalf("%s is still there", who)
			case <-time.After(time.Millisecond):
			}
		}
	}
	makesRoom(silent, "the one that never spoke")
	makesRoom(half, "the one whose body does not come")
	request(kept)
}
