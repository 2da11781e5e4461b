package process

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"reflect"
	"slices"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"broker/access"
	"broker/core"
	"broker/core/remote"
	"broker/core/replica"
	"broker/frontends"
	"broker/frontends/eventloop"
	"broker/frontends/faktory"
	"broker/frontends/relay"
	"broker/operate/service"
)

// atFollower are the front-ends whose sessions are at the node of the client, also while it follows. Of HTTP, these are
// the routes with httpserver.AtNode. What clients of all nodes share is in the core, or with the front-end of the
// leader. The leader itself serves the clients of the others: Conveyor has registries in its process, and Qless its
// whole state.
var atFollower = []string{"workq", "gearman", "beanstalk", "faktory", sqsName, relay.HTTP}

// sessions are front-ends of a node, over a link to the leader. They stay when another node becomes the leader, or this
// one: then they are linked to the leader in their own process.
type sessions struct {
	*Process

	config     Settings // the process's settings that apply
	broker     *remote.Broker
	server     *eventloop.Server
	frontends  map[string]frontends.Frontend
	sqs        *sqsPort // nil: it is off
	served     []string // names of both, and of HTTP
	routes     routes
	routeEpoch atomic.Uint64
	linked     atomic.Bool
}

// Deadlines of links.
const (
	linkFor   = 12 * time.Second // from the connection to the leader's hello: it may be about to serve
	linkRetry = time.Second      // after a leader that speaks no operations, or an error
	leaderFor = 50 * time.Millisecond
)

// leaderNote is what a leader says to the nodes that connect.
type leaderNote struct {
	Handles string `json:"handles"` // prefix of handles: one job has the same on all nodes

	// Frontends are those of its build whose sessions may be at a node that follows over this link.
	Frontends []string `json:"frontends,omitempty"`
}

// errNotDialed: the leader is not reached, for no client either.
var errNotDialed = errors.New("no connection to the leader")

// newLinks makes the server for the clients of nodes that follow.
func (t *term) newLinks(l *replica.Leadership) *remote.Server {
	return remote.NewServer(t.engine, remote.ServerOptions{
		Node: t.config.Cluster.Node, Note: frontends.ToJSON(leaderNote{t.handlePrefix(), atFollower}),
		Owner: linkOwner{t, sharedSet{"faktory": t.frontends.faktory, sqsName: t.frontends.sqs}},
		Term:  l.Term, Before: l.Before, LastTerm: l.LastTerm,
	})
}

// serveOver serves the clients of a node that follows.
func (t *term) serveOver(links *remote.Server) func(net.Conn) {
	return func(conn net.Conn) {
		go func() { // ends with the link
			_ = conn.SetDeadline(time.Now().Add(linkFor)) // on a dead socket the next call fails too
			err := links.Serve(conn)
			t.log.Info().Stringer("remote", conn.RemoteAddr()).AnErr("reason", err).Msg("the link of a node has ended")
		}()
	}
}

// follow keeps a link to the leader, until ctx ends.
func (k *clusterNode) follow(ctx context.Context) {
	hears := &hearing{}
	b := remote.NewBroker(remote.BrokerOptions{
		Node: k.config.Cluster.Node, Clock: k.systemClock(), Told: hears.hear, Register: hears.register,
	})
	var refused refusals
	for ctx.Err() == nil {
		leader := k.node.Load().LeaderID()
		if refused.forgetOthers(leader) {
			k.gate.Link(true)
		}
		up, err := k.link(ctx, b, hears, leader)
		if err == nil {
			refused = refusals{}
			k.serveSessions(ctx, up, leader)
			continue
		}
		if errors.Is(err, errNotDialed) || k.node.Load().LeaderID() != leader {
			k.awaitLeader(ctx, leaderFor)
			continue
		}
		if refused.by(leader) {
			k.gate.Link(false)
			k.log.Info().Err(err).Str("leader", leader).Msg("no link to the leader, bytes of clients are passed on")
		}
		if k.awaitLeader(ctx, linkRetry) {
			refused.leaderChanged()
		}
	}
	if s := k.front.Load(); s != nil {
		s.close()
	}
	b.Shut()
}

// awaitLeader waits until the leader has changed, for some time. It reports whether that is so.
func (k *clusterNode) awaitLeader(ctx context.Context, d time.Duration) (changed bool) {
	select {
	case <-ctx.Done():
	case <-k.leaderChanged:
		return true
	case <-time.After(d):
	}
	return false
}

