package replica

import (
	"testing"
	"time"
)

// A leader that stops hands over first. A follower that does not know its successor yet must not depose it.
func TestLeaderOfAnEarlierTermIsNotReportedAsGone(t *testing.T) {
	t.Parallel()
	c := startedCluster(t)
	n, _, e := c.leader()
	before := c.follower(n) // it does not lead
	gone := func(term uint64) bool {
		a, err := n.answer(&request{Op: opGone, Leader: before, Term: term}, &greeting{Cluster: n.clusterID()})
		if err != nil {
			t.Fatal(err)
		}
		return a.Findings.Gone
	}
	for end := time.After(2 * time.Minute); ; { // a slow machine takes longer than an answer may, or elects again
		term := n.raft.CurrentTerm()
		if gone(term - 1) {
			t.Fatal("gone in an earlier term")
		}
		if gone(term) && gone(0) { // an older program tells no term
			break
		}
		select {
		case <-end:
			t.Fatal("not gone in the term of the answer, or without a term")
		default:
		}
	}
	shutdown(t, e)
}

// die ends a node like a crash: without a transfer, its connections end and its address is no longer in use.
func (c *cluster) die(id string) {
	c.t.Helper()
	n := c.nodes[id]
	_ = n.o.Listener.Close()
	n.stream.closeCalls()
	if err := n.raft.Shutdown().Error(); err != nil {
		c.t.Fatal(err)
	}
	c.stop(id)
}

// When the leader's process dies, another node leads long before the election timeout. When only a connection ends, the
// leader stays.
func TestDeadLeaderIsSucceededAtOnce(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "n1", "n2", "n3")
	const timeout = time.Minute
	c.change = func(o *Options) { o.ElectionTimeout = timeout }
	c.start("n1", "n2", "n3")
	n, l, e := c.leader()
	c.waits = true
	submit(t, e, 0, 10, 10)
	c.caughtUp()
	for _, other := range c.nodes {
		if other != n {
			other.stream.closeAccepted()
		}
	}
	submit(t, e, 10, 10, 10)
	c.caughtUp()
	select {
	case <-l.Lost():
		t.Fatal("the lead was lost with a connection")
	default:
	}
	e.Abandon()
	shutdown(t, e)
	died := n.now()
	c.die(n.o.ID)
	next, _, e := c.leader()
	if took := next.now().Sub(died); took > timeout*3/5 { // the earliest time at which a follower notices on its own
		t.Errorf("the next leader took %v", took)
	}
	if got := jobs(t, e); got != 20 {
		t.Errorf("%d jobs", got)
	}
	shutdown(t, e)
}
