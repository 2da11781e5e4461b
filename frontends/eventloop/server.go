package eventloop

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/panjf2000/gnet/v2"
	"github.com/rs/zerolog"

	"broker/access"
	"broker/core"
	"broker/core/notify"
	"broker/frontends"
)

// Timing of the loops. Clients must not rely on any of it.
const (
	tickEvery    = 250 * time.Millisecond // interval of Frontend.Tick
	leavingEvery = 2 * time.Millisecond   // check of conns whose last replies wait for a commit
	acceptPause  = 100 * time.Millisecond // after a failed accept, such as one without free descriptors
	stallTimeout = 30 * time.Second       // for a leaving client that reads none of its last replies
	// for a client that keeps its side open after the broker has closed its own
	lingerTimeout     = 2 * time.Second
	stopLingerTimeout = 100 * time.Millisecond // the same while the server stops
)

// Options of Serve.
type Options struct {
	Broker core.Broker

	// Frontends by the name of their listeners.
	Frontends map[string]frontends.Frontend

	// Handoffs take the connections of listeners without an entry in Frontends, by the name of the listeners.
	Handoffs map[string]*Handoff

	// MaxConns limits the open connections of a front-end over all its listeners; no entry or zero: no limit. It is
	// shared by principals and guests as access.Connections says. The reply to further clients comes from the
	// front-end's method Overflow() []byte, if it has one.
	MaxConns map[string]int

	// MaxSockets limits the file descriptors of all connections, so that some are left for the store; zero: no limit. A
	// connection uses one descriptor, and a second one while its client reads slowly. It is shared as MaxConns is, and
	// where all clients have the same rights, by address.
	MaxSockets int

	// Buffers limits the bytes of unread input and unsent output of all connections together, without the first 4 KiB
	// of each; zero: DefaultBuffers. It is at least four times the largest input of a front-end. Clients without a
	// right have a sixteenth of it in addition.
	Buffers int

	// MaxOutput overrides the front-ends' own Limits.MaxOutput if it is not zero.
	MaxOutput int

	// Blocking says that Broker.Do waits for another node. Each connection is then served by goroutines of its own, so
	// that it delays no other one.
	Blocking bool

	// Silent says that a broker which has stopped is not the end: clients find another node. Their connections are
	// closed then, and they are told nothing but what is durable. Otherwise they are told that the broker takes no more
	// work.
	Silent bool

	Loops int // at least 1; without effect if Blocking
	Log   zerolog.Logger
}

// group is a front-end and the state that its listeners share.
type group struct {
	name     string
	frontend frontends.Frontend // nil: handoff takes its connections
	handoff  *Handoff
	bounds   frontends.Bounds
	conns    *access.Connections
	overflow []byte

	open      atomic.Int64
	accepted  atomic.Uint64
	refused   atomic.Uint64
	dismissed atomic.Uint64
	late      atomic.Uint64
}

// Server owns the listening sockets, the loops and all connections.
type Server struct {
	bound  []bound
	broker core.Broker
	log    zerolog.Logger
	groups map[string]*group

	client *gnet.Client // nil: not served yet, or blocking
	served bool
	loops  []*loop // gnet's loops, followed by those for TLS
	byGnet map[gnet.EventLoop]*loop
	loopMu sync.Mutex // guards byGnet and loops while gnet's loops are discovered

	tlsLoops []*loop
	tlsNext  atomic.Uint32

	silent   bool
	blocking bool
	ownLoops map[*loop]struct{} // of one conn each; loopMu guards it

	attached bool // created by Attach; some connections already use TLS
	pools    pools

	leaving          atomic.Int64    // number of leaving conns
	leavingAdded     notify.Signal   // a conn started leaving
	handshakes       context.Context // canceled when Stop begins
	cancelHandshakes context.CancelFunc
	running          context.Context // canceled when the loops may end
	cancelRunning    context.CancelFunc
	stopping         atomic.Bool
	closeOnce        sync.Once
	stopOnce         sync.Once
	goroutines       sync.WaitGroup // all goroutines except gnet's and those of backlogs
}

func newServer() *Server {
	s := &Server{
		byGnet:       make(map[gnet.EventLoop]*loop),
		groups:       make(map[string]*group),
		ownLoops:     make(map[*loop]struct{}),
		leavingAdded: notify.NewSignal(),
	}
	s.handshakes, s.cancelHandshakes = context.WithCancel(context.Background())
	s.running, s.cancelRunning = context.WithCancel(context.Background())
	return s
}

