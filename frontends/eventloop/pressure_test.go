package eventloop

import (
	"fmt"
	"io"
	"strings"
	"syscall"
	"testing"
	"time"
)

// roomyLimit is an output limit that a throttled client never reaches.
const roomyLimit = 4 << 20

func TestUnreadOutputThrottlesRequestsOfOneRead(t *testing.T) {
	t.Parallel()
	eachTransport(t, func(t *testing.T, f *fixture, dial func(*testing.T) *client) {
		c := dial(t)
		c.send(strings.Repeat("big 500000\n", 16) + "echo end\n") // requests 8 MB with one packet
		eventually(t, "crowded", func() bool { return f.count(func(c *conn) bool { return c.backpressured }) == 1 })
		for range 16 {
			c.want(strings.Repeat("x", 500000))
		}
		c.want("end")
	}, bounds(1<<20, roomyLimit))
}

// The client sends far more than the input limit. It is not disconnected, because the server stops reading its socket.
func TestUnreadOutputStopsReading(t *testing.T) {
	t.Parallel()
	eachTransport(t, func(t *testing.T, f *fixture, dial func(*testing.T) *client) {
		c := dial(t)
		const lines = 4000
		line := func(i int) string { return fmt.Sprintf("%08d", i) + strings.Repeat("z", 1000) }
		for round := range 2 { // a socket can be paused again after it was resumed
			written := make(chan error, 1)
			go func() { // ends when everything is written, or the connection breaks
				for i := range lines {
					if _, err := io.WriteString(c, "echo "+line(i)+"\n"); err != nil {
						written <- err
						return
					}
				}
				written <- nil
			}()
			// While the client reads nothing, both kernels may wait for each other's window: it reads slowly.
			paused := func(c *conn) bool { return c.paused }
			read := 0
			for began := time.Now(); f.count(paused) != 1; time.Sleep(time.Millisecond) {
				if time.Since(began) > time.Duration(read+1)*time.Second {
					c.want(line(read))
					read++
				}
			}
			for i := read; i < lines; i++ {
				c.want(line(i))
			}
			if err := <-written; err != nil {
				t.Fatalf("round %d: %v", round, err)
			}
		}
		c.closeWrite()
		if rest := c.wantEnd(); rest != "" {
			t.Errorf("got %.80q after the end", rest)
		}
		eventually(t, "no descriptor", func() bool { return f.pools.sockets.Open() == 0 })
	}, bounds(1<<20, roomyLimit))
}

func TestHalfClosedSlowReaderReceivesEverything(t *testing.T) {
	t.Parallel()
	eachTransport(t, func(t *testing.T, f *fixture, dial func(*testing.T) *client) {
		c := dial(t)
		c.send(strings.Repeat("big 500000\n", 16) + "list 80\necho end\nunfi")
		c.closeWrite()
		eventually(t, "end seen", func() bool { return f.count(func(c *conn) bool { return c.eof }) == 1 })
		for range 16 {
			c.want(strings.Repeat("x", 500000))
		}
		for range 80 {
			c.want(strings.Repeat("x", pageBytes))
		}
		c.want("end")
		if rest := c.wantEnd(); rest != "left 4\n" {
			t.Errorf("got %.80q after the end", rest)
		}
		eventually(t, "no descriptor", func() bool { return f.pools.sockets.Open() == 0 })
	}, bounds(1<<20, roomyLimit))
}

func TestListingPausesForASlowReader(t *testing.T) {
	t.Parallel()
	eachTransport(t, func(t *testing.T, f *fixture, dial func(*testing.T) *client) {
		c := dial(t)
		c.send("list 80\necho after\n")
		eventually(t, "crowded", func() bool { return f.count(func(c *conn) bool { return c.backpressured }) == 1 })
		for range 80 {
			c.want(strings.Repeat("x", pageBytes))
		}
		c.want("after")
	}, bounds(1<<20, roomyLimit))
}

func TestSlowReaderThatVanishesIsNoticed(t *testing.T) {
	t.Parallel()
	eachTransport(t, func(t *testing.T, f *fixture, dial func(*testing.T) *client) {
		c := dial(t)
		go func() {
			for {
				if _, err := io.WriteString(c, "big 100000\n"+strings.Repeat("echo more\n", 1000)); err != nil {
					return
				}
			}
		}()
		eventually(t, "not read", func() bool { return f.count(func(c *conn) bool { return c.paused }) == 1 })
		c.reset()
		eventually(t, "session closed", func() bool { return f.toy.closed.Load() == 1 })
		eventually(t, "no descriptor", func() bool { return f.pools.sockets.Open() == 0 })
	}, bounds(1<<20, roomyLimit))
}

