package cluster_test

import (
	"testing"
	"time"

	"broker/integration/harness"
)

// away is longer than calls between nodes take until they fail.
const away = 6 * time.Second

// atMost fails a nightly run, which has the machine for itself, if clients were without service for longer.
func atMost(t *testing.T, limit, gap time.Duration) {
	t.Helper()
	if harness.Nightly && gap > limit {
		t.Errorf("%v without an acknowledgement, at most %v", gap, limit)
	}
}

// A follower that was away gets entries as soon as it is back: it is needed at once when the other one dies.
func TestReturningFollowerGetsEntriesAtOnce(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]struct {
		leave, comeBack func(c *cluster)
	}{
		"killed": {
			func(c *cluster) { c.nodes[2].Process.Kill() },
			func(c *cluster) { check(c.t, c.nodes[2].Start()) },
		},
		"cut off": {
			func(c *cluster) { c.network.isolate("n3") },
			func(c *cluster) { c.network.heal(); c.ready(2) },
		},
		"silent": {
			func(c *cluster) { c.network.silence("n3") },
			func(c *cluster) { c.network.heal(); c.ready(2) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := prepare(t, newNetwork(), "").start()
			c.transfer(0)
			l := c.begin()
			l.goesOn("three nodes")
			fault.leave(c)
			time.Sleep(away)
			atMost(t, time.Second, l.goesOn("a follower is away"))
			fault.comeBack(c)
			c.nodes[1].Process.Kill()
			atMost(t, 2*time.Second, l.goesOn("it is back, and the other one was killed"))
			c.restart(1)
			l.finish(t)
		})
	}
}

// A leader that is silent, without any connection that ends, is replaced like one that is dead.
func TestLeaderThatIsSilentIsReplaced(t *testing.T) {
	t.Parallel()
	c := prepare(t, newNetwork(), "").start()
	c.transfer(0)
	l := c.begin()
	l.goesOn("three nodes")
	c.network.silence("n1")
	c.awaitLeaderOtherThan(0)
	atMost(t, 4*time.Second, l.goesOn("the leader is silent"))
	time.Sleep(away)
	c.network.heal()
	c.caughtUp()
	atMost(t, time.Second, l.goesOn("it is heard again"))
	l.finish(t)
}