// Serve starts serving. It may be called once; it fails if a listener has no front-end.
func (s *Server) Serve(o Options) error {
	s.broker, s.log, s.pools, s.silent, s.blocking = o.Broker, o.Log, newPools(o), o.Silent, o.Blocking
	for _, b := range s.bound {
		if err := s.addGroup(b.Name, o); err != nil {
			return err
		}
	}
	if !s.blocking {
		if err := s.startLoops(o); err != nil {
			return err
		}
	}
	s.served = true
	for range max(1, o.Loops) {
		if s.hasTLS() {
			s.startTLSLoop()
		}
	}
	for _, b := range s.bound {
		if b.ln != nil {
			s.goroutines.Go(func() { s.accept(b) })
		}
	}
	s.goroutines.Go(s.runTicker)
	return nil
}

// startLoops starts gnet's loops.
func (s *Server) startLoops(o Options) error {
	client, err := gnet.NewClient(&handler{srv: s},
		gnet.WithNumEventLoop(max(1, o.Loops)), gnet.WithLogger(netLog{o.Log}))
	if err != nil {
		return fmt.Errorf("create event loops: %w", err)
	}
	if err := client.Start(); err != nil {
		return fmt.Errorf("start event loops: %w", err)
	}
	s.client = client
	return nil
}

func (s *Server) addGroup(name string, o Options) error {
	if s.groups[name] != nil {
		return nil
	}
	conns := access.NewConnections(access.ConnectionOptions{Size: o.MaxConns[name]})
	if h := o.Handoffs[name]; h != nil {
		s.groups[name] = &group{name: name, handoff: h, conns: conns}
		return nil
	}
	fe := o.Frontends[name]
	if fe == nil {
		return fmt.Errorf("listener %s has no front-end", name)
	}
	g := &group{name: name, frontend: fe, bounds: fe.Bounds(), conns: conns}
	if o.MaxOutput > 0 {
		g.bounds.MaxOutput = o.MaxOutput
	}
	if r, ok := fe.(interface{ Overflow() []byte }); ok {
		g.overflow = r.Overflow()
	}
	s.groups[name] = g
	return nil
}

// Addrs lists the bound addresses in the order of the listeners, with the actual ports in place of port 0.
func (s *Server) Addrs() []net.Addr {
	addrs := make([]net.Addr, len(s.bound))
	for i, b := range s.bound {
		addrs[i] = b.ln.Addr()
	}
	return addrs
}

// Count is the number of connections of one front-end.
type Count struct {
	Open              int
	Accepted, Refused uint64
	Dismissed         uint64 // because the client had no right or was above its share: see frontends.Admitter
	Late              uint64 // replies that the ticker sent because nobody had woken their connection
}

// Counts reports connections by the name of the front-end. It may be called from any goroutine after Serve.
func (s *Server) Counts() map[string]Count {
	counts := make(map[string]Count, len(s.groups))
	for name, g := range s.groups {
		counts[name] = Count{
			Open: int(g.open.Load()), Accepted: g.accepted.Load(), Refused: g.refused.Load(),
			Dismissed: g.dismissed.Load(), Late: g.late.Load(),
		}
	}
	return counts
}

// accept accepts connections on one socket until it is closed.
func (s *Server) accept(b bound) {
	g := s.groups[b.Name]
	failing := false // logged once, not ten times a second
	for {
		nc, err := b.ln.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			if !failing {
				s.log.Warn().Err(err).Str("frontend", b.Name).Msg("accept failed, retrying")
			}
			failing = true
			time.Sleep(acceptPause)
			continue
		}
		failing = false
		s.admit(nc, nc.RemoteAddr(), b, g)
	}
}

// admit serves a new connection, unless a limit is reached.
func (s *Server) admit(nc net.Conn, remote net.Addr, b bound, g *group) {
	p := s.enter(g, remote)
	if p == nil {
		g.refused.Add(1)
		s.refuse(nc, g)
		return
	}
	g.accepted.Add(1)
	s.addConn(nc, remote, b, g, p)
}

// refuse tells a client that the limit is reached, if its socket takes the message at once.
func (s *Server) refuse(nc net.Conn, g *group) {
	s.log.Debug().Str("frontend", g.name).Msg("connection limit reached")
	_ = nc.SetWriteDeadline(time.Now().Add(acceptPause)) // a new socket has buffer space; if not, nothing is lost
	_, _ = nc.Write(g.overflow)
	_ = nc.Close()
}

