package eventloop

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"broker/frontends"
)

// modes are the settings of a server with gnet's loops, and of one with a loop for each connection.
var modes = map[string][]setting{"gnet": nil, "own": {ownLoops}}

func eachMode(t *testing.T, test func(t *testing.T, f *fixture), settings ...setting) {
	t.Helper()
	for name, mode := range modes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, setup(t, slices.Concat(settings, mode)...))
		})
	}
}

// eachTransport runs a test over each kind of connection, in each mode. A loop of one connection reads TCP and Unix
// sockets by the same code, so there TCP stands for both.
func eachTransport(
	t *testing.T, test func(t *testing.T, f *fixture, dial func(*testing.T) *client), settings ...setting,
) {
	t.Helper()
	eachMode(t, func(t *testing.T, f *fixture) { test(t, f, f.dial) }, settings...)
	t.Run("unix", func(t *testing.T) {
		t.Parallel()
		f := setup(t, slices.Concat(settings, []setting{overUnix(t)})...)
		test(t, f, f.dial)
	})
	t.Run("tls", func(t *testing.T) {
		t.Parallel()
		keys := newKeys(t)
		eachMode(t, func(t *testing.T, f *fixture) {
			test(t, f, func(t *testing.T) *client { return keys.dial(t, f) })
		}, slices.Concat(settings, []setting{keys.server})...)
	})
}

func TestPipelinedRequestsAreAnsweredInOrder(t *testing.T) {
	t.Parallel()
	eachTransport(t, func(t *testing.T, f *fixture, dial func(*testing.T) *client) {
		c := dial(t)
		go func() {
			for i := range 2000 {
				if _, err := fmt.Fprintf(c, "echo %d\nlater l%d\n", i, i); err != nil {
					return // the reads below fail
				}
			}
		}()
		for i := range 2000 {
			c.want(fmt.Sprint(i), fmt.Sprintf("l%d", i))
		}
	})
}

func TestInputSplitAnywhereGivesTheSameAnswers(t *testing.T) {
	t.Parallel()
	eachTransport(t, func(t *testing.T, f *fixture, dial func(*testing.T) *client) {
		c := dial(t)
		text := "echo one\nbody 5\nabcdeecho two\nlater three\necho four\n"
		for i := range text {
			c.send(text[i : i+1])
		}
		c.want("one", fmt.Sprintf("%08x", crc32.ChecksumIEEE([]byte("abcde"))), "two", "three", "four")
	})
}

func TestRepliesWaitForTheirCommit(t *testing.T) {
	t.Parallel()
	eachTransport(t, func(t *testing.T, f *fixture, dial func(*testing.T) *client) {
		c := dial(t)
		c.send("echo first\nhold 2 second\necho third\nhold 3 fourth\n")
		c.want("first")
		f.broker.committed.Store(1)
		f.toy.wakeAll()
		_ = c.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
		if _, err := c.r.Peek(1); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("a reply was sent before its commit: %v", err)
		}
		_ = c.SetReadDeadline(time.Now().Add(patience))
		f.broker.committed.Store(2)
		f.toy.wakeAll()
		c.want("second", "third")
		f.broker.committed.Store(3)
		f.toy.wakeAll()
		c.want("fourth")
	})
}

// A reply that is held is sent by the ticker if nothing wakes its connection after the commit. This counts as a fault;
// a wake-up that came does not, nor one that is on its way, however long that takes.
func TestAMissedWakeUpCostsAReplyATick(t *testing.T) {
	t.Parallel()
	eachTransport(t, func(t *testing.T, f *fixture, dial func(*testing.T) *client) {
		c := dial(t)
		c.send("hold 1 first\n")
		eventually(t, "session", func() bool { return f.toy.opened.Load() == 1 })
		f.broker.committed.Store(1)
		f.toy.wakeAll()
		c.want("first")
		c.send("hold 2 second\necho third\n")
		eventually(t, "reply held", func() bool { return f.count(func(c *conn) bool { return c.out.Held() > 0 }) == 1 })
		f.broker.committed.Store(2)
		f.broker.woken.Store(1)
		ticks := f.toy.ticks.Load()
		eventually(t, "three ticks", func() bool { return f.toy.ticks.Load() >= ticks+3 })
		if n := f.Counts()["toy"].Late; n != 0 {
			t.Fatalf("%d replies are counted as late before the wake-ups of their commit", n)
		}
		f.broker.woken.Store(2)
		c.want("second", "third")
		if n := f.Counts()["toy"].Late; n != 1 {
			t.Errorf("%d replies are counted as late", n)
		}
	})
}

