package main

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"broker/core/replica"
	"broker/frontends/eventloop"
)

// Limits of connections that are passed on to the leader.
const (
	leaderWait  = 10 * time.Second // for a leader that serves; clients time out on their own after that
	leaderRetry = 50 * time.Millisecond
)

// gateway accepts the clients of a node in a cluster. While the node leads they are its own; else their bytes are passed on
// to the leader. When the lead changes, all connections are closed: clients connect again, as after a restart of the broker.
type gateway struct {
	log        zerolog.Logger
	maxRelays  int64
	httpTunnel *tunnelListener

	mu      sync.Mutex // guards the fields below
	node    *replica.Node
	server  *eventloop.Server // while this node leads
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

func newGateway(log zerolog.Logger) *gateway {
	limit := processSocketLimits().clients
	if limit == 0 {
		limit = 1 << 20
	}
	return &gateway{
		log: log, maxRelays: int64(max(1, limit/2)), relays: make(map[*relay]struct{}), changed: make(chan struct{}),
		httpTunnel: newTunnelListener(),
	}
}

// serve accepts connections on a socket until it is closed.
func (g *gateway) serve(s eventloop.Socket) {
	defer g.done.Done()
	for {
		conn, err := s.Socket.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			time.Sleep(leaderRetry) // such as without free descriptors
			continue
		}
		if server := g.current(); server != nil {
			server.Pass(s.Name, conn, nil)
			continue
		}
		if g.relaying.Add(1) > g.maxRelays {
			g.relaying.Add(-1)
			_ = conn.Close() // at the limit
			continue
		}
		g.done.Go(func() { // ends with the connection
			defer g.relaying.Add(-1)
			g.pass(s.Name, conn)
		})
	}
}

// current is the server of this node while it leads.
func (g *gateway) current() *eventloop.Server {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.server
}

// lead has clients served by this node; nil: by another one.
func (g *gateway) lead(s *eventloop.Server) {
	g.mu.Lock()
	g.server = s
	close(g.changed)
	g.changed = make(chan struct{})
	g.mu.Unlock()
	if s != nil {
		g.closeRelays("")
	}
}

// leaderChanged closes the connections to a node that no longer leads.
func (g *gateway) leaderChanged() {
	g.mu.Lock()
	node := g.node
	g.mu.Unlock()
	if node != nil {
		g.closeRelays(node.LeaderID())
	}
}

// closeRelays closes the relays to all nodes but one.
func (g *gateway) closeRelays(except string) {
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

// close ends all relays. The sockets are closed before.
func (g *gateway) close() {
	g.mu.Lock()
	g.closed = true
	close(g.changed)
	g.changed = make(chan struct{})
	g.mu.Unlock()
	g.closeRelays("")
	_ = g.httpTunnel.Close() // cannot fail
	g.done.Wait()
}

// pass waits for a leader and passes a client on to it, or serves it if that is this node.
func (g *gateway) pass(frontend string, conn net.Conn) {
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

// dial opens a connection to the leader; nil: there is none.
func (g *gateway) dial(node *replica.Node, frontend string, conn net.Conn) (net.Conn, string) {
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
func (g *gateway) copy(r *relay) {
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
		return // the lead has changed meanwhile
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

// closeWrite tells the other end that no more will come.
func closeWrite(c net.Conn) bool {
	w, ok := c.(interface{ CloseWrite() error })
	return ok && w.CloseWrite() == nil
}

// fromMember serves a client that another node passes on, once this node serves clients.
func (g *gateway) fromMember(conn net.Conn, frontend, client string) {
	if frontend == httpFrontend {
		g.httpTunnel.pass(conn)
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

// clientAddress is the address of a client of another node; one on a unix socket has none.
func clientAddress(text string) net.Addr {
	if at, err := netip.ParseAddrPort(text); err == nil {
		return net.TCPAddrFromAddrPort(at)
	}
	return &net.UnixAddr{Name: text, Net: "unix"}
}
