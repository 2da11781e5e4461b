package cluster_test

import (
	"fmt"
	"os"
	"syscall"
	"testing"
	"time"
)

// fault is something that happens to a cluster under load.
type fault struct {
	name string
	do   func(c *cluster)
}

var faults = []fault{
	{"the leader is killed", func(c *cluster) {
		i := c.leader()
		c.nodes[i].Process.Kill()
		time.Sleep(time.Second)
		c.restart(i)
	}},
	{"a follower is killed", func(c *cluster) {
		i := c.follower()
		c.nodes[i].Process.Kill()
		time.Sleep(200 * time.Millisecond)
		c.restart(i)
	}},
	{"the leader stands still", func(c *cluster) {
		i := c.leader()
		check(c.t, c.nodes[i].Signal(syscall.SIGSTOP))
		c.awaitLeaderOtherThan(i)
		time.Sleep(300 * time.Millisecond)
		check(c.t, c.nodes[i].Signal(syscall.SIGCONT))
		c.caughtUp()
	}},
	{"a follower stands still", func(c *cluster) {
		i := c.follower()
		check(c.t, c.nodes[i].Signal(syscall.SIGSTOP))
		time.Sleep(time.Second)
		check(c.t, c.nodes[i].Signal(syscall.SIGCONT))
		c.caughtUp()
	}},
	{"the leader is cut off", func(c *cluster) {
		i := c.leader()
		c.network.isolate(fmt.Sprint("n", i+1))
		c.awaitLeaderOtherThan(i)
		time.Sleep(300 * time.Millisecond)
		c.network.heal()
		c.caughtUp()
	}},
	{"the network is slow", func(c *cluster) {
		c.network.delay(20 * time.Millisecond)
		time.Sleep(time.Second)
		c.network.heal()
		c.caughtUp()
	}},
	{"a node comes back with an empty folder", func(c *cluster) {
		i := c.follower()
		c.nodes[i].Process.Kill()
		check(c.t, os.RemoveAll(c.nodes[i].Data))
		c.restart(i)
	}},
	{"all nodes are killed", func(c *cluster) {
		for _, n := range c.nodes {
			n.Process.Kill()
		}
		for _, n := range c.nodes {
			check(c.t, n.Spawn())
		}
		for i := range c.nodes {
			c.ready(i)
		}
		c.caughtUp()
	}},
	{"the leader is restarted", func(c *cluster) {
		i := c.leader()
		if code := terminate(c.t, c.nodes[i]); code != 0 {
			c.t.Errorf("exit code %d", code)
		}
		c.restart(i)
	}},
}

func TestNothingIsLostThroughFaults(t *testing.T) {
	t.Parallel()
	t.Run("leases by the clock", func(t *testing.T) {
		t.Parallel()
		checkFaults(t, "")
	})
	t.Run("leases committed first", func(t *testing.T) {
		t.Parallel()
		checkFaults(t, "[cluster]\n"+leasesFirst+"\n")
	})
}

// checkFaults lets every fault happen to a cluster under load.
func checkFaults(t *testing.T, config string) {
	c := prepare(t, newNetwork(), config).start()
	l := c.begin()
	time.Sleep(300 * time.Millisecond)
	for _, f := range faults {
		before := l.history.count(submitted)
		l.resetGap()
		f.do(c)
		for range 100 {
			if l.history.count(submitted) > before+20 {
				break
			}
			time.Sleep(50 * time.Millisecond)
		}
		t.Logf("%s: longest without an acknowledgement %v", f.name, l.resetGap().Round(10*time.Millisecond))
	}
	l.finish(t)
	if l.joined < 1 {
		t.Error("no submission has joined a job: the test proves nothing about keys")
	}
	if n := l.history.count(finished); n < 100 {
		t.Errorf("only %d ends: the test proves nothing", n)
	}
}
