package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/panjf2000/gnet/v2"

	"broker/integration/gearmanclient"
	"broker/integration/server"
)

// limitEnv is the environment variable with the address of the bare server; it makes a child process that server.
const limitEnv = "BENCH_LIMIT_ADDR"

const selfStart = 30 * time.Second

// bare is a minimal Gearman server on the broker's event loops: it reads packets, keeps jobs in a list under one lock
// and writes replies. It validates, limits and stores nothing. Its cost is that of system calls and network, so it is
// the limit for every server of this kind under this load.
type bare struct {
	gnet.BuiltinEventEngine

	mu       sync.Mutex // guards all of it
	jobs     []bareJob  // that wait, from head on
	head     int
	number   uint64
	callers  map[string]io.Writer // connections that wait for a job's end, by its handle
	sleepers []*bareConn
}

type bareJob struct{ handle, function, unique, body []byte }

// bareConn is one connection and the output to write after its input has been read.
type bareConn struct {
	to     io.Writer
	out    []byte
	others []note
}

// note is output for another connection.
type note struct {
	to   io.Writer
	data []byte
}

// newBare makes a server without jobs.
func newBare() *bare { return &bare{callers: make(map[string]io.Writer)} }

// startLimit starts this program again as the bare server.
func startLimit(dir string) (*running, error) {
	return startSelf(dir, "limit", func(addr string) string { return limitEnv + "=" + addr })
}

// startSelf starts this program again as a server. env makes it one that listens on an address.
func startSelf(dir, name string, env func(addr string) string) (*running, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	addr, err := server.FreeAddr()
	if err != nil {
		return nil, err
	}
	p, err := server.Launch(server.Spec{Name: name, Argv: []string{self}, Env: []string{env(addr)}, Logs: dir})
	if err != nil {
		return nil, err
	}
	if err := server.WaitListening(p, addr, selfStart); err != nil {
		p.Kill()
		return nil, err
	}
	return &running{addr: addr, pids: []int{p.PID()}, tail: p.Tail, stop: p.Kill}, nil
}

// serveSelf makes this process one of the servers that startSelf starts, if it was started as one.
func serveSelf() {
	for env, serve := range map[string]func(text string) error{
		limitEnv: limit, limitTLSEnv: limitTLS, tunnelEnv: tunnel,
	} {
		if text := os.Getenv(env); text != "" {
			fmt.Fprintf(os.Stderr, "%s: %v\n", env, serve(text))
			os.Exit(1)
		}
	}
}

func limit(addr string) error {
	return gnet.Run(newBare(), "tcp://"+addr, gnet.WithNumEventLoop(runtime.NumCPU()))
}

// OnOpen implements gnet.EventHandler.
func (*bare) OnOpen(gc gnet.Conn) ([]byte, gnet.Action) {
	gc.SetContext(&bareConn{to: descriptor(gc.Fd())})
	return nil, gnet.None
}

// OnTraffic implements gnet.EventHandler.
func (s *bare) OnTraffic(gc gnet.Conn) gnet.Action {
	c := gc.Context().(*bareConn)
	in, err := gc.Peek(-1)
	if err != nil {
		return gnet.Close
	}
	used := s.read(c, in)
	_, _ = gc.Discard(used) // it was there to be peeked at
	return gnet.None
}

// read handles the packets in a connection's input and writes the replies. It returns the size of these packets.
func (s *bare) read(c *bareConn, in []byte) (used int) {
	s.mu.Lock()
	for {
		kind, packet := nextGearman(in[used:])
		if packet == nil {
			break
		}
		used += len(packet)
		s.run(c, kind, packet[gearmanHeader:])
	}
	s.mu.Unlock()
	if len(c.out) > 0 {
		_, _ = c.to.Write(c.out) // a client that has gone ends the measurement
	}
	c.out = c.out[:0]
	for _, n := range c.others {
		_, _ = n.to.Write(n.data)
	}
	c.others = c.others[:0]
	return used
}

// run handles one packet. The load generator sends only these.
func (s *bare) run(c *bareConn, kind gearmanclient.Type, data []byte) {
	switch kind {
	case gearmanclient.SubmitJobBg, gearmanclient.SubmitJob:
		s.submit(c, data, kind == gearmanclient.SubmitJob)
	case gearmanclient.GrabJobUniq:
		if s.head == len(s.jobs) {
			c.out = appendRes(c.out, gearmanclient.NoJob)
			return
		}
		j := s.jobs[s.head]
		s.jobs[s.head] = bareJob{}
		if s.head++; s.head == len(s.jobs) {
			s.jobs, s.head = s.jobs[:0], 0
		}
		c.out = appendRes(c.out, gearmanclient.JobAssignUniq, j.handle, j.function, j.unique, j.body)
	case gearmanclient.PreSleep:
		s.sleepers = append(s.sleepers, c)
		if s.head < len(s.jobs) {
			s.wakeOne(c)
		}
	case gearmanclient.WorkComplete:
		handle, result, _ := bytes.Cut(data, []byte{0})
		if to, waits := s.callers[string(handle)]; waits {
			delete(s.callers, string(handle))
			c.others = append(c.others, note{to, appendRes(nil, gearmanclient.WorkComplete, handle, result)})
		}
	case gearmanclient.EchoReq:
		c.out = appendRes(c.out, gearmanclient.EchoRes, data)
	}
}

func (s *bare) submit(c *bareConn, data []byte, foreground bool) {
	data = bytes.Clone(data)
	function, rest, _ := bytes.Cut(data, []byte{0})
	unique, body, _ := bytes.Cut(rest, []byte{0})
	s.number++
	handle := strconv.AppendUint([]byte("H:limit:"), s.number, 10)
	c.out = appendRes(c.out, gearmanclient.JobCreated, handle)
	if foreground {
		s.callers[string(handle)] = c.to
	}
	s.jobs = append(s.jobs, bareJob{handle, function, unique, body})
	s.wakeOne(c)
}

// wakeOne wakes the worker that went to sleep last.
func (s *bare) wakeOne(c *bareConn) {
	if last := len(s.sleepers) - 1; last >= 0 {
		c.others = append(c.others, note{s.sleepers[last].to, appendRes(nil, gearmanclient.Noop)})
		s.sleepers = s.sleepers[:last]
	}
}

func appendRes(b []byte, kind gearmanclient.Type, fields ...[]byte) []byte {
	b = append(b, 0, 'R', 'E', 'S')
	b = binary.BigEndian.AppendUint32(b, uint32(kind))
	sizeAt := len(b)
	b = append(b, 0, 0, 0, 0)
	for i, f := range fields {
		if i > 0 {
			b = append(b, 0)
		}
		b = append(b, f...)
	}
	binary.BigEndian.PutUint32(b[sizeAt:], uint32(len(b)-sizeAt-4))
	return b
}

// descriptor is a connection of the event loops, as a writer that does not wait for its loop.
type descriptor int

// Write implements io.Writer. It retries while the socket is full: the load generator reads all the time.
func (d descriptor) Write(p []byte) (written int, err error) {
	for written < len(p) {
		n, err := syscall.Write(int(d), p[written:])
		switch {
		case errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EINTR):
		case err != nil:
			return written, err
		default:
			written += n
		}
	}
	return written, nil
}