// link links the broker of this node's clients to the leader, and makes the front-ends when that is done for the first
// time. Without clients from before it led, a leader needs no link.
func (k *clusterNode) link(
	ctx context.Context, b *remote.Broker, hears *hearing, leader string,
) (*remote.Uplink, error) {
	conn, err := k.dialLeader(ctx, leader)
	if err != nil {
		return nil, errors.Join(errNotDialed, err)
	}
	up, err := dialOver(ctx, b, conn)
	if err != nil || k.front.Load() != nil {
		return up, err
	}
	s, err := k.newSessions(b, up.Note(), hears)
	if err != nil {
		up.Hangup()
		return nil, err
	}
	k.reloads.Lock()
	k.sessions = s
	k.reloads.Unlock()
	k.front.Store(s)
	return up, nil
}

// dialOver links a broker over a connection to the leader.
func dialOver(ctx context.Context, b *remote.Broker, conn net.Conn) (*remote.Uplink, error) {
	_ = conn.SetDeadline(time.Now().Add(linkFor)) // on a dead socket the next call fails too
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })()
	return b.Dial(conn)
}

// dialLeader connects to the leader, which may be this node.
func (k *clusterNode) dialLeader(ctx context.Context, leader string) (net.Conn, error) {
	switch {
	case leader == "":
		return nil, errNotDialed
	case leader != k.config.Cluster.Node:
		ctx, cancel := context.WithTimeout(ctx, linkFor)
		defer cancel()
		return k.node.Load().DialLeader(ctx, relay.Operations, "")
	}
	links := k.links.Load()
	if links == nil || !k.inUse() {
		return nil, errNotDialed
	}
	near, far := net.Pipe()
	go func() { _ = links.Serve(far) }() // ends with the link, which says why
	return near, nil
}

// newSessions makes the front-ends over a link.
func (k *clusterNode) newSessions(b *remote.Broker, said []byte, hears *hearing) (*sessions, error) {
	var note leaderNote
	if err := json.Unmarshal(said, &note); err != nil {
		return nil, err
	}
	s := &sessions{Process: k.Process, broker: b, frontends: make(map[string]frontends.Frontend)}
	k.reloads.Lock()
	defer k.reloads.Unlock()
	s.config, s.routes = k.config, make(routes)
	shared, err := s.makeFrontends(note)
	if err != nil {
		return nil, err
	}
	hears.shared.Store(&shared)
	s.followHTTP(note)
	var listeners []eventloop.Listener
	for _, bound := range k.server.Sockets() {
		if slices.Contains(s.served, bound.Name) {
			listeners = append(listeners, bound.Listener)
		}
	}
	s.server = eventloop.Attach(listeners)
	err = s.server.Serve(eventloop.Options{
		Broker: b, Blocking: true, MaxConns: maxConnections(&s.config.Config), Frontends: s.frontends,
		Handoffs: s.sqs.handoffs(), MaxSockets: processSocketLimits().clients,
		MaxOutput: int(s.config.Limits.OutputBytes), Buffers: int(s.config.Limits.BufferBytes), Log: k.log,
	})
	if err != nil {
		s.sqs.abandon()
		return nil, err
	}
	return s, nil
}

// makeFrontends makes those that the leader serves over links. shared are those with a part that clients of all nodes
// share.
func (s *sessions) makeFrontends(note leaderNote) (shared sharedSet, err error) {
	of := parts{
		Process: s.Process, config: &s.config.Config, broker: s.broker, handles: core.NewHandleFormat(note.Handles),
		audit: s.audit, routes: s.routes, routeEpoch: s.routeEpoch.Load,
		leader: func(protocol string) frontends.Leader { return frontLeader{s.broker, protocol} },
	}
	shared = make(sharedSet)
	for _, name := range note.Frontends {
		if makers[name] == nil || !slices.Contains(atFollower, name) {
			continue // SQS, HTTP, or one that only the leader's build knows
		}
		f := of.make(name)
		s.frontends[name], s.served = f, append(s.served, name)
		if with, shares := f.(frontends.Shared); shares {
			shared[name] = with
		}
	}
	if slices.Contains(note.Frontends, sqsName) && !s.config.SQS.Listen.Off() {
		f := of.sqs()
		if s.sqs, err = s.newSQSPort(f); err != nil {
			return nil, err
		}
		s.served, shared[sqsName] = append(s.served, sqsName), f
	}
	return shared, nil
}