func TestHeldRepliesAreRefusedWhenTheStoreFails(t *testing.T) {
	t.Parallel()
	eachTransport(t, func(t *testing.T, f *fixture, dial func(*testing.T) *client) {
		c := dial(t)
		c.send("hold 9 never\necho after\n")
		eventually(t, "session", func() bool { return f.toy.opened.Load() == 1 })
		f.broker.stopped.Store(true)
		eventually(t, "refusal", func() bool {
			f.toy.wakeAll()
			_ = c.SetReadDeadline(time.Now().Add(5 * time.Millisecond))
			_, err := c.r.Peek(1)
			return err == nil
		})
		_ = c.SetReadDeadline(time.Now().Add(patience))
		c.want("refused", "after")
	})
}

// A node that no longer leads has stopped. Its clients are told nothing of that: they connect to another node.
func TestNothingIsSentOnceASilentBrokerHasStopped(t *testing.T) {
	t.Parallel()
	f := setup(t, func(_ *fixture, o *Options, _ *Listener) { o.Silent = true })
	held, asking := f.dial(t), f.dial(t)
	held.send("hold 9 never\n")
	asking.send("echo before\n")
	asking.want("before")
	f.broker.stopped.Store(true)
	asking.send("echo after\n")
	f.toy.wakeAll()
	for name, c := range map[string]*client{"with a held reply": held, "that asks": asking} {
		if got := c.wantEnd(); got != "" {
			t.Errorf("a client %s got %q", name, got)
		}
	}
}

// What is durable when a node stops leading is told: nobody else would.
func TestDurableRepliesLeaveBeforeASilentBrokerIsLeft(t *testing.T) {
	t.Parallel()
	eachTransport(t, func(t *testing.T, f *fixture, dial func(*testing.T) *client) {
		c := dial(t)
		c.send("echo read\nhold 1 durable\necho after\nhold 9 never\n")
		c.want("read")
		f.broker.committed.Store(1)
		f.broker.stopped.Store(true)
		f.toy.wakeAll()
		if got := c.wantEnd(); got != "durable\n" {
			t.Errorf("got %q", got)
		}
	}, func(_ *fixture, o *Options, _ *Listener) { o.Silent = true })
}

func TestHalfClosedClientReceivesItsLastReplies(t *testing.T) {
	t.Parallel()
	eachTransport(t, func(t *testing.T, f *fixture, dial func(*testing.T) *client) {
		c := dial(t)
		c.send("echo one\nhold 5 two\nbig 600000\necho thr")
		c.closeWrite()
		c.want("one")
		eventually(t, "session closed", func() bool { return f.toy.closed.Load() == 1 })
		f.broker.committed.Store(5)
		c.want("two", strings.Repeat("x", 600000))
		if got := c.wantEnd(); got != "left 8\n" {
			t.Errorf("got %q after the last reply", got)
		}
		if n := f.toy.eofs.Load(); n != 1 {
			t.Errorf("EOF was called %d times", n)
		}
		eventually(t, "connection gone", func() bool { return f.Counts()["toy"].Open == 0 })
	}, bounds(1<<20, 64<<20))
}

func TestCloseAfterFlushSendsEverythingFirst(t *testing.T) {
	t.Parallel()
	eachTransport(t, func(t *testing.T, f *fixture, dial func(*testing.T) *client) {
		c := dial(t)
		c.send("big 4000000\nhold 1 held\nbye now\necho never\n")
		c.want(strings.Repeat("x", 4000000))
		f.broker.committed.Store(1)
		f.toy.wakeAll()
		c.want("held", "now")
		if rest := c.wantEnd(); rest != "" {
			t.Errorf("got %q after the end", rest)
		}
		_ = c.Close()
		eventually(t, "connection gone", func() bool { return f.Counts()["toy"].Open == 0 })
		if n := f.toy.closed.Load(); n != 1 {
			t.Errorf("Closed was called %d times", n)
		}
	}, bounds(1<<20, 64<<20))
}

