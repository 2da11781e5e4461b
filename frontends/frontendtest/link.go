package frontendtest

import (
	"context"
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"broker/core"
	"broker/core/coretest"
	"broker/core/remote"
	"broker/frontends"
)

// followers counts the nodes that follow.
var followers atomic.Int64

// linked is the broker of a leader, as a node that follows has it, with the leader's front-end behind it.
type linked struct {
	*remote.Broker
	up     *remote.Uplink
	leader Backend
	server *remote.Server
	front  frontends.Frontend // of the leader
	shared frontends.Shared   // of the node that follows; nil: it shares nothing
}

// Tick implements Backend.
func (l *linked) Tick() core.Instant { return l.leader.Tick() }

// arrive returns when all that the leader had to say has come: the answer to a question is written before or with the
// wakes that are due, that to the next one behind them.
func (l *linked) arrive() {
	for range 2 {
		_, _ = l.Ask(nil) // a link that has ended says nothing
	}
}

// Asked implements remote.Owner. An empty question is one of arrive.
func (l *linked) Asked(n *remote.Node, question []byte, answer func([]byte)) {
	if len(question) == 0 {
		answer(nil)
		return
	}
	l.front.(frontends.Shared).Answer(n, question, answer)
}

// Told implements remote.Owner.
func (l *linked) Told(*remote.Node, []byte) {}

// Left implements remote.Owner.
func (l *linked) Left(n *remote.Node) {
	if s, shares := l.front.(frontends.Shared); shares {
		s.Left(n)
	}
}

// linkTo puts a link in front of the leader's broker. It ends with the test, or by hangUp.
func linkTo(t testing.TB, leader *Stage) *linked {
	t.Helper()
	l := &linked{leader: leader.Broker, front: leader.Front}
	now, cancel := context.WithCancel(context.Background())
	cancel()
	l.server = remote.NewServer(leader.Broker, remote.ServerOptions{Owner: l, Term: 1})
	l.server.Settle(now, nil, func() {})
	l.Broker = remote.NewBroker(remote.BrokerOptions{
		Node: fmt.Sprint("follower ", followers.Add(1)), Clock: stageClock{leader.Clock},
		Told: func(say []byte) {
			if l.shared != nil {
				l.shared.Heard(say)
			}
		},
		Register: func(ask func([]byte, func([]byte))) {
			if l.shared != nil {
				l.shared.Register(ask)
			}
		},
	})
	l.dial(t)
	t.Cleanup(l.hangUp)
	return l
}

// dial links the node to the leader, also again.
func (l *linked) dial(t testing.TB) {
	t.Helper()
	near, far := net.Pipe()
	go func() { _ = l.server.Serve(far) }() // ends with the link
	up, err := l.Dial(near)
	if err != nil {
		t.Fatalf("link to the leader: %v", err)
	}
	<-up.Ready()
	l.up = up
}

// hangUp ends the link, and the clients of the node. It may be called several times.
func (l *linked) hangUp() {
	now, cancel := context.WithCancel(context.Background())
	cancel()
	l.server.Close(now)
	l.up.Hangup()
	l.Shut()
}

// follow makes the front-end of the node that follows.
func (d Dialect) follow(b core.Broker) frontends.Frontend {
	l := b.(*linked)
	if d.Follow == nil {
		return d.New(l)
	}
	f := d.Follow(l, l)
	l.shared = f.(frontends.Shared)
	return f
}

// open is Open for the front-end of the dialect.
func (d Dialect) open(t *testing.T) *Stage {
	t.Helper()
	s := Open(t, d.New)
	if !d.overLink {
		return s
	}
	reopen := func() Backend {
		s.Restart()
		return linkTo(t, s)
	}
	return NewStage(t, linkTo(t, s), s.Clock, d.follow, reopen)
}

// OpenNodes is Open with nodes that follow. Each has a stage of its own, with a front-end that follow makes.
func OpenNodes(
	t testing.TB, maker Maker, follow func(core.Broker, frontends.Leader) frontends.Frontend, n int,
) (leader *Stage, nodes []*Stage) {
	t.Helper()
	leader = Open(t, maker)
	d := Dialect{New: maker, Follow: follow}
	for range n {
		nodes = append(nodes, NewStage(t, linkTo(t, leader), leader.Clock, d.follow, nil))
	}
	return leader, nodes
}

// Relink ends the link of a node of OpenNodes and makes another one. The leader has forgotten the node in between.
func (s *Stage) Relink() {
	l := s.Broker.(*linked)
	l.up.Hangup()
	l.dial(s.t)
}

// Unlink ends the link of a node of OpenNodes.
func (s *Stage) Unlink() { s.Broker.(*linked).hangUp() }

// openGated is open with a gatedBroker in front of the engine.
func (d Dialect) openGated(t *testing.T) (*Stage, *gatedBroker) {
	t.Helper()
	s, gate := openGated(t, d.New)
	if d.overLink {
		gate.stage = NewStage(t, linkTo(t, s), s.Clock, d.follow, nil)
		s = gate.stage
	}
	return s, gate
}

// stageClock is the clock of a stage as one that measures time too.
type stageClock struct{ *coretest.Clock }

// Read implements clock.Monotonic.
func (c stageClock) Read() (core.Instant, time.Duration) {
	now := c.Now()
	return now, now.Sub(0)
}
