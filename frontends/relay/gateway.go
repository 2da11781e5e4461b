package relay

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Limits of connections that are passed on to the leader.
const (
	leaderWait  = 10 * time.Second // wait for a serving leader; then clients time out themselves
	leaderRetry = 50 * time.Millisecond
)

// Node is a node of a cluster. core/replica implements it.
type Node interface {
	LeaderID() string // empty: unknown
	IsLeader() bool
	Ready(ctx context.Context) bool // reports whether a client of this node would be served
	DialLeader(ctx context.Context, frontend, client string) (net.Conn, error)
}

// Server serves connections. It takes ownership of them.
type Server interface {
	Pass(frontend string, conn net.Conn, client net.Addr) bool
}

// Operations is the front-end name of the connection over which a node speaks to the leader in operations, also before
// the leader serves its own clients. A leader of a build that does not know it closes the connection.
const Operations = "lasting operations"

// linkWait is how long a request waits for the node's link to a leader, before it is passed on. Connections wait as
// long as for a leader: one that is passed on ends with that leader.
const linkWait = 2 * time.Second

// Gateway accepts the clients of a node, and passes them on to the leader while another node leads.
type Gateway struct {
	atFollower map[string]bool // front-ends whose sessions are at the node of the client
	maxRelays  int64
	tunnel     *tunnelListener
	transport  *http.Transport // to the leader

	mu     sync.Mutex // guards the fields below
	state  state
	relays map[passed]string // what is passed on, and the id of the leader that it is passed on to

	relaying atomic.Int64
	relayed  atomic.Uint64
	requests atomic.Uint64  // passed on
	done     sync.WaitGroup // accepting goroutines and relays
}

// state is the role of the node.
type state struct {
	node     Node           // nil: not a member of the cluster yet
	server   Server         // nil: another node leads
	links    func(net.Conn) // serves a connection for Operations, while this node leads
	sessions Server         // serves some front-ends while another node leads; nil: there is no link to it
	served   []string       // these front-ends, and Requests
	linking  bool           // there will be one: nobody knows yet that there is none
	changed  chan struct{}  // closed and replaced at each change
	closed   bool
}

// passed is what is passed on to a leader. end may be called several times.
type passed interface{ end() }

// relay is a client whose bytes are passed on.
type relay struct{ client, leader net.Conn }

// end ends the copying in both directions.
func (r *relay) end() {
	_ = r.client.Close() // nothing is lost: the client reconnects
	_ = r.leader.Close()
}

// New creates a gateway with a maximum number of relayed connections. A node that follows may serve the given
// front-ends itself, and is expected to: Sessions and Link say whether it does.
func New(maxRelays int, atFollower ...string) *Gateway {
	g := &Gateway{
		atFollower: make(map[string]bool),
		maxRelays:  int64(max(1, maxRelays)), tunnel: newTunnelListener(), relays: make(map[passed]string),
		state: state{linking: len(atFollower) > 0, changed: make(chan struct{})},
	}
	for _, name := range atFollower {
		g.atFollower[name] = true
	}
	g.transport = g.newTransport()
	return g
}

// Join connects the gateway with its node, once the node is a member.
func (g *Gateway) Join(n Node) { g.change(func(s *state) { s.node = n }) }

// Counts returns the number of relayed connections, in total and now.
func (g *Gateway) Counts() (relayed uint64, relaying int64) {
	return g.relayed.Load(), g.relaying.Load()
}

// Requests is the number of HTTP requests that were passed on.
func (g *Gateway) Requests() uint64 { return g.requests.Load() }

// Accept starts to accept the clients of a front-end, until the socket is closed.
func (g *Gateway) Accept(frontend string, socket net.Listener) {
	g.done.Go(func() { g.accept(frontend, socket) }) // ends when the socket is closed
}

func (g *Gateway) accept(frontend string, socket net.Listener) {
	for {
		conn, err := socket.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			time.Sleep(leaderRetry) // for example no free descriptors
			continue
		}
		if server := g.serverOf(frontend, g.current()); server != nil {
			server.Pass(frontend, conn, nil)
			continue
		}
		if g.relaying.Add(1) > g.maxRelays {
			g.relaying.Add(-1)
			_ = conn.Close() // at the limit
			continue
		}
		g.done.Go(func() { // ends with the connection
			defer g.relaying.Add(-1)
			g.pass(frontend, conn)
		})
	}
}

// serverOf is the server of this node that serves the clients of a front-end; nil: they are passed on.
func (g *Gateway) serverOf(frontend string, now state) Server {
	if now.server == nil && now.sessions != nil && slices.Contains(now.served, frontend) {
		return now.sessions
	}
	return now.server
}

func (g *Gateway) current() state {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.state
}

// change changes the state and wakes the clients that wait for a leader.
func (g *Gateway) change(set func(*state)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	set(&g.state)
	close(g.state.changed)
	g.state.changed = make(chan struct{})
}

// Lead makes this node serve its clients.
func (g *Gateway) Lead(s Server) {
	g.change(func(now *state) { now.server = s })
	g.closeRelays("")
}