func TestResetDoesNotOvertakeTheLastReply(t *testing.T) {
	t.Parallel()
	eachMode(t, func(t *testing.T, f *fixture) {
		for range 50 {
			c := f.dial(t)
			c.send("bye refused\n")
			for range 20 { // still sending what the server will not read
				_, _ = io.WriteString(c, strings.Repeat("y", 10000))
			}
			c.want("refused")
			_ = c.Close()
		}
	})
}

func TestLingeringIsBounded(t *testing.T) {
	t.Parallel()
	eachMode(t, func(t *testing.T, f *fixture) {
		c := f.dial(t)
		c.send("bye now\n")
		c.want("now")
		if rest := c.wantEnd(); rest != "" {
			t.Errorf("got %q after the end", rest)
		}
		eventually(t, "server gives up on a client that does not close", func() bool { return f.Counts()["toy"].Open == 0 })
	})
}

func TestPanicOfASessionEndsItsConnectionOnly(t *testing.T) {
	t.Parallel()
	eachTransport(t, func(t *testing.T, f *fixture, dial func(*testing.T) *client) {
		other, c := dial(t), dial(t)
		other.send("echo before\n")
		other.want("before")
		c.send("echo one\npanic\n")
		c.wantEnd()
		eventually(t, "session closed", func() bool { return f.toy.closed.Load() == 1 })
		other.send("echo after\n")
		other.want("after")
		if !strings.Contains(f.log.String(), "as asked") || !strings.Contains(f.log.String(), "toy_test.go") {
			t.Errorf("the log does not report the panic: %s", f.log)
		}
	})
}

func TestAbortEndsTheConnection(t *testing.T) {
	t.Parallel()
	eachTransport(t, func(t *testing.T, f *fixture, dial func(*testing.T) *client) {
		c := dial(t)
		c.send("abort\n")
		c.wantEnd()
		eventually(t, "session closed", func() bool { return f.toy.closed.Load() == 1 })
	})
}

func TestLargeBodyArrivesWhole(t *testing.T) {
	t.Parallel()
	eachTransport(t, func(t *testing.T, f *fixture, dial func(*testing.T) *client) {
		c := dial(t)
		body := make([]byte, 4<<20)
		for i := range body {
			body[i] = byte(i * 7)
		}
		go func() { _, _ = c.Write(append([]byte(fmt.Sprintf("body %d\n", len(body))), body...)) }()
		c.want(fmt.Sprintf("%08x", crc32.ChecksumIEEE(body)))
	}, bounds(5<<20, 1<<20))
}

func TestGarbageDoesNotAffectOtherConnections(t *testing.T) {
	t.Parallel()
	eachTransport(t, func(t *testing.T, f *fixture, dial func(*testing.T) *client) {
		var wg sync.WaitGroup
		for i := range 20 {
			c := dial(t)
			wg.Go(func() {
				r := rand.New(rand.NewPCG(1, uint64(i)))
				p := make([]byte, 1+r.IntN(50000))
				for j := range p {
					p[j] = byte(r.Uint32())
				}
				_, _ = c.Write(p)
				_ = c.Close()
			})
		}
		wg.Wait()
		c := dial(t)
		c.send("echo still here\n")
		c.want("still here")
		_ = c.Close()
		eventually(t, "all gone", func() bool { return f.Counts()["toy"].Open == 0 })
	})
}

func TestGarbageInsteadOfATLSHandshakeClosesTheConnection(t *testing.T) {
	t.Parallel()
	keys := newKeys(t)
	f := setup(t, keys.server)
	c := f.dial(t)
	c.send("this is no hello\n\n\n")
	c.wantEnd()
	eventually(t, "gone", func() bool { return f.Counts()["toy"].Open == 0 })
	good := keys.dial(t, f)
	good.send("echo x\n")
	good.want("x")
}