// addConn creates a conn for an accepted socket.
func (s *Server) addConn(nc net.Conn, remote net.Addr, b bound, g *group, p *place) {
	if g.handoff != nil {
		s.handOff(nc, remote, b, g, p)
		return
	}
	c := &conn{srv: s, group: g, place: p, remote: remote, fd: -1}
	if b.TLS != nil {
		s.addStreamConn(nc, b, c)
		return
	}
	if tc, secured := nc.(*tls.Conn); secured {
		s.addSecuredConn(tc, c)
		return
	}
	if a, ok := c.remote.(*net.TCPAddr); ok && a.Zone != "" {
		c.remote = &net.TCPAddr{IP: a.IP, Port: a.Port, Zone: a.Zone}
	}
	if s.blocking {
		s.addStreamConn(nc, b, c)
		return
	}
	if a, ok := nc.RemoteAddr().(*net.TCPAddr); ok {
		a.Zone = "" // gnet would put the string's memory, which it does not own, into a buffer pool
	}
	if _, err := s.client.EnrollContext(nc, c); err != nil {
		s.log.Warn().Err(err).Str("frontend", g.name).Msg("failed to register connection")
		s.leave(g, p)
	}
}

// runTicker calls Frontend.Tick and checks the closing connections, more often while any are leaving.
func (s *Server) runTicker() {
	timer := time.NewTimer(tickEvery)
	defer timer.Stop()
	nextTick := time.Now().Add(tickEvery)
	var held missed
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
			late := held.late(s.broker)
			s.eachWatched(func(l *loop) {
				l.wakeLate(late)
				l.checkTimeouts(now)
				l.checkLogins(now)
				l.watchPeers()
			})
		}
		wait := time.Until(nextTick)
		if s.leaving.Load() > 0 {
			s.eachWatched(func(l *loop) { l.checkTimeouts(now) })
			wait = min(wait, leavingEvery)
		}
		timer.Reset(max(wait, 0))
	}
}

// tick calls Frontend.Tick of all front-ends.
func (s *Server) tick() {
	for _, g := range s.groups {
		if g.frontend != nil {
			s.tickOne(g)
		}
	}
}

// tickOne recovers from a panic, so that the other front-ends continue.
func (s *Server) tickOne(g *group) {
	defer func() {
		if r := recover(); r != nil {
			s.log.Error().Str("frontend", g.name).Interface("panic", r).Bytes("stack", debug.Stack()).Msg("tick failed")
		}
	}()
	g.frontend.Tick(s.broker.Now())
}

// wakeTicker tells the ticker that a conn is leaving.
func (s *Server) wakeTicker() { s.leavingAdded.Set() }

// idleTimeout is the maximum time without progress for a closing conn.
func (s *Server) idleTimeout(p phase) time.Duration {
	switch {
	case p != lingering:
		return stallTimeout
	case s.stopping.Load():
		return stopLingerTimeout
	}
	return lingerTimeout
}

// eachLoop schedules f on every loop.
func (s *Server) eachLoop(f func(*loop)) { s.schedule(f, func(*loop) bool { return true }) }

// eachWatched schedules f on every loop that may have something to look at.
func (s *Server) eachWatched(f func(*loop)) {
	s.schedule(f, func(l *loop) bool { return !l.own || l.watched.Load() })
}

func (s *Server) schedule(f func(*loop), wanted func(*loop) bool) {
	s.loopMu.Lock()
	loops := slices.Clone(s.loops)
	for l := range s.ownLoops {
		loops = append(loops, l)
	}
	s.loopMu.Unlock()
	for _, l := range loops {
		if wanted(l) {
			l.call(func() { f(l) })
		}
	}
}

// StopAccepting closes the listening sockets and removes socket files. Connections stay open.
func (s *Server) StopAccepting() {
	s.closeOnce.Do(func() {
		for _, b := range s.bound {
			if b.ln != nil {
				_ = b.ln.Close() // closed only once; the error does not matter
			}
		}
	})
}

// Stop stops accepting and closes all sessions. Their output, including replies that wait for a commit, is sent until
// ctx is done. The rest is dropped. The broker must still be running.
func (s *Server) Stop(ctx context.Context) {
	s.StopAccepting()
	if !s.served {
		return
	}
	s.stopOnce.Do(func() { s.shutDown(ctx) }) // a second Stop of gnet would close descriptors that it no longer owns
}

func (s *Server) shutDown(ctx context.Context) {
	s.stopping.Store(true)
	s.cancelHandshakes()
	s.drainAll(ctx)
	s.eachLoop((*loop).dropAll)
	s.cancelRunning()
	if s.client != nil {
		_ = s.client.Stop() // the loops report the error that ended them, which Stop caused
	}
	s.goroutines.Wait()
}

// drainAll waits until all connections are closed or ctx is done. It stops the sessions repeatedly, because a
// connection that was accepted just before may not have had a session the first time.
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

// open is the number of open connections.
func (s *Server) open() int64 {
	var n int64
	for _, g := range s.groups {
		n += g.open.Load()
	}
	return n
}
