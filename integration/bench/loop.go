package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	inSize      = 256 << 10
	pollEvents  = 64
	pollTimeout = 20 // ms; how late a loop may see that it shall stop
	stallPause  = 1  // ms; the same for a session that has stalled
)

// session implements the protocol of one connection. A single loop calls it.
type session interface {
	// begin queues the first bytes.
	begin(c *conn)
	// feed consumes whole messages from b, queues the requests that follow from them, and returns the bytes consumed.
	feed(c *conn, b []byte) (int, error)
}

// opener is a session with a blocking exchange before the loop takes over the connection.
type opener interface {
	open(rw io.ReadWriter) error
}

// conn is one socket of a loop.
type conn struct {
	fd      int
	in      []byte // read buffer
	filled  int    // bytes of it in use
	out     []byte // queued for writing
	pending bool   // waits for the socket to take more
	stalled bool   // the session waits for something that happens elsewhere: begin it again soon
	listed  bool   // among the loop's waiting ones
	now     int64  // when the loop's current pass began, in ns
	session session
}

// loop runs connections on one thread.
type loop struct {
	epoll   int
	conns   map[int32]*conn
	waiting []*conn // that have stalled, or not begun
	buffer  int     // bytes of a connection's read buffer
	err     error
}

func newLoop() (*loop, error) {
	fd, err := syscall.EpollCreate1(syscall.EPOLL_CLOEXEC)
	if err != nil {
		return nil, err
	}
	return &loop{epoll: fd, conns: make(map[int32]*conn), buffer: inSize}, nil
}

// unixPrefix begins the address of a unix socket, as in the broker's settings.
const unixPrefix = "unix:"

func dial(addr string) (net.Conn, error) {
	if path, unix := strings.CutPrefix(addr, unixPrefix); unix {
		return net.DialTimeout("unix", path, 10*time.Second)
	}
	return net.DialTimeout("tcp", addr, 10*time.Second)
}

// add connects and adds the connection to the loop. greet, if any, first runs a blocking handshake.
func (l *loop) add(addr string, s session, greet func(rw io.ReadWriter) error) error {
	nc, err := dial(addr)
	if err != nil {
		return err
	}
	defer func() { _ = nc.Close() }() // the loop keeps a descriptor of its own
	if greet != nil {
		if err := greet(nc); err != nil {
			return fmt.Errorf("greet %s: %w", addr, err)
		}
	}
	if o, ok := s.(opener); ok {
		if err := o.open(nc); err != nil {
			return fmt.Errorf("begin with %s: %w", addr, err)
		}
	}
	file, err := nc.(interface{ File() (*os.File, error) }).File()
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // likewise
	fd, err := syscall.Dup(int(file.Fd()))
	if err != nil {
		return err
	}
	if err := syscall.SetNonblock(fd, true); err != nil {
		return err
	}
	event := syscall.EpollEvent{Events: syscall.EPOLLIN, Fd: int32(fd)}
	if err := syscall.EpollCtl(l.epoll, syscall.EPOLL_CTL_ADD, fd, &event); err != nil {
		return err
	}
	c := &conn{fd: fd, in: make([]byte, l.buffer), session: s, listed: true}
	l.conns[event.Fd] = c
	l.waiting = append(l.waiting, c)
	return nil
}

// run serves the connections until stop returns true. It locks its thread.
func (l *loop) run(stop func() bool) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	events := make([]syscall.EpollEvent, pollEvents)
	for !stop() {
		timeout, err := l.resume()
		if err != nil {
			l.err = err
			return
		}
		n, err := rawEpollWait(l.epoll, events, timeout)
		if err != nil && !errors.Is(err, syscall.EINTR) {
			l.err = err
			return
		}
		now := nanotime()
		for _, e := range events[:max(n, 0)] {
			c := l.conns[e.Fd]
			c.now = now
			if l.err = l.serve(c, e.Events); l.err != nil {
				return
			}
		}
	}
}

// resume restarts stalled sessions, and returns how long the loop may sleep.
func (l *loop) resume() (millis int, err error) {
	still := l.waiting[:0]
	for _, c := range l.waiting {
		c.stalled = false
		c.now = nanotime()
		c.session.begin(c)
		if err := l.flush(c); err != nil {
			return 0, err
		}
		if c.listed = c.stalled; c.listed {
			still = append(still, c)
		}
	}
	if l.waiting = still; len(still) > 0 {
		return stallPause, nil
	}
	return pollTimeout, nil
}

func (l *loop) serve(c *conn, events uint32) error {
	if events&^uint32(syscall.EPOLLOUT) != 0 {
		n, err := rawRead(c.fd, c.in[c.filled:])
		switch {
		case errors.Is(err, syscall.EAGAIN), errors.Is(err, syscall.EINTR):
			n = 0
		case err != nil:
			return err
		case n == 0:
			return io.ErrUnexpectedEOF
		}
		c.filled += n
		used, err := c.session.feed(c, c.in[:c.filled])
		if err != nil {
			return err
		}
		if c.stalled && !c.listed {
			c.listed = true
			l.waiting = append(l.waiting, c)
		}
		if used > 0 {
			c.filled = copy(c.in, c.in[used:c.filled])
		}
		if c.filled == len(c.in) {
			return fmt.Errorf("a reply of more than %d bytes", len(c.in))
		}
	}
	return l.flush(c)
}

// flush writes queued bytes; if the socket is full, the loop retries when it is writable.
func (l *loop) flush(c *conn) error {
	for len(c.out) > 0 {
		n, err := rawWrite(c.fd, c.out)
		if errors.Is(err, syscall.EAGAIN) {
			return l.await(c, syscall.EPOLLIN|syscall.EPOLLOUT, true)
		}
		if err != nil {
			return err
		}
		c.out = c.out[:copy(c.out, c.out[n:])]
	}
	return l.await(c, syscall.EPOLLIN, false)
}

func (l *loop) await(c *conn, events uint32, pending bool) error {
	if c.pending == pending {
		return nil
	}
	c.pending = pending
	event := syscall.EpollEvent{Events: events, Fd: int32(c.fd)}
	return syscall.EpollCtl(l.epoll, syscall.EPOLL_CTL_MOD, c.fd, &event)
}

func (l *loop) close() {
	for _, c := range l.conns {
		_ = syscall.Close(c.fd) // nothing that matters was left in it
	}
	_ = syscall.Close(l.epoll)
}

var started = time.Now()

func nanotime() int64 { return int64(time.Since(started)) }

// runBoth runs submitters and workers at the same time until both are done.
func runBoth(submitters, workers *loop, t *tally) error {
	var failed atomic.Bool
	ended := make(chan struct{})
	go func() { // runBoth waits for it below
		workers.runWithin(t.limit(), t.allDone, &failed)
		close(ended)
	}()
	submitters.runWithin(t.limit(), t.allAcked, &failed)
	<-ended
	return errors.Join(submitters.err, workers.err)
}

// runAlone runs one group of sessions.
func runAlone(l *loop, limit time.Duration, done func() bool) error {
	var failed atomic.Bool
	l.runWithin(limit, done, &failed)
	return l.err
}

// runWithin runs until done, the limit has passed, or the other loop has failed.
func (l *loop) runWithin(limit time.Duration, done func() bool, failed *atomic.Bool) {
	deadline := nanotime() + limit.Nanoseconds()
	l.run(func() bool {
		if done() || failed.Load() {
			return true
		}
		if nanotime() > deadline {
			l.err = fmt.Errorf("not done after %v: %w", limit, os.ErrDeadlineExceeded)
			return true
		}
		return false
	})
	if l.err != nil {
		failed.Store(true)
	}
}