func TestTLSHandshakeOnAPortWithoutTLSClosesTheConnection(t *testing.T) {
	t.Parallel()
	eachMode(t, func(t *testing.T, f *fixture) {
		c := f.dial(t)
		c.send("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")
		c.wantEnd()
		eventually(t, "gone", func() bool { return f.Counts()["toy"].Open == 0 })
		later := f.dial(t)
		later.send("echo x\n")
		later.want("x")
		later.send("\x16\x03\n") // not the first bytes
		later.send("echo y\n")
		later.want("what?", "y")
	})
}

func TestCertificateIsReplacedAtRunTime(t *testing.T) {
	t.Parallel()
	keys := newKeys(t)
	f := setup(t, keys.server)
	before := keys.dial(t, f)
	keys.renew(t)
	after := keys.dial(t, f)
	for _, c := range []*client{before, after} {
		c.send("echo x\n")
		c.want("x")
	}
	if a, b := keys.serial(before), keys.serial(after); a == b {
		t.Errorf("both connections saw certificate %s", a)
	}
}

func TestOneWakeUpServesManyConnections(t *testing.T) {
	t.Parallel()
	eachMode(t, func(t *testing.T, f *fixture) {
		const n = 500
		clients := make([]*client, n)
		for i := range clients {
			clients[i] = f.dial(t)
			clients[i].send(fmt.Sprintf("later %d\n", i))
		}
		eventually(t, "all open", func() bool { return f.Counts()["toy"].Open == n })
		close(f.toy.release)
		for i, c := range clients {
			c.want(fmt.Sprint(i))
		}
		for _, c := range clients {
			_ = c.Close()
		}
		eventually(t, "all gone", func() bool { return f.Counts()["toy"].Open == 0 && f.toy.closed.Load() == n })
	}, withheld)
}

func TestConnectionMarkedTwiceIsServedOnce(t *testing.T) {
	t.Parallel()
	l := newLoop()
	var scheduled int
	l.schedule = func() { scheduled++ }
	c := &conn{loop: l, phase: gone}
	for range 5 {
		c.Wake()
	}
	if len(l.marked) != 1 || scheduled != 1 {
		t.Errorf("marked %d times, scheduled %d times", len(l.marked), scheduled)
	}
	l.run()
	c.Wake()
	if len(l.marked) != 1 || scheduled != 2 {
		t.Errorf("after a run: marked %d times, scheduled %d times", len(l.marked), scheduled)
	}
}

func TestConnectionLimitIsReportedInTheProtocol(t *testing.T) {
	t.Parallel()
	eachMode(t, func(t *testing.T, f *fixture) {
		a, b := f.dial(t), f.dial(t)
		for _, c := range []*client{a, b} {
			c.send("echo in\n")
			c.want("in")
		}
		c := f.dial(t)
		c.want("full")
		if rest := c.wantEnd(); rest != "" {
			t.Errorf("got %q after the refusal", rest)
		}
		_ = a.Close()
		eventually(t, "room again", func() bool { return f.Counts()["toy"].Open == 1 })
		d := f.dial(t)
		d.send("echo in\n")
		d.want("in")
		if n := f.Counts()["toy"].Refused; n != 1 {
			t.Errorf("refused %d", n)
		}
	}, func(_ *fixture, o *Options, _ *Listener) { o.MaxConns = map[string]int{"toy": 2} })
}

func TestSocketLimitCountsBacklogs(t *testing.T) {
	t.Parallel()
	f := setup(t, bounds(1<<20, 64<<20), func(_ *fixture, o *Options, _ *Listener) { o.MaxSockets = 3 })
	slow := f.dial(t)
	slow.send("big 4000000\n") // needs a second descriptor for its backlog
	eventually(t, "two descriptors", func() bool { return f.pools.sockets.Open() == 2 })
	also := f.dial(t)
	also.send("echo in\n")
	also.want("in")
	f.dial(t).want("full")
	also.send("big 4000000\n") // no second descriptor is left
	also.wantEnd()
	eventually(t, "cut off", func() bool { return f.toy.closed.Load() == 1 })
	slow.want(strings.Repeat("x", 4000000))
	eventually(t, "one descriptor", func() bool { return f.pools.sockets.Open() == 1 })
	_ = slow.Close()
	eventually(t, "no descriptor", func() bool { return f.pools.sockets.Open() == 0 })
}