// Links makes this node serve other nodes' connections for Operations, before its own clients. serve takes ownership of
// the connections.
func (g *Gateway) Links(serve func(net.Conn)) { g.change(func(now *state) { now.links = serve }) }

// Follow makes the gateway pass clients on to the leader.
func (g *Gateway) Follow() { g.change(func(s *state) { s.server, s.links = nil, nil }) }

// Link says whether this node is about to have a link to the leader: clients wait for it.
func (g *Gateway) Link(expected bool) { g.change(func(s *state) { s.linking = expected }) }

// Sessions makes a server serve the clients of some front-ends while another node leads; nil: the link to it has ended,
// and the next one is expected.
func (g *Gateway) Sessions(s Server, served ...string) {
	g.change(func(now *state) { now.sessions, now.served, now.linking = s, served, s == nil })
}

// LeaderChanged closes the connections to a node that no longer leads.
func (g *Gateway) LeaderChanged() {
	g.closeRelays(g.leaderID())
	g.transport.CloseIdleConnections()
}

// leaderID is the id of the leader; empty: unknown.
func (g *Gateway) leaderID() string {
	if node := g.current().node; node != nil {
		return node.LeaderID()
	}
	return ""
}

// add notes what is passed on to a leader, and remove that it is not any more.
func (g *Gateway) add(p passed, leader string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.relays[p] = leader
}

func (g *Gateway) remove(p passed) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.relays, p)
}

// closeRelays closes the relays to all nodes but one.
func (g *Gateway) closeRelays(except string) {
	g.mu.Lock()
	var stale []passed
	for p, to := range g.relays {
		if to != except {
			stale = append(stale, p)
		}
	}
	g.mu.Unlock()
	for _, p := range stale {
		p.end()
	}
}

// Close ends all relays. The sockets are closed before.
func (g *Gateway) Close() {
	g.change(func(s *state) { s.closed = true })
	g.closeRelays("")
	_ = g.tunnel.Close() // cannot fail
	g.done.Wait()
}

// pass waits for a leader and passes a client on to it, or serves it if that is this node.
func (g *Gateway) pass(frontend string, conn net.Conn) {
	began := time.Now()
	for {
		now, waited := g.current(), time.Since(began)
		server := g.serverOf(frontend, now)
		switch {
		case now.closed || waited > leaderWait:
			_ = conn.Close() // there is no leader
			return
		case server != nil:
			server.Pass(frontend, conn, nil)
			return
		}
		if now.node != nil && !(now.linking && g.atFollower[frontend]) {
			if to, leader := g.dial(now.node, frontend, conn); to != nil {
				g.copy(&relay{client: conn, leader: to}, leader)
				return
			}
		}
		wait(context.Background(), now.changed)
	}
}

// wait waits a moment, or until the state has changed.
func wait(ctx context.Context, changed <-chan struct{}) {
	select {
	case <-changed:
	case <-time.After(leaderRetry):
	case <-ctx.Done():
	}
}

// dial opens a connection to the leader; nil: no leader.
func (g *Gateway) dial(node Node, frontend string, conn net.Conn) (net.Conn, string) {
	leader := node.LeaderID()
	if leader == "" {
		return nil, ""
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	to, err := node.DialLeader(ctx, frontend, conn.RemoteAddr().String())
	if err != nil {
		return nil, ""
	}
	return to, leader
}

// copy passes bytes on in both directions until both sides have ended, or one is broken.
func (g *Gateway) copy(r *relay, leader string) {
	g.add(r, leader)
	g.relayed.Add(1)
	defer func() {
		g.remove(r)
		r.end()
	}()
	if g.current().closed || g.leaderID() != leader {
		return // the leader has changed in the meantime
	}
	back := make(chan struct{})
	go func() { // ends when the leader's side does
		defer close(back)
		if _, err := io.Copy(r.client, r.leader); err != nil || !closeWrite(r.client) {
			r.end()
		}
	}()
	if _, err := io.Copy(r.leader, r.client); err != nil || !closeWrite(r.leader) {
		r.end()
	}
	<-back
}

// closeWrite closes the sending side.
func closeWrite(c net.Conn) bool {
	w, ok := c.(interface{ CloseWrite() error })
	return ok && w.CloseWrite() == nil
}

// FromMember serves a client from another node, once this node serves clients.
func (g *Gateway) FromMember(conn net.Conn, frontend, client string) {
	if frontend == HTTP {
		g.tunnel.pass(conn)
		return
	}
	deadline := time.Now().Add(leaderWait)
	for {
		now := g.current()
		switch {
		case frontend == Operations && now.links != nil:
			now.links(conn)
			return
		case now.server != nil && frontend != Operations:
			now.server.Pass(frontend, conn, clientAddress(client))
			return
		case now.closed, time.Now().After(deadline), now.node != nil && !now.node.IsLeader():
			_ = conn.Close() // the other node closes the client, which connects again
			return
		}
		wait(context.Background(), now.changed)
	}
}

// clientAddress is the address of a client of another node. A client on a unix socket has none.
func clientAddress(text string) net.Addr {
	if at, err := netip.ParseAddrPort(text); err == nil {
		return net.TCPAddrFromAddrPort(at)
	}
	return &net.UnixAddr{Name: text, Net: "unix"}
}
