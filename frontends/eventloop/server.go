package eventloop

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/panjf2000/gnet/v2"
	"github.com/rs/zerolog"

	"broker/core"
	"broker/core/notify"
	"broker/frontends"
)

// The times of the loops. None of them is for a client to rely on.
const (
	tickEvery         = 250 * time.Millisecond // Frontend.Tick
	leavingEvery      = 2 * time.Millisecond   // a look at conns whose last replies wait for a commit
	acceptPause       = 100 * time.Millisecond // after an accept has failed, as it does without free descriptors
	stallTimeout      = 30 * time.Second       // for a leaving client that takes no byte of its last replies
	lingerTimeout     = 2 * time.Second        // for a client that was told the end and does not close
	stopLingerTimeout = 100 * time.Millisecond // the same, while the server stops
)

// Options of Serve.
type Options struct {
	Broker core.Broker

	// Frontends by the name that their listeners bear.
	Frontends map[string]frontends.Frontend

	// MaxConns bounds the open connections of a front-end, over all of its listeners; no entry or zero: no bound. A
	// front-end that has an Overflow() []byte method words the refusal.
	MaxConns map[string]int

	// MaxSockets bounds the descriptors that all connections together take, so that some are left for the store; zero:
	// no bound. A connection takes one, and one more while its client does not read.
	MaxSockets int

	// MaxOutput takes the place of the front-ends' own Limits.MaxOutput if it is not zero.
	MaxOutput int

	Loops int // at least 1
	Log   zerolog.Logger
}

// group is a front-end with what all of its listeners share.
type group struct {
	name     string
	frontend frontends.Frontend
	limits   frontends.Limits
	maxConns int64
	overflow []byte

	open     atomic.Int64
	accepted atomic.Uint64
	refused  atomic.Uint64
}

// Server owns the listening sockets, the loops and all connections.
type Server struct {
	bound  []bound
	broker core.Broker
	log    zerolog.Logger
	groups map[string]*group

	client *gnet.Client
	loops  []*loop // gnet's first, those for TLS behind them
	byGnet map[gnet.EventLoop]*loop
	loopMu sync.Mutex // guards byGnet and loops while gnet's loops become known

	tlsLoops []*loop
	tlsNext  atomic.Uint32

	sockets    atomic.Int64 // descriptors in use, of at most maxSockets
	maxSockets int64

	leaving          atomic.Int64    // conns in that phase
	leavingAdded     notify.Signal   // one more is leaving
	handshakes       context.Context // ends when Stop begins: no more handshakes
	cancelHandshakes context.CancelFunc
	running          context.Context // ends when all loops may end
	cancelRunning    context.CancelFunc
	stopping         atomic.Bool
	closeOnce        sync.Once
	stopOnce         sync.Once
	goroutines       sync.WaitGroup // all goroutines but gnet's and those of backlogs
}

func newServer() *Server {
	s := &Server{
		byGnet:       make(map[gnet.EventLoop]*loop),
		groups:       make(map[string]*group),
		leavingAdded: notify.NewSignal(),
	}
	s.handshakes, s.cancelHandshakes = context.WithCancel(context.Background())
	s.running, s.cancelRunning = context.WithCancel(context.Background())
	return s
}

// Serve starts answering. It may be called once; it fails if a listener has no front-end.
func (s *Server) Serve(o Options) error {
	s.broker, s.log, s.maxSockets = o.Broker, o.Log, int64(o.MaxSockets)
	for _, b := range s.bound {
		if err := s.addGroup(b.Name, o); err != nil {
			return err
		}
	}
	client, err := gnet.NewClient(&handler{srv: s},
		gnet.WithNumEventLoop(max(1, o.Loops)), gnet.WithLogger(netLog{o.Log}))
	if err != nil {
		return fmt.Errorf("make event loops: %w", err)
	}
	if err := client.Start(); err != nil {
		return fmt.Errorf("start event loops: %w", err)
	}
	s.client = client
	for range max(1, o.Loops) {
		if s.hasTLS() {
			s.startTLSLoop()
		}
	}
	for _, b := range s.bound {
		s.goroutines.Go(func() { s.accept(b) })
	}
	s.goroutines.Go(s.runTicker)
	return nil
}