// followHTTP makes the service for requests over a link. It is there for every link, also if the first leader is of a
// build that serves none. Batches have the names that Faktory's front-end gives them.
func (s *sessions) followHTTP(note leaderNote) {
	named, is := s.frontends["faktory"].(*faktory.Frontend)
	if !is {
		return // the first leader's build is older still
	}
	s.api.Follow(service.NewFollower(service.Options{
		Broker: s.broker, Handles: core.NewHandleFormat(note.Handles), MaxBodyBytes: int(s.config.HTTP.MaxBody),
		Cluster: s.cluster.forHTTP(), Faktory: faktoryFrontend{named},
	}))
	s.served = append(s.served, relay.HTTP)
}

// servedOver are the front-ends whose clients are served over a link: those that the leader's build serves so.
func (s *sessions) servedOver(up *remote.Uplink) (names []string) {
	var note leaderNote
	_ = json.Unmarshal(up.Note(), &note) // one that says nothing serves none
	for _, name := range s.served {
		if slices.Contains(note.Frontends, name) {
			names = append(names, name)
		}
	}
	return names
}

// inUse reports whether clients of this node from before it led need a link to it. A connection may have none at the
// moment: SQS has one for each request.
func (k *clusterNode) inUse() bool {
	s := k.front.Load()
	if s == nil {
		return false
	}
	for _, c := range s.server.Counts() {
		if c.Open > 0 {
			return true
		}
	}
	return s.broker.InUse()
}

// serveSessions serves clients until the link ends, the leader changes, or ctx ends. Then they wait for the next link.
func (k *clusterNode) serveSessions(ctx context.Context, up *remote.Uplink, leader string) {
	s := k.front.Load()
	own := leader == k.config.Cluster.Node
	s.linked.Store(!own)
	if !own {
		k.lastLeader.Store(&leader)
		k.gate.Sessions(s.server, s.servedOver(up)...)
	}
	level := zerolog.InfoLevel
	if own {
		level = zerolog.DebugLevel // it says that it leads, and serves
	}
	ready := up.Ready()
	check := time.NewTicker(linkRetry)
	defer check.Stop()
	for live := true; live && ctx.Err() == nil && k.node.Load().LeaderID() == leader; {
		if own && !k.inUse() {
			break
		}
		select {
		case <-ctx.Done():
		case <-ready:
			ready = nil
			k.log.WithLevel(level).Str("leader", leader).Msg("linked to the leader, serving clients")
		case <-up.Gone():
			live = false
		case <-k.leaderChanged:
		case <-check.C:
		}
	}
	k.gate.Sessions(nil)
	if ctx.Err() == nil || own {
		s.linked.Store(false)
		up.Hangup()
	}
	k.log.WithLevel(level).Str("leader", leader).AnErr("reason", up.Reason()).Msg("the link to the leader has ended")
}

// close closes all connections. Clients get the replies that are committed first, if there is a link.
func (s *sessions) close() {
	ctx, cancel := context.WithTimeout(context.Background(), handOverFor)
	defer cancel()
	if !s.linked.Load() {
		cancel()
		s.sqs.abandon()
	}
	defer context.AfterFunc(ctx, s.broker.Shut)() // clients that wait for an answer hold up the end
	s.sqs.stop(ctx)
	s.server.Stop(ctx)
}

// audit tells the leader what belongs in the audit log.
func (s *sessions) audit(c access.Change) { s.broker.Tell(frontends.ToJSON(c)) }

// isLinked reports whether clients of this node have a link to the leader, which is another node.
func (k *clusterNode) isLinked() bool {
	s := k.front.Load()
	return s != nil && s.linked.Load()
}

// connections counts the connections of each front-end.
func (k *clusterNode) connections() map[string]service.Connections {
	if s := k.front.Load(); s != nil {
		return k.connectionsOf(s.server)
	}
	return k.connectionsOf()
}

// apply applies the settings that differ.
func (s *sessions) apply(fresh *Settings) {
	same := reflect.DeepEqual(s.config.Routes, fresh.Routes)
	if takeTables(&s.config, fresh); same {
		return
	}
	s.routes.load(&fresh.Config)
	s.routeEpoch.Add(1)
}
