package eventloop

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"broker/access"
	"broker/core"
	"broker/frontends"
)

// patience is the timeout of every wait in these tests.
const patience = 2 * time.Minute

// toyBroker has nothing but commit numbers, which the test changes.
type toyBroker struct {
	core.Broker
	committed, woken atomic.Uint64
	stopped          atomic.Bool
}

func (b *toyBroker) Committed() core.Commit { return core.Commit(b.committed.Load()) }
func (b *toyBroker) Woken() core.Commit     { return core.Commit(b.woken.Load()) }
func (b *toyBroker) Stopped() bool          { return b.stopped.Load() }
func (b *toyBroker) Now() core.Instant      { return core.InstantOf(time.Now()) }

// toy is a front-end with a line protocol:
//
//	echo TEXT        TEXT
//	hold N TEXT      TEXT, once commit N is durable
//	later TEXT       TEXT, from another goroutine; input waits until then. "job" never comes
//	body N, N bytes  the checksum of the bytes
//	big N            N bytes and a newline
//	list N           N pages of pageBytes x and a newline, while the connection is not backpressured
//	pour N           N bytes at every wake from then on, without backpressure
//	spin             from then on the session works for a millisecond and wakes itself, endlessly
//	spins            how often the spinning sessions have done so
//	bye TEXT         TEXT, then the session closes the connection
//	login NAME       from then on the client has rights, as a principal of the name if there is one
//	panic, abort     panics, aborts the connection
type toy struct {
	bounds frontends.Bounds
	guests bool // clients have no rights until they send login
	ticks  atomic.Int64
	opened atomic.Int64
	closed atomic.Int64
	eofs   atomic.Int64
	lost   atomic.Int64
	spins  atomic.Int64

	mu       sync.Mutex
	sessions map[*toySession]struct{}
	release  chan struct{} // if not nil, "later" replies wait for it
}

func (f *toy) Name() string             { return "toy" }
func (f *toy) Bounds() frontends.Bounds { return f.bounds }
func (f *toy) Tick(core.Instant)        { f.ticks.Add(1) }
func (f *toy) Overflow() []byte         { return []byte("full\n") }

func (f *toy) Open(c frontends.Conn) frontends.Session {
	f.opened.Add(1)
	s := &toySession{toy: f, conn: c, admitted: !f.guests, principal: access.Everyone}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sessions[s] = struct{}{}
	return s
}

// wakeAll wakes every session from a goroutine that is not a loop.
func (f *toy) wakeAll() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for s := range f.sessions {
		s.conn.Wake()
	}
}

type toySession struct {
	toy       *toy
	conn      frontends.Conn
	admitted  bool
	principal *access.Principal
	parked    bool
	forJob    bool
	left      bool
	pages     int // pages of list still to be written
	pouring   int
	spinning  bool
	mail      atomic.Pointer[string]
	delivers  atomic.Int64
}

func (s *toySession) Feed(in []byte) int {
	used := 0
	for !s.parked && !s.left && s.pages == 0 && s.conn.Out().Len() < flushAt {
		line, rest, found := bytes.Cut(in[used:], []byte("\n"))
		if !found {
			return used
		}
		verb, arg, _ := strings.Cut(string(line), " ")
		size := 0
		if verb == "body" {
			size, _ = strconv.Atoi(arg)
			if len(rest) < size {
				return used
			}
			arg = string(rest[:size])
		}
		used += len(line) + 1 + size
		s.run(verb, arg)
	}
	return used
}