func (s *Server) addGroup(name string, o Options) error {
	fe := o.Frontends[name]
	if fe == nil {
		return fmt.Errorf("listener %s has no front-end", name)
	}
	if s.groups[name] != nil {
		return nil
	}
	g := &group{name: name, frontend: fe, limits: fe.Limits(), maxConns: int64(o.MaxConns[name])}
	if o.MaxOutput > 0 {
		g.limits.MaxOutput = o.MaxOutput
	}
	if r, ok := fe.(interface{ Overflow() []byte }); ok {
		g.overflow = r.Overflow()
	}
	s.groups[name] = g
	return nil
}

// Addrs are the addresses that were bound, in the order of the listeners, with the ports that were chosen for port 0.
func (s *Server) Addrs() []net.Addr {
	addrs := make([]net.Addr, len(s.bound))
	for i, b := range s.bound {
		addrs[i] = b.ln.Addr()
	}
	return addrs
}

// Count is what happened at one front-end's door.
type Count struct {
	Open              int
	Accepted, Refused uint64
}

// Counts reports connections by the name of the front-end. Any goroutine, after Serve.
func (s *Server) Counts() map[string]Count {
	counts := make(map[string]Count, len(s.groups))
	for name, g := range s.groups {
		counts[name] = Count{Open: int(g.open.Load()), Accepted: g.accepted.Load(), Refused: g.refused.Load()}
	}
	return counts
}

// accept takes connections from one socket until it is closed.
func (s *Server) accept(b bound) {
	g := s.groups[b.Name]
	failing := false // said once, not ten times a second
	for {
		nc, err := b.ln.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			if !failing {
				s.log.Warn().Err(err).Str("frontend", b.Name).Msg("accept failed, trying again")
			}
			failing = true
			time.Sleep(acceptPause)
			continue
		}
		failing = false
		if !s.reserve(g) {
			g.refused.Add(1)
			s.reject(nc, g)
			continue
		}
		g.accepted.Add(1)
		s.addConn(nc, b, g)
	}
}

// enter counts a connection in, unless there is no room for it.
func (s *Server) reserve(g *group) bool {
	if n := g.open.Add(1); g.maxConns > 0 && n > g.maxConns {
		g.open.Add(-1)
		return false
	}
	if !s.takeSocket() {
		g.open.Add(-1)
		return false
	}
	return true
}

// left counts a connection out.
func (s *Server) release(g *group) {
	g.open.Add(-1)
	s.sockets.Add(-1)
}

// takeSocket counts one descriptor in, unless there are too many.
func (s *Server) takeSocket() bool {
	if n := s.sockets.Add(1); s.maxSockets > 0 && n > s.maxSockets {
		s.sockets.Add(-1)
		return false
	}
	return true
}

// refuse tells a client that there is no room, as far as its socket takes it at once.
func (s *Server) reject(nc net.Conn, g *group) {
	s.log.Debug().Str("frontend", g.name).Msg("connection limit reached")
	_ = nc.SetWriteDeadline(time.Now().Add(acceptPause)) // a fresh socket has room; if not, nothing is lost
	_, _ = nc.Write(g.overflow)
	_ = nc.Close()
}

// admit makes a conn of an accepted socket.
func (s *Server) addConn(nc net.Conn, b bound, g *group) {
	c := &conn{srv: s, group: g, remote: nc.RemoteAddr(), fd: -1}
	if b.TLS != nil {
		s.addTLSConn(nc, b, c)
		return
	}
	if a, ok := c.remote.(*net.TCPAddr); ok && a.Zone != "" {
		c.remote = &net.TCPAddr{IP: a.IP, Port: a.Port, Zone: a.Zone}
		a.Zone = "" // gnet would put the text's memory, which is not its own, into a pool of buffers
	}
	if _, err := s.client.EnrollContext(nc, c); err != nil {
		s.log.Warn().Err(err).Str("frontend", g.name).Msg("connection lost at the door")
		s.release(g)
	}
}

