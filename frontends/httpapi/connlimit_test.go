package httpapi

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
)

// seat is a connection that notes its end.
type seat struct {
	net.Conn
	closed bool
}

// Close implements net.Conn.
func (s *seat) Close() error {
	s.closed = true
	return nil
}

func TestConnectionsInTheirRequestAreNotClosedForOthers(t *testing.T) {
	t.Parallel()
	c := newCrowd(2)
	enter := func() *seat {
		s := &seat{}
		c.watch(s, http.StateNew)
		return s
	}
	first, second := enter(), enter()
	c.count(first, 1)
	c.count(second, 1)
	third := enter()
	if first.closed || second.closed || !third.closed {
		t.Fatal("two are busy, and a third is let in for one of them")
	}
	c.count(third, 1) // as its goroutine may say late
	c.count(second, 1)
	c.count(second, -1)
	fourth := enter()
	if second.closed || !fourth.closed {
		t.Fatal("one of two requests is answered, and its connection makes room")
	}
	c.count(second, -1)
	fifth := enter()
	if first.closed || !second.closed || fifth.closed {
		t.Fatal("the one that waits to ask again does not make room")
	}
	c.watch(second, http.StateClosed)
	c.watch(first, http.StateClosed)
	sixth := enter()
	if fifth.closed || sixth.closed {
		t.Fatal("no room, though one has left")
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
		t.Cleanup(func() { _ = c.Close() }) // it may be gone
		return c
	}
	// request has an answer, and then the connection waits for another.
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
	// makesRoom asks, with the kept connection and new ones, until c has ended. A header or a body that does not come ends it
	// too, but after ten seconds.
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