// Bytes that were buffered but not sent are lost with the connection, and the session is told how many.
func TestSessionLearnsHowMuchWasNotSent(t *testing.T) {
	t.Parallel()
	const size = 4_000_000
	for name, leave := range map[string]func(*client){
		"close":      func(c *client) { _ = c.Close() },
		"half-close": func(c *client) { c.closeWrite(); _ = c.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachTransport(t, func(t *testing.T, f *fixture, dial func(*testing.T) *client) {
				all := dial(t)
				all.send(fmt.Sprintf("big %d\nbye\n", size))
				all.want(strings.Repeat("x", size), "")
				_ = all.Close()
				eventually(t, "connection gone", func() bool { return f.Counts()["toy"].Open == 0 })
				if n := f.toy.lost.Load(); n != 0 {
					t.Errorf("%d bytes reported as unsent, though all were read", n)
				}
				some := dial(t)
				some.send(fmt.Sprintf("big %d\n", size))
				if _, err := io.CopyN(io.Discard, some.r, 1000); err != nil {
					t.Fatal(err)
				}
				leave(some)
				eventually(t, "loss told", func() bool { return f.toy.lost.Load() > size/4 })
				if n := f.toy.closed.Load(); n != 2 || f.toy.lost.Load() >= size {
					t.Errorf("%d sessions closed, %d bytes reported as unsent", n, f.toy.lost.Load())
				}
			}, bounds(1<<20, 16<<20))
		})
	}
}

// Output that the client did not ask for cannot be throttled: the limit is the last resort.
func TestOutputLimitEndsTheConnection(t *testing.T) {
	t.Parallel()
	eachTransport(t, func(t *testing.T, f *fixture, dial func(*testing.T) *client) {
		c := dial(t)
		c.send("pour 100000\n")
		eventually(t, "cut off", func() bool {
			f.toy.wakeAll()
			return f.toy.closed.Load() == 1
		})
		eventually(t, "connection gone", func() bool { return f.Counts()["toy"].Open == 0 })
		if !strings.Contains(f.log.String(), "output_limit") {
			t.Errorf("the log does not name the limit: %s", f.log)
		}
	})
}

func TestOneReplyLargerThanTheLimitIsSent(t *testing.T) {
	t.Parallel()
	eachTransport(t, func(t *testing.T, f *fixture, dial func(*testing.T) *client) {
		c := dial(t)
		for range 3 {
			c.send("big 4000000\n")
			c.want(strings.Repeat("x", 4000000))
		}
		c.send("later a\necho b\n")
		c.want("a", "b")
	})
}

func TestInputLimitEndsTheConnection(t *testing.T) {
	t.Parallel()
	eachTransport(t, func(t *testing.T, f *fixture, dial func(*testing.T) *client) {
		c := dial(t)
		go func() {
			for range 1000 {
				if _, err := c.Write(make([]byte, 10000)); err != nil {
					return
				}
			}
		}()
		eventually(t, "cut off", func() bool { return f.toy.closed.Load() == 1 })
		if !strings.Contains(f.log.String(), "input_limit") {
			t.Errorf("the log does not name the limit: %s", f.log)
		}
	})
}

// A resumed socket still detects a peer that vanishes.
func TestKeepaliveIsSetAfterAPause(t *testing.T) {
	t.Parallel()
	f := setup(t, bounds(1<<20, roomyLimit))
	c := f.dial(t)
	c.send("echo hello\n")
	c.want("hello")
	f.wantKeepalive(t)
	asked := make(chan struct{})
	go func() { // ends when everything is written: the reader below takes it
		defer close(asked)
		for range 4000 {
			_, _ = io.WriteString(c, "echo "+strings.Repeat("z", 1000)+"\n") // a failure shows in the reads
		}
	}()
	eventually(t, "not read", func() bool { return f.count(func(c *conn) bool { return c.paused }) == 1 })
	for range 4000 {
		c.want(strings.Repeat("z", 1000))
	}
	<-asked
	eventually(t, "read again", func() bool {
		return f.count(func(c *conn) bool { return c.transport.(*tcpTransport).gc != nil }) == 1
	})
	f.wantKeepalive(t)
}

// wantKeepalive checks the socket options of every connection.
func (f *fixture) wantKeepalive(t *testing.T) {
	t.Helper()
	seconds := func(d time.Duration) int { return int(d / time.Second) }
	for _, o := range []struct{ level, option, want int }{
		{syscall.SOL_SOCKET, syscall.SO_KEEPALIVE, 1},
		{syscall.IPPROTO_TCP, syscall.TCP_KEEPIDLE, seconds(keepaliveIdle)},
		{syscall.IPPROTO_TCP, syscall.TCP_KEEPINTVL, seconds(keepaliveInterval)},
		{syscall.IPPROTO_TCP, syscall.TCP_KEEPCNT, keepaliveCount},
		{syscall.IPPROTO_TCP, syscall.TCP_NODELAY, 1},
	} {
		right := f.count(func(c *conn) bool {
			got, err := syscall.GetsockoptInt(c.transport.(*tcpTransport).fd, o.level, o.option)
			return err == nil && got == o.want
		})
		if right != 1 {
			t.Errorf("option %d of level %d is not %d", o.option, o.level, o.want)
		}
	}
}

// count returns the number of connections for which is returns true. is runs on their loops.
func (f *fixture) count(is func(*conn) bool) int {
	found := make(chan int)
	loops := 0
	f.schedule(func(l *loop) {
		n := 0
		for c := range l.conns {
			if c.phase == serving && is(c) {
				n++
			}
		}
		found <- n
	}, func(*loop) bool {
		loops++
		return true
	})
	n := 0
	for range loops {
		n += <-found
	}
	return n
}
