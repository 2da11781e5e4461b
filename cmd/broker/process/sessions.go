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

	"broker/access"
	"broker/core"
	"broker/core/remote"
	"broker/core/replica"
	"broker/frontends"
	"broker/frontends/eventloop"
	"broker/frontends/relay"
	"broker/operate/service"
)

// atFollower are the front-ends whose sessions are at the node of the client, also while it follows. What clients of
// all nodes share is in the core, or with the front-end of the leader. The leader itself serves the clients of the
// others: Conveyor has registries in its process, and Qless its whole state.
var atFollower = []string{"workq", "gearman", "beanstalk", "faktory", sqsName}

// firstAtFollower are those that a leader serves over links if it does not say which.
var firstAtFollower = []string{"workq", "gearman", "beanstalk"}

// sessions are the front-ends of a node that follows, over a link to the leader.
type sessions struct {
	*Process

	config     Settings // the process's settings that apply
	leader     string   // id of the node
	broker     *remote.Broker
	server     *eventloop.Server
	frontends  map[string]frontends.Frontend
	sqs        *sqsPort // nil: it is off
	served     []string // names of both
	routes     routes
	routeEpoch atomic.Uint64
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

	// Frontends are those of its build whose sessions may be at a node that follows; nil: firstAtFollower.
	Frontends []string `json:"frontends,omitempty"`
}

// errNotDialed: the leader is not reached, for no client either.
var errNotDialed = errors.New("no connection to the leader")

// newLinks makes the server for the clients of nodes that follow.
func (t *term) newLinks() *remote.Server {
	note, err := json.Marshal(leaderNote{Handles: t.handlePrefix(), Frontends: atFollower})
	if err != nil {
		panic(err) // texts
	}
	return remote.NewServer(t.engine, note, linkOwner{t, sharedSet{
		"faktory": t.frontends.faktory, sqsName: t.frontends.sqs,
	}})
}

// serveLink serves the clients of a node that follows.
func (t *term) serveLink(conn net.Conn) {
	go func() { // ends with the link
		_ = conn.SetDeadline(time.Now().Add(linkFor)) // on a dead socket the next call fails too
		err := t.links.Serve(conn)
		t.log.Debug().AnErr("reason", err).Msg("a node that follows has no link any more")
	}()
}

// follow keeps a link to the leader while another node leads, until ctx ends.
func (k *clusterNode) follow(ctx context.Context) {
	k.gate.Link(true)
	lastRefused := "" // the leader that speaks no operations; logged once
	for ctx.Err() == nil {
		node := k.node.Load()
		leader := node.LeaderID()
		if leader == "" || node.IsLeader() {
			lastRefused = ""
			k.gate.Link(true)
			k.awaitLeader(ctx, leaderFor)
			continue
		}
		s, err := k.link(ctx, node, leader)
		if err == nil {
			lastRefused = ""
			k.serveSessions(ctx, node, s)
			k.gate.Link(true)
			continue
		}
		if node.LeaderID() != leader || errors.Is(err, errNotDialed) {
			k.awaitLeader(ctx, leaderFor)
			continue
		}
		k.gate.Link(false) // the leader is of a build that speaks no operations, or others
		if lastRefused != leader {
			lastRefused = leader
			k.log.Info().Err(err).Str("leader", leader).Msg("no link to the leader, bytes of clients are passed on")
		}
		k.awaitLeader(ctx, linkRetry)
	}
}

// awaitLeader waits until the leader has changed, for some time.
func (k *clusterNode) awaitLeader(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-k.leaderChanged:
	case <-time.After(d):
	}
}

// link connects to the leader and makes the front-ends.
func (k *clusterNode) link(ctx context.Context, node *replica.Node, leader string) (*sessions, error) {
	ctx, cancel := context.WithTimeout(ctx, linkFor)
	defer cancel()
	conn, err := node.DialLeader(ctx, relay.Operations, "")
	if err != nil {
		return nil, errors.Join(errNotDialed, err)
	}
	_ = conn.SetDeadline(time.Now().Add(linkFor)) // on a dead socket the next call fails too
	undo := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	hears := &hearing{}
	b, err := remote.Dial(conn, k.systemClock(), hears.hear)
	undo()
	if err != nil {
		return nil, err
	}
	s, err := k.newSessions(b, leader, hears)
	if err != nil {
		b.Hangup()
		return nil, err
	}
	return s, nil
}

// newSessions makes the front-ends over a link.
func (k *clusterNode) newSessions(b *remote.Broker, leader string, hears *hearing) (*sessions, error) {
	note := leaderNote{Frontends: firstAtFollower}
	if err := json.Unmarshal(b.Note(), &note); err != nil {
		return nil, err
	}
	s := &sessions{
		Process: k.Process, leader: leader, broker: b, frontends: make(map[string]frontends.Frontend),
	}
	k.reloads.Lock()
	defer k.reloads.Unlock()
	s.config, s.routes = k.config, make(routes)
	shared, err := s.makeFrontends(note)
	if err != nil {
		return nil, err
	}
	hears.shared.Store(&shared)
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
	k.sessions = s
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
			continue // SQS, or one that only the leader's build knows
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

// serveSessions serves clients until the link ends, the leader changes, or ctx ends.
func (k *clusterNode) serveSessions(ctx context.Context, node *replica.Node, s *sessions) {
	k.front.Store(s)
	k.gate.Sessions(s.server, s.served...)
	k.log.Info().Str("leader", s.leader).Msg("linked to the leader, serving clients")
	check := time.NewTicker(linkRetry)
	defer check.Stop()
	for live := true; live && ctx.Err() == nil && node.LeaderID() == s.leader; {
		select {
		case <-ctx.Done():
		case <-s.broker.Gone():
			live = false
		case <-k.leaderChanged:
		case <-check.C:
		}
	}
	k.gate.Sessions(nil)
	k.gate.Link(true)
	k.front.Store(nil)
	k.reloads.Lock()
	k.Process.sessions = nil
	k.reloads.Unlock()
	s.close(ctx.Err() != nil)
	k.log.Info().Str("leader", s.leader).AnErr("reason", s.broker.Reason()).Msg("the link to the leader has ended")
}

// close closes all connections. If this node stops, clients get the replies that are committed first.
func (s *sessions) close(orderly bool) {
	ctx, cancel := context.WithTimeout(context.Background(), handOverFor)
	defer cancel()
	if !orderly {
		cancel()
		s.broker.Hangup()
		s.sqs.abandon()
	}
	s.sqs.stop(ctx)
	s.server.Stop(ctx)
	s.broker.Hangup()
}

// audit tells the leader what belongs in the audit log.
func (s *sessions) audit(c access.Change) {
	say, err := json.Marshal(c)
	if err != nil {
		panic(err) // texts and a number
	}
	s.broker.Tell(say)
}

// connections counts the connections of each front-end.
func (s *sessions) connections() map[string]service.Connections { return s.connectionsOf(s.server) }

// apply applies the settings that differ.
func (s *sessions) apply(fresh *Settings) {
	same := reflect.DeepEqual(s.config.Routes, fresh.Routes)
	if takeTables(&s.config, fresh); same {
		return
	}
	s.routes.load(&fresh.Config)
	s.routeEpoch.Add(1)
}