// clock calls Frontend.Tick and looks after connections that are on their way out, more often while there are any.
func (s *Server) runTicker() {
	timer := time.NewTimer(tickEvery)
	defer timer.Stop()
	nextTick := time.Now().Add(tickEvery)
	for {
		select {
		case <-s.running.Done():
			return
		case <-s.leavingAdded:
		case <-timer.C:
		}
		now := time.Now()
		if !now.Before(nextTick) {
			nextTick = now.Add(tickEvery)
			s.tick()
			s.eachLoop(func(l *loop) {
				l.checkTimeouts(now)
				l.watchPeers()
			})
		}
		wait := time.Until(nextTick)
		if s.leaving.Load() > 0 {
			s.eachLoop(func(l *loop) { l.checkTimeouts(now) })
			wait = min(wait, leavingEvery)
		}
		timer.Reset(max(wait, 0))
	}
}

// tick calls the front-ends' own clocks.
func (s *Server) tick() {
	for _, g := range s.groups {
		s.tickOne(g)
	}
}

// tickOne keeps one front-end's panic from stopping the clock of all.
func (s *Server) tickOne(g *group) {
	defer func() {
		if r := recover(); r != nil {
			s.log.Error().Str("frontend", g.name).Interface("panic", r).Bytes("stack", debug.Stack()).Msg("tick failed")
		}
	}()
	g.frontend.Tick(s.broker.Now())
}

// hurry tells the clock that a conn is leaving.
func (s *Server) wakeTicker() { s.leavingAdded.Set() }

// patience is how long a departed conn may do nothing.
func (s *Server) idleTimeout(p phase) time.Duration {
	switch {
	case p != lingering:
		return stallTimeout
	case s.stopping.Load():
		return stopLingerTimeout
	}
	return lingerTimeout
}

// eachLoop runs f on every loop, soon.
func (s *Server) eachLoop(f func(*loop)) {
	s.loopMu.Lock()
	loops := s.loops
	s.loopMu.Unlock()
	for _, l := range loops {
		l.call(func() { f(l) })
	}
}

// StopAccepting closes the listening sockets and removes those that have a path. Connections go on.
func (s *Server) StopAccepting() {
	s.closeOnce.Do(func() {
		for _, b := range s.bound {
			_ = b.ln.Close() // closed once, so it cannot fail in a way that matters
		}
	})
}

// Stop stops accepting, ends all sessions, lets leave what they have written and what a commit releases until ctx ends,
// then drops what is left. The broker must still be running.
func (s *Server) Stop(ctx context.Context) {
	s.StopAccepting()
	if s.client == nil {
		return
	}
	s.stopOnce.Do(func() { s.shutDown(ctx) }) // gnet closes its descriptors' numbers again if it is stopped again
}

func (s *Server) shutDown(ctx context.Context) {
	s.stopping.Store(true)
	s.cancelHandshakes()
	s.drainAll(ctx)
	s.eachLoop((*loop).dropAll)
	s.cancelRunning()
	_ = s.client.Stop() // its loops end with the reason we gave them
	s.goroutines.Wait()
}

// drainAll waits until all connections are gone or ctx ends. Sessions are told again and again, because one that was
// accepted just before may not have been open the first time.
func (s *Server) drainAll(ctx context.Context) {
	tick := time.NewTicker(leavingEvery)
	defer tick.Stop()
	for s.open() > 0 {
		s.eachLoop((*loop).stopSessions)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// open is the number of connections that are not gone.
func (s *Server) open() int64 {
	var n int64
	for _, g := range s.groups {
		n += g.open.Load()
	}
	return n
}
