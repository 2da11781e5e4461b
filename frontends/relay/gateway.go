package relay

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
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

// Gateway accepts the clients of a node, and passes them on to the leader while another node leads.
type Gateway struct {
	maxRelays int64
	tunnel    *tunnelListener
	transport *http.Transport // to the leader

	mu      sync.Mutex // guards the fields below
	node    Node       // nil: not a member of the cluster yet
	server  Server     // nil: another node leads
	relays  map[*relay]struct{}
	changed chan struct{} // closed and replaced when server changes
	closed  bool

	relaying atomic.Int64
	relayed  atomic.Uint64
	done     sync.WaitGroup // accepting goroutines and relays
}

// relay is a client whose bytes are passed on.
type relay struct {
	client, leader net.Conn
	to             string // id of the leader
}

// New creates a gateway with a maximum number of relayed connections.
func New(maxRelays int) *Gateway {
	g := &Gateway{
		maxRelays: int64(max(1, maxRelays)), tunnel: newTunnelListener(), relays: make(map[*relay]struct{}), changed: make(chan struct{}),
	}
	g.transport = g.newTransport()
	return g
}

// Join connects the gateway with its node, once the node is a member.
func (g *Gateway) Join(n Node) {
	g.mu.Lock()
	g.node = n
	g.mu.Unlock()
}

// Counts returns the number of relayed connections, in total and now.
func (g *Gateway) Counts() (relayed uint64, relaying int64) {
	return g.relayed.Load(), g.relaying.Load()
}

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
		if server := g.current(); server != nil {
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

// current is the server of this node while the node leads; otherwise nil.
func (g *Gateway) current() Server {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.server
}

// Lead makes this node serve its clients.
func (g *Gateway) Lead(s Server) {
	g.setServer(s)
	g.closeRelays("")
}

// Follow makes the gateway pass clients on to the leader.
func (g *Gateway) Follow() { g.setServer(nil) }

func (g *Gateway) setServer(s Server) {
	g.mu.Lock()
	g.server = s
	close(g.changed)
	g.changed = make(chan struct{})
	g.mu.Unlock()
}

// LeaderChanged closes the connections to a node that no longer leads.
func (g *Gateway) LeaderChanged() {
	if node := g.member(); node != nil {
		g.closeRelays(node.LeaderID())
	}
	g.transport.CloseIdleConnections()
}

// closeRelays closes the relays to all nodes but one.
func (g *Gateway) closeRelays(except string) {
	g.mu.Lock()
	var stale []*relay
	for r := range g.relays {
		if r.to != except {
			stale = append(stale, r)
		}
	}
	g.mu.Unlock()
	for _, r := range stale {
		_ = r.client.Close() // ends the copying
		_ = r.leader.Close()
	}
}

// Close ends all relays. The sockets are closed before.
func (g *Gateway) Close() {
	g.mu.Lock()
	g.closed = true
	close(g.changed)
	g.changed = make(chan struct{})
	g.mu.Unlock()
	g.closeRelays("")
	_ = g.tunnel.Close() // cannot fail
	g.done.Wait()
}

// pass waits for a leader and passes a client on to it, or serves it if that is this node.
func (g *Gateway) pass(frontend string, conn net.Conn) {
	deadline := time.Now().Add(leaderWait)
	for {
		g.mu.Lock()
		node, server, changed, closed := g.node, g.server, g.changed, g.closed
		g.mu.Unlock()
		switch {
		case closed || time.Now().After(deadline):
			_ = conn.Close() // there is no leader
			return
		case server != nil:
			server.Pass(frontend, conn, nil)
			return
		}
		if node != nil {
			if to, leader := g.dial(node, frontend, conn); to != nil {
				g.copy(&relay{client: conn, leader: to, to: leader})
				return
			}
		}
		select {
		case <-changed:
		case <-time.After(leaderRetry):
		}
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
func (g *Gateway) copy(r *relay) {
	g.mu.Lock()
	node, closed := g.node, g.closed
	g.relays[r] = struct{}{}
	g.mu.Unlock()
	g.relayed.Add(1)
	defer func() {
		g.mu.Lock()
		delete(g.relays, r)
		g.mu.Unlock()
		_ = r.client.Close() // closed twice
		_ = r.leader.Close()
	}()
	if closed || node.LeaderID() != r.to {
		return // the leader has changed in the meantime
	}
	back := make(chan struct{})
	go func() { // ends when the leader's side does, which the deferred calls see to
		defer close(back)
		if _, err := io.Copy(r.client, r.leader); err != nil || !closeWrite(r.client) {
			_ = r.client.Close() // ends the other direction
			_ = r.leader.Close()
		}
	}()
	if _, err := io.Copy(r.leader, r.client); err != nil || !closeWrite(r.leader) {
		_ = r.client.Close()
		_ = r.leader.Close()
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
	if frontend == httpFrontend {
		g.tunnel.pass(conn)
		return
	}
	deadline := time.Now().Add(leaderWait)
	for {
		g.mu.Lock()
		node, server, changed, closed := g.node, g.server, g.changed, g.closed
		g.mu.Unlock()
		switch {
		case server != nil:
			server.Pass(frontend, conn, clientAddress(client))
			return
		case closed, time.Now().After(deadline), node != nil && !node.IsLeader():
			_ = conn.Close() // the other node closes the client, which connects again
			return
		}
		select {
		case <-changed:
		case <-time.After(leaderRetry):
		}
	}
}

// clientAddress is the address of a client of another node. A client on a unix socket has none.
func clientAddress(text string) net.Addr {
	if at, err := netip.ParseAddrPort(text); err == nil {
		return net.TCPAddrFromAddrPort(at)
	}
	return &net.UnixAddr{Name: text, Net: "unix"}
}