func TestAllFrontendsTick(t *testing.T) {
	t.Parallel()
	f := setup(t)
	eventually(t, "three ticks", func() bool { return f.toy.ticks.Load() >= 3 })
}

func TestStopSendsCommittedRepliesAndFreesThePort(t *testing.T) {
	t.Parallel()
	eachMode(t, func(t *testing.T, f *fixture) {
		c := f.dial(t)
		c.send("hold 1 one\n")
		eventually(t, "reply held", func() bool { return f.count(func(c *conn) bool { return c.out.Held() > 0 }) == 1 })
		address := f.Addrs()[0].String()
		done := make(chan struct{})
		go func() {
			f.stop()
			close(done)
		}()
		eventually(t, "session told", func() bool { return f.toy.closed.Load() == 1 })
		f.broker.committed.Store(1)
		c.want("one")
		c.wantEnd()
		<-done
		again := setup(t, func(_ *fixture, _ *Options, l *Listener) { l.Address = address })
		d := again.dial(t)
		d.send("echo again\n")
		d.want("again")
	})
}

func TestStopGivesUpWhenItsContextIsDone(t *testing.T) {
	t.Parallel()
	eachMode(t, func(t *testing.T, f *fixture) {
		c := f.dial(t)
		c.send("hold 1 never\n")
		eventually(t, "session", func() bool { return f.toy.opened.Load() == 1 })
		ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
		defer cancel()
		f.Stop(ctx)
		if got := c.wantEnd(); got != "" {
			t.Errorf("an uncommitted reply was sent: %q", got)
		}
	})
}

func TestStopAcceptingKeepsConnections(t *testing.T) {
	t.Parallel()
	eachMode(t, func(t *testing.T, f *fixture) {
		c := f.dial(t)
		c.send("echo one\n")
		c.want("one")
		f.StopAccepting()
		if nc, err := net.Dial("tcp", f.Addrs()[0].String()); err == nil {
			_ = nc.Close()
			t.Error("still accepting")
		}
		c.send("echo two\n")
		c.want("two")
	})
}

func TestAddressInUseIsReportedByName(t *testing.T) {
	t.Parallel()
	f := setup(t)
	taken := f.Addrs()[0].String()
	free := Listener{Name: "other", Network: "tcp", Address: "127.0.0.1:0"}
	_, err := Bind([]Listener{
		free, {Name: "toy", Network: "tcp", Address: taken}, {Name: "third", Network: "tcp", Address: "127.0.0.1:x"},
	})
	want := "listen toy " + taken + ": address already in use\nlisten third 127.0.0.1:x: "
	if err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got %v, want %s…", err, want)
	}
}

func TestStaleSocketFileIsReplaced(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "s.sock")
	dead, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	dead.(*net.UnixListener).SetUnlinkOnClose(false)
	_ = dead.Close()
	l := Listener{Name: "toy", Network: "unix", Address: path}
	s, err := Bind([]Listener{l})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Bind([]Listener{l}); err == nil || err.Error() != "listen toy "+path+": address already in use" {
		t.Errorf("a path with a listening process: %v", err)
	}
	s.StopAccepting()
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the path is still there: %v", err)
	}
	if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Bind([]Listener{l}); err == nil {
		t.Error("a regular file was taken for a socket")
	}
	if got, _ := os.ReadFile(path); !bytes.Equal(got, []byte("mine")) {
		t.Error("the file was removed")
	}
}

func TestNameWithSeveralAddressesListensOnAll(t *testing.T) {
	t.Parallel()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(free.Addr().String())
	_ = free.Close()
	s, err := Bind([]Listener{{Name: "toy", Network: "tcp", Address: "localhost:" + port}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.StopAccepting()
	for _, a := range s.Addrs() {
		if _, p, _ := net.SplitHostPort(a.String()); p != port {
			t.Errorf("bound %s", a)
		}
	}
}

func TestServeWithoutFrontendFails(t *testing.T) {
	t.Parallel()
	s, err := Bind([]Listener{{Name: "nobody", Network: "tcp", Address: "127.0.0.1:0"}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.StopAccepting()
	if err := s.Serve(Options{Frontends: map[string]frontends.Frontend{}}); err == nil {
		t.Error("served without a front-end")
	}
}