func (s *toySession) run(verb, arg string) {
	out := s.conn.Out()
	switch verb {
	case "echo":
		out.WriteString(arg + "\n")
	case "hold":
		n, text, _ := strings.Cut(arg, " ")
		commit, _ := strconv.ParseUint(n, 10, 64)
		out.Put(append(out.Buf(), text+"\n"...), core.Commit(commit))
	case "later":
		if s.parked, s.forJob = true, arg == "job"; s.forJob {
			return // never released
		}
		go func() {
			if s.toy.release != nil {
				<-s.toy.release
			}
			s.mail.Store(&arg)
			s.conn.Wake()
			s.conn.Wake()
		}()
	case "body":
		out.WriteString(fmt.Sprintf("%08x\n", crc32.ChecksumIEEE([]byte(arg))))
	case "big":
		n, _ := strconv.Atoi(arg)
		out.Put(append(append(out.Buf(), bytes.Repeat([]byte{'x'}, n)...), '\n'), 0)
	case "list":
		s.pages, _ = strconv.Atoi(arg)
		s.list()
	case "pour":
		s.pouring, _ = strconv.Atoi(arg)
	case "spin":
		s.spinning = true
		s.conn.Wake()
	case "spins":
		out.WriteString(fmt.Sprintf("%d\n", s.toy.spins.Load()))
	case "login":
		s.admitted = true
		if arg != "" {
			s.principal = principal(arg)
		}
	case "bye":
		out.WriteString(arg + "\n")
		s.left = true
		s.conn.CloseAfterFlush()
	case "abort":
		s.conn.Abort()
	case "panic":
		panic("as asked")
	default:
		out.WriteString("what?\n")
	}
}

// pageBytes is the size of a page of list.
const pageBytes = 100_000

// list continues a listing, two pages a turn.
func (s *toySession) list() {
	for range 2 {
		if s.pages == 0 || s.conn.Backpressured() {
			return
		}
		s.conn.Out().WriteString(strings.Repeat("x", pageBytes) + "\n")
		s.pages--
	}
	s.conn.Wake()
}

func (s *toySession) Deliver() {
	s.delivers.Add(1)
	s.list()
	s.conn.Out().WriteString(strings.Repeat("y", s.pouring))
	if s.spinning {
		time.Sleep(time.Millisecond)
		s.toy.spins.Add(1)
		s.conn.Wake()
	}
	if text := s.mail.Swap(nil); text != nil {
		s.parked = false
		s.conn.Out().WriteString(*text + "\n")
	}
}

func (s *toySession) Stop() {
	if s.parked {
		s.conn.Out().WriteString("stopping\n")
	}
}

func (s *toySession) Blocked() bool { return s.parked }

// WaitsHalfClosed waits for "later" replies, but not for "job".
func (s *toySession) WaitsHalfClosed() bool {
	if s.parked && s.forJob {
		s.parked = false
		s.conn.Out().WriteString("none\n")
	}
	return s.parked
}

func (s *toySession) Admission() frontends.Admission {
	if !s.admitted {
		return frontends.Admission{Rights: frontends.LoginDue}
	}
	return frontends.Admission{Principal: s.principal}
}

func (s *toySession) Dismiss(text string) {
	s.left = true
	s.conn.Out().WriteString(text + "\n")
	s.conn.CloseAfterFlush()
}

func (s *toySession) Refusal() []byte { return []byte("refused\n") }

func (s *toySession) EOF(in []byte) {
	s.toy.eofs.Add(1)
	if len(in) > 0 {
		s.conn.Out().WriteString(fmt.Sprintf("left %d\n", len(in)))
	}
}

func (s *toySession) HandleUnsent(bytes int) { s.toy.lost.Add(int64(bytes)) }

func (s *toySession) Closed() {
	s.toy.closed.Add(1)
	s.toy.mu.Lock()
	defer s.toy.mu.Unlock()
	delete(s.toy.sessions, s)
}

// fixture is a server with the toy front-end.
type fixture struct {
	*Server
	toy    *toy
	broker *toyBroker
	log    *syncBuffer
}

// syncBuffer is a log that the test may read while loops write.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

type setting func(*fixture, *Options, *Listener)

func bounds(in, out int) setting {
	return func(f *fixture, _ *Options, _ *Listener) {
		f.toy.bounds = frontends.Bounds{MaxInput: in, MaxOutput: out}
	}
}

// ownLoops gives each connection a loop of its own, as in a broker that blocks.
func ownLoops(_ *fixture, o *Options, _ *Listener) { o.Blocking = true }

func overUnix(t *testing.T) setting {
	path := filepath.Join(t.TempDir(), "toy.sock")
	return func(_ *fixture, _ *Options, l *Listener) { l.Network, l.Address = "unix", path }
}

