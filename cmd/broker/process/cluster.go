package process

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"broker/config"
	"broker/core/engine"
	"broker/core/notify"
	"broker/core/remote"
	"broker/core/replica"
	"broker/frontends/eventloop"
	"broker/frontends/relay"
	"broker/operate/httpapi"
	"broker/operate/service"
)

// clusterNode is a broker that is a node of a cluster. The process that it wraps has the sockets, the HTTP port and the
// settings; while the node leads, it has a term.
type clusterNode struct {
	*Process
	gate   *relay.Gateway
	node   atomic.Pointer[replica.Node]
	socket net.Listener // for the other nodes

	leaderChanged notify.Signal
	front         atomic.Pointer[sessions]      // nil: this node has never been linked to a leader
	links         atomic.Pointer[remote.Server] // nil: this node does not lead
	lastLeader    atomic.Pointer[string]        // to which this node was linked last; nil: none
}

// runCluster is Run for a node of a cluster.
func (p *Process) runCluster() error {
	k := &clusterNode{
		Process: p, gate: relay.New(maxRelays(), atFollower...), leaderChanged: notify.NewSignal(),
	}
	if stopped, err := p.listen(); err != nil || stopped {
		return err
	}
	if err := k.listenToNodes(); err != nil {
		p.closeSockets()
		return err
	}
	p.cluster = k
	if err := p.serveHTTP(); err != nil {
		return err
	}
	if err := measureRaft(p.api.Registerer()); err != nil {
		k.log.Error().Err(err).Msg("raft's metrics are missing")
	}
	k.serveNodes()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	opened := make(chan error, 1)
	go func() { opened <- k.open(ctx) }()
	select {
	case err := <-opened:
		if err != nil {
			return errors.Join(err, k.closeNode())
		}
	case <-p.shutdowns:
		cancel()
		if err := <-opened; err != nil {
			k.log.Info().Err(err).Msg("stopped before this node was a member")
		}
		return k.closeNode()
	}
	p.announce()
	p.notifyReady()
	p.allowReloads()
	following := make(chan struct{})
	go func() {
		defer close(following)
		k.follow(ctx)
	}()
	err := k.serve()
	return errors.Join(err, k.stop(func() error {
		cancel()
		<-following
		return k.closeNode()
	}))
}

// listenToNodes binds the address for the other nodes.
func (k *clusterNode) listenToNodes() error {
	c := &k.config.Cluster
	address := c.Listen.Address
	if address == "" {
		own, _ := c.Members.Find(c.Node) // the settings are validated
		address = own.Address
	}
	listener := eventloop.Listener{Name: "cluster", Network: "tcp", Address: address}
	all, err := listener.Open()
	for isInUse(err) && time.Now().Before(k.retryUntil) {
		time.Sleep(bindRetryEvery)
		all, err = listener.Open()
	}
	if err != nil {
		return fmt.Errorf("%w; is another node running with this id?", err)
	}
	k.socket = all[0]
	for _, more := range all[1:] {
		_ = more.Close() // one address of a name is enough
	}
	return nil
}

// maxRelays is the maximum number of clients that a node passes on. Each needs two descriptors.
func maxRelays() int {
	if limit := processSocketLimits().clients; limit > 0 {
		return limit / 2
	}
	return 1 << 19
}

// serveNodes starts to accept clients and pass them on.
func (k *clusterNode) serveNodes() {
	own := k.http.Handler
	k.http.Handler = k.gate.Handler(relay.Handlers{Own: own, OverLink: httpapi.OverLink(own), HomeOf: k.api.HomeOf})
	go func() { // ends when the tunnel is closed
		if err := k.http.Serve(k.gate.Tunnel()); !errors.Is(err, http.ErrServerClosed) &&
			!errors.Is(err, net.ErrClosed) {
			k.log.Error().Err(err).Msg("http server failed")
		}
	}()
	for _, s := range k.server.Sockets() {
		k.gate.Accept(s.Name, s.Socket)
	}
}

// open joins the cluster. It waits as long as that takes.
func (k *clusterNode) open(ctx context.Context) error {
	c := &k.config.Cluster
	security, err := c.TLS()
	if err != nil {
		return err
	}
	o := replica.Options{
		ID: c.Node, Join: c.Join, Dir: k.config.Data, Listener: k.socket, TLS: security,
		ElectionTimeout: c.ElectionTimeout,
		CommitLeases:    c.LeaseCommit == config.LeaseBefore,
		MinFreeDisk:     uint64(k.config.MinFreeDisk),
		KeepLogBytes:    uint64(c.KeepLog),
		Version:         k.Version, Clock: k.systemClock(), Client: k.gate.FromMember, Log: nodeLog(k.log),
		Content: service.ContentOf,
		LeaderChanged: func() {
			k.gate.LeaderChanged()
			k.leaderChanged.Set()
		},
		Linked: k.isLinked,
	}
	for _, m := range c.Members {
		o.Members = append(o.Members, replica.Member{ID: m.ID, Address: m.Address})
	}
	n, err := replica.Open(ctx, o)
	if err != nil {
		return err
	}
	k.node.Store(n)
	k.gate.Join(n)
	if n.Removed(ctx) {
		return replica.ErrRemoved
	}
	return nil
}

