package replica

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"broker/core"
	"broker/core/engine"
)

// next transfers leadership to a node and opens its engine with the index of its standby.
func (c *cluster) next(from *Node, e *engine.Engine, to string) (*Node, *engine.Engine) {
	c.t.Helper()
	eventually(c.t, func() string { // the target may not vote yet
		ctx, cancel := context.WithTimeout(c.t.Context(), 10*time.Second)
		defer cancel()
		if err := from.Transfer(ctx, to); err != nil && !errors.Is(err, errNotLeader) {
			return err.Error()
		}
		return ""
	})
	e.Abandon()
	shutdown(c.t, e)
	n, l, e := c.leader()
	if l.standby == nil {
		c.t.Errorf("%s has kept no index while it followed", n.o.ID)
	}
	return n, e
}

func TestLeadersChangeAndFollowersStayReady(t *testing.T) {
	t.Parallel()
	c := startedCluster(t)
	n, l, e := c.leader()
	if l.standby == nil {
		t.Error("the first leader has kept no index")
	}
	first, want := n.o.ID, 0
	for range 4 { // there and back
		submit(t, e, want, 50, 10)
		want += 50
		to := first
		if n.o.ID == first {
			to = c.follower(n)
		}
		n, e = c.next(n, e, to)
		if have := jobs(t, e); have != want {
			t.Fatalf("%d jobs, want %d", have, want)
		}
	}
	shutdown(t, e)
}

// Every node reports whether it could serve at once, and other nodes show it.
func TestNodesSayWhetherTheirIndexIsWarm(t *testing.T) {
	t.Parallel()
	c := startedCluster(t)
	n, l, e := c.leader()
	submit(t, e, 0, 20, 10)
	other := c.nodes[c.follower(n)]
	eventually(t, func() string {
		s, ok := other.Status()
		if !ok || !s.Warm || s.IndexJobs != 20 || s.IndexLag != 0 {
			return fmt.Sprintf("%+v", s)
		}
		for _, i := range other.Overview(t.Context()).Nodes {
			if !i.Warm || i.IndexLag != 0 {
				return fmt.Sprintf("%+v", i)
			}
		}
		return ""
	})
	l.Serving(false)
	if s, _ := n.Status(); s.Warm {
		t.Error("a leader is warm before it has an engine")
	}
	l.Serving(true)
	shutdown(t, e)
}

// Jobs that were acknowledged while the leader changed are kept.
func TestLeadershipChangesKeepAcknowledgedJobs(t *testing.T) {
	t.Parallel()
	c := startedCluster(t)
	n, _, e := c.leader()
	acked := 0
	for round := range 3 {
		stop, half, done := make(chan struct{}), make(chan struct{}), make(chan int)
		go func() { done <- submitUntil(e, fmt.Sprint("round-", round, "-"), half, stop) }()
		<-half
		for n.raft.State() == raft.Leader {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			if err := n.Transfer(ctx, c.follower(n)); err != nil {
				t.Log(err) // for example, the other node does not vote yet
			}
			cancel()
		}
		close(stop)
		acked += <-done
		e.Abandon()
		shutdown(t, e)
		n, _, e = c.leader()
		if have := jobs(t, e); have < acked {
			t.Fatalf("%d jobs, %d were acknowledged", have, acked)
		}
	}
	if acked == 0 {
		t.Error("no job was acknowledged")
	}
	shutdown(t, e)
}

// submitUntil submits jobs, some of them in parts, and returns how many were acknowledged. half is closed after some of
// them, or when the engine stops.
func submitUntil(e *engine.Engine, prefix string, half, stop chan struct{}) (acked int) {
	client := e.Open(core.ClientOptions{Protocol: core.Internal, Wake: func() {}})
	var waiting []core.Commit
	for i := 0; ; i++ {
		for len(waiting) > 0 && waiting[0] <= e.Committed() {
			acked, waiting = acked+1, waiting[1:]
		}
		if half != nil && (acked > 30 || e.Stopped()) {
			close(half)
			half = nil
		}
		select {
		case <-stop:
			return acked
		case <-time.After(time.Millisecond):
		}
		if len(waiting) > 30 {
			continue
		}
		size := 100
		if i%20 == 19 {
			size = partBytes + 100
		}
		job := &core.Job{ID: fmt.Sprint(prefix, i), Queue: "q", Type: "q", Body: bytes.Repeat([]byte("y"), size)}
		if r := e.Do(client, []core.Op{&core.Submit{Job: job}}, nil); len(r) == 1 && r[0].Err == nil {
			waiting = append(waiting, r[0].Commit)
		}
	}
}

// After a copy of the leader's store is installed, the follower's index is that of the copy.
func TestCopyReplacesTheIndex(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "n1", "n2", "n3")
	c.change = func(o *Options) { o.MaxLogBytes = 1 << 20 }
	c.start("n1", "n2", "n3")
	first, _, e := c.leader()
	submit(t, e, 0, 10, 10_000)
	c.caughtUp()
	victim := c.follower(first)
	c.catchUpByCopy(victim, first, e, 10)
	n, e := c.next(first, e, victim)
	if have := jobs(t, e); have != 400 || n.o.ID != victim {
		t.Errorf("%d jobs with %s", have, n.o.ID)
	}
	shutdown(t, e)
}