// kernelBuffer is the size in bytes of the buffer of each socket. With it a slow reader holds back output of a few
// hundred kilobytes.
const kernelBuffer = 64 << 10

// boundBuffers limits what the kernel takes of the output of each connection that the listener accepts.
func boundBuffers(t *testing.T, ln net.Listener) {
	t.Helper()
	if l, ok := ln.(*allowListener); ok {
		ln = l.Listener
	}
	raw, err := ln.(syscall.Conn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	if e := raw.Control(func(fd uintptr) { // accepted sockets inherit this
		err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_SNDBUF, kernelBuffer)
	}); e != nil || err != nil {
		t.Fatal(e, err)
	}
}

// dialer limits what the kernel holds for a client. It does so before the connection is there: a window that shrinks
// while both sides send lets them wait for each other until one reads. local may be nil.
func dialer(local net.Addr) *net.Dialer {
	return &net.Dialer{LocalAddr: local, Control: func(_, _ string, raw syscall.RawConn) (err error) {
		e := raw.Control(func(fd uintptr) {
			err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, kernelBuffer)
		})
		return errors.Join(e, err)
	}}
}

func setup(t *testing.T, settings ...setting) *fixture {
	t.Helper()
	f := &fixture{
		toy: &toy{
			bounds: frontends.Bounds{MaxInput: 1 << 20, MaxOutput: 1 << 20}, sessions: map[*toySession]struct{}{},
		},
		broker: &toyBroker{},
		log:    &syncBuffer{},
	}
	l := Listener{Name: "toy", Network: "tcp", Address: "127.0.0.1:0"}
	o := Options{
		Broker: f.broker, Frontends: map[string]frontends.Frontend{"toy": f.toy}, Loops: 2,
		Log: zerolog.New(f.log),
	}
	for _, set := range settings {
		set(f, &o, &l)
	}
	var err error
	if f.Server, err = Bind([]Listener{l}); err != nil {
		t.Fatal(err)
	}
	for _, b := range f.bound {
		boundBuffers(t, b.ln)
	}
	if err := f.Serve(o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.stop)
	return f
}

func (f *fixture) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	f.Stop(ctx)
}

// client is one connection of a test.
type client struct {
	t *testing.T
	net.Conn
	r *bufio.Reader
}

func (f *fixture) dial(t *testing.T) *client {
	t.Helper()
	a := f.Addrs()[0]
	nc, err := dialer(nil).Dial(a.Network(), a.String())
	if err != nil {
		t.Fatal(err)
	}
	return newClient(t, nc)
}

func newClient(t *testing.T, nc net.Conn) *client {
	t.Cleanup(func() { _ = nc.Close() })
	_ = nc.SetDeadline(time.Now().Add(patience))
	return &client{t: t, Conn: nc, r: bufio.NewReaderSize(nc, kernelBuffer)}
}

func (c *client) send(text string) {
	c.t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		c.t.Fatal(err)
	}
}

func (c *client) want(lines ...string) {
	c.t.Helper()
	for _, want := range lines {
		got, err := c.r.ReadString('\n')
		if err != nil || got != want+"\n" {
			c.t.Fatalf("got %.80q, %v; want %q", got, err, want)
		}
	}
}

// wantEnd reads until the connection ends and returns what it has read.
func (c *client) wantEnd() string {
	c.t.Helper()
	rest, err := io.ReadAll(c.r)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		c.t.Fatalf("connection still open after %d bytes", len(rest))
	}
	return string(rest)
}

func (c *client) closeWrite() {
	c.t.Helper()
	if err := c.Conn.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
		c.t.Fatal(err)
	}
}

// reset breaks the connection, so that bytes in flight are lost. Unix sockets have no reset.
func (c *client) reset() {
	nc := c.socket()
	if tc, ok := nc.(*net.TCPConn); ok {
		_ = tc.SetLinger(0)
	}
	_ = nc.Close()
}

// socket returns the connection below TLS.
func (c *client) socket() net.Conn {
	if over, ok := c.Conn.(*tls.Conn); ok {
		return over.NetConn()
	}
	return c.Conn
}

// eventually waits until ok reports true.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", patience, what)
		}
	}
}