// nodeLog writes the node's messages to the log.
func nodeLog(log zerolog.Logger) func(slog.Level, string, ...any) {
	return func(level slog.Level, text string, fields ...any) {
		to := zerolog.DebugLevel
		switch {
		case level >= slog.LevelError:
			to = zerolog.ErrorLevel
		case level >= slog.LevelWarn:
			to = zerolog.WarnLevel
		case level >= slog.LevelInfo:
			to = zerolog.InfoLevel
		}
		log.WithLevel(to).Fields(fields).Msg(text)
	}
}

// serve runs a term whenever the node has won an election, until a shutdown is requested or the node fails.
func (k *clusterNode) serve() error {
	node := k.node.Load()
	for {
		select {
		case l := <-node.Leads():
			stop, err := k.lead(l)
			if err != nil || stop {
				return err
			}
		case err := <-node.Failed():
			return err
		case <-k.shutdowns:
			return nil
		case <-k.drainRequests:
			k.log.Warn().Msg("this node does not lead, it has no jobs to hand out")
		}
	}
}

// lead opens the engine and serves clients until the node loses the leadership (stop is false then) or must stop.
func (k *clusterNode) lead(l *replica.Leadership) (stop bool, err error) {
	started := time.Now()
	t := k.leaderTerm()
	o := t.engineOptions()
	l.Attach(&o)
	o.Resumes = true
	if t.engine, err = engine.Open(o); err != nil {
		select {
		case <-l.Lost():
			return false, nil
		case <-time.After(lostWithin):
			return true, err
		}
	}
	if isClosed(l.Lost()) {
		return false, t.engine.Shutdown()
	}
	t.makeFrontends()
	if err := t.loadQueues(); err != nil {
		return true, errors.Join(err, t.engine.Shutdown())
	}
	k.takeOver(t, l)
	if err := t.serveClients(); err != nil {
		k.links.Store(nil)
		t.links.Close(context.Background())
		return true, errors.Join(err, t.engine.Shutdown())
	}
	k.beginTerm(t)
	k.gate.Lead(t.server)
	l.Serving(true)
	k.log.Info().Uint64("term", l.Term).Dur("took_ms", time.Since(started)).Msg("serving clients as the leader")
	stop, err = k.waitWhileLeading(t, l)
	l.Serving(false)
	k.gate.Follow()
	k.links.Store(nil)
	k.endTerm()
	if stop && err == nil {
		k.handOver(t)
		return true, nil
	}
	t.abandon()
	return stop, err
}

// takeOver lets the clients of the leader before, whose nodes are still there, continue what they had.
func (k *clusterNode) takeOver(t *term, l *replica.Leadership) {
	t.links = t.newLinks(l)
	k.links.Store(t.links)
	k.gate.Links(t.serveOver(t.links))
	k.leaderChanged.Set() // this node's own clients may continue here
	var nodes []string
	for _, m := range k.node.Load().Members() {
		if last := k.lastLeader.Load(); last != nil && *last == m.ID {
			continue // it has failed; if not, its own clients were closed
		}
		if m.ID != k.config.Cluster.Node || k.inUse() {
			nodes = append(nodes, m.ID)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), settleFor)
	defer cancel()
	t.links.Settle(ctx, nodes, t.engine.Settle)
}

// settleFor is how long a new leader waits for the clients of other nodes to continue what they had, before it hands
// anything out.
const settleFor = 100 * time.Millisecond

// waitWhileLeading handles requests to the leader until it has to end.
func (k *clusterNode) waitWhileLeading(t *term, l *replica.Leadership) (stop bool, err error) {
	check := time.NewTicker(lostWithin)
	defer check.Stop()
	stopped := false
	for {
		select {
		case <-check.C:
			if stopped {
				return true, errors.New("the engine has stopped while this node leads")
			}
			stopped = t.engine.Stopped() // the node is losing the leadership, or the store cannot be read
		case <-l.Lost():
			return false, nil
		case err := <-k.node.Load().Failed():
			return true, err
		case e := <-k.shutdowns:
			if e.Graceful {
				t.finishJobs()
			}
			return true, e.Cause
		case on := <-k.drainRequests:
			t.drain(on)
		}
	}
}

// lostWithin is the maximum time between the engine and the node noticing that the leadership is lost.
const lostWithin = time.Second

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// leaderTerm is a new term, whose server serves the connections that the gateway accepts.
func (k *clusterNode) leaderTerm() *term {
	var listeners []eventloop.Listener
	for _, s := range k.server.Sockets() {
		listeners = append(listeners, s.Listener)
	}
	return k.newTerm(eventloop.Attach(listeners))
}

// handOver ends a term cleanly: it commits all acknowledged changes and sends their replies.
func (k *clusterNode) handOver(t *term) {
	k.api.Unready()
	t.stopLeasing()
	ctx, cancel := context.WithTimeout(context.Background(), handOverFor)
	defer cancel()
	if err := t.close(ctx, handOverFor); err != nil {
		k.log.Error().Err(err).Msg("engine did not stop in good order")
	}
}

// handOverFor is the time in which a stopping leader sends replies before another node becomes the leader.
const handOverFor = 250 * time.Millisecond

// closeNode closes the sockets. If this node leads, it first makes another node the leader.
func (k *clusterNode) closeNode() error {
	k.forbidReloads()
	k.api.Stopping()
	var err error
	if n := k.node.Load(); n != nil {
		err = n.Close()
	} else {
		_ = k.socket.Close() // replica.Open may have done so
	}
	k.server.StopAccepting()
	k.gate.Close()
	ctx, cancel := context.WithTimeout(context.Background(), notifyFor)
	defer cancel()
	_ = k.http.Shutdown(ctx) // a scrape that is interrupted will be repeated
	return err
}

// forHTTP is the node for the HTTP port; nil: no node.
func (k *clusterNode) forHTTP() service.Cluster {
	if k == nil {
		return nil
	}
	return k
}

// Overview implements service.Cluster.
func (k *clusterNode) Overview(ctx context.Context) service.ClusterOverview {
	o := k.startingOverview()
	if n := k.node.Load(); n != nil {
		o = n.Overview(ctx)
	}
	shown := service.ClusterOverview{
		Leader: o.Leader, Format: o.Format, Nodes: make([]service.ClusterNode, len(o.Nodes)),
	}
	for i, n := range o.Nodes {
		shown.Nodes[i] = service.ClusterNode(n)
	}
	return shown
}

// Ready implements service.Cluster.
func (k *clusterNode) Ready(ctx context.Context) bool {
	n := k.node.Load()
	return n != nil && n.Ready(ctx)
}

// Add implements service.Cluster.
func (k *clusterNode) Add(id, address string) error {
	m, err := config.ParseMember(id + "=" + address)
	if err != nil {
		return &service.Error{Code: service.CodeInvalid, Detail: err.Error()}
	}
	return k.asMember(func(n *replica.Node) error { return n.Add(replica.Member{ID: m.ID, Address: m.Address}) })
}

// Remove implements service.Cluster.
func (k *clusterNode) Remove(ctx context.Context, id string, handsOver func() error) error {
	return k.asMember(func(n *replica.Node) error { return n.Remove(ctx, id, handsOver) })
}

// Successor implements service.Cluster.
func (k *clusterNode) Successor(ctx context.Context, id string) (to string, err error) {
	err = k.asMember(func(n *replica.Node) error {
		to, err = n.Successor(ctx, id)
		return err
	})
	return to, err
}

// Transfer implements service.Cluster.
func (k *clusterNode) Transfer(ctx context.Context, to string) error {
	return k.asMember(func(n *replica.Node) error { return n.Transfer(ctx, to) })
}

// asMember calls a function that needs the node to be a member.
func (k *clusterNode) asMember(do func(n *replica.Node) error) error {
	n := k.node.Load()
	if n == nil {
		return errors.New("this node is not a member of a cluster yet")
	}
	err := do(n)
	if errors.Is(err, replica.ErrNotMember) {
		return &service.Error{Code: service.CodeNodeNotFound, Detail: err.Error()}
	}
	return err
}

// startingOverview is the overview of a node that is not a member yet.
func (k *clusterNode) startingOverview() replica.Overview {
	o := replica.Overview{Nodes: []replica.NodeInfo{}}
	members := slices.Clone(k.config.Cluster.Members)
	slices.SortFunc(members, func(a, b config.Member) int { return cmp.Compare(a.ID, b.ID) })
	for _, m := range members {
		i := replica.NodeInfo{ID: m.ID, Role: "unreachable", Address: m.Address}
		if m.ID == k.config.Cluster.Node {
			i.Role, i.Version = "starting", k.Version
		}
		o.Nodes = append(o.Nodes, i)
	}
	return o
}

// Numbers implements service.Cluster.
func (k *clusterNode) Numbers() service.ClusterNumbers {
	var c service.ClusterNumbers
	c.Relayed, c.Relaying = k.gate.Counts()
	c.Requests = k.gate.Requests()
	if f := k.front.Load(); f != nil {
		c.LinkBuffered, c.Connections = f.broker.Buffered(), k.connections()
	}
	if k.isLinked() {
		c.Links = 1
	}
	if l := k.links.Load(); l != nil {
		c.Links, c.LinkClients, c.LinkBuffered = l.Counts()
	}
	n := k.node.Load()
	if n == nil {
		return c
	}
	if s, ok := n.Status(); ok {
		c.Role, c.Term, c.Applied, c.Lag = s.Role, s.Term, s.Applied, s.Lag
		c.LogBytes, c.Elections, c.HasLeader, c.Serving = s.LogBytes, s.Elections, s.Leader != "", s.Reachable
		c.DiskLow, c.Format = s.DiskLow, s.Format
		c.CopiesSent, c.CopiesRepeated = s.CopiesSent, s.CopiesRepeated
		c.WriteTime, c.DiskSlow = s.WriteTime, s.DiskSlow
		c.Warm, c.IndexJobs, c.IndexLag, c.ClockSkew = s.Warm, s.IndexJobs, s.IndexLag, s.ClockSkew
	}
	return c
}
