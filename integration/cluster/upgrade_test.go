//go:build nightly

package cluster_test

import (
	"strings"
	"testing"
	"time"

	"broker/integration/harness"
)

// raised is what a leader logs when all members read a newer format.
const raised = "all nodes read a newer format"

// A cluster of the build before the present format of entries is upgraded under load, one node after the other; the
// first one leads then, and an older one follows it. No node gets an entry that its program cannot read, nothing
// acknowledged is lost, and there is no way back afterwards.
func TestClusterIsUpgradedUnderLoad(t *testing.T) {
	older := harness.BinaryBefore(t, "core/internal/record/format.go", "^const NewestFormat = ")
	c := startOf(t, older)
	l := c.begin()
	first := c.follower()
	for step := range size {
		i := (first + step) % size
		if step > 0 {
			c.transfer(first)
			time.Sleep(2 * time.Second) // the leader asks the others once a second
		}
		c.progress(l)
		for k, n := range c.nodes {
			if strings.Contains(n.Output(), raised) {
				t.Errorf("n%d writes the newer format while a node cannot read it", k+1)
			}
		}
		l.resetGap()
		if code := terminate(t, c.nodes[i]); code != 0 {
			t.Errorf("n%d: exit code %d", i+1, code)
		}
		c.progress(l) // without it
		c.nodes[i].Use(harness.Binary(t))
		c.restart(i)
		t.Logf("n%d is upgraded; longest without an acknowledgement %v", i+1, l.resetGap().Round(10*time.Millisecond))
	}
	c.logs(first, raised)
	c.progress(l)
	i := c.follower()
	terminate(t, c.nodes[i])
	c.nodes[i].Use(older)
	check(t, c.nodes[i].Spawn())
	if code, err := c.nodes[i].Wait(harness.Patience); code == 0 || err != nil ||
		!strings.Contains(c.nodes[i].Output(), "newer version of the broker") {
		t.Errorf("the older program on a newer store: exit code %d, %v\n%s", code, err, c.nodes[i].Tail())
	}
	c.nodes[i].Use(harness.Binary(t))
	c.restart(i)
	c.progress(l)
	l.finish(t)
}

// A cluster of a build before the links between nodes, and of one before all protocols but the first three were served
// over them, is upgraded under load, one node after the other. A node passes the bytes of clients that it does not
// serve over its link on, as that build does, whichever of the two leads; in the end all are linked.
func TestClusterOfBytesIsUpgradedUnderLoad(t *testing.T) {
	t.Run("without links", func(t *testing.T) {
		c := startOf(t, harness.BinaryBefore(t, "core/remote/link.go", "^const Format = "))
		c.upgradeOneByOne(c.begin(), func(step, i int) {
			if step == 0 {
				c.logs(i, "bytes of clients are passed on")
			}
		})
	})
	t.Run("with links for three protocols", func(t *testing.T) {
		c := startOf(t, harness.BinaryBefore(t, "cmd/broker/process/shared.go", "^type frontLeader "))
		c.upgradeOneByOne(c.begin(), func(int, int) {})
	})
}

// startOf starts a cluster of an older program.
func startOf(t *testing.T, older string) *cluster {
	t.Helper()
	c := prepare(t, nil, "")
	for _, n := range c.nodes {
		n.Use(older)
	}
	return c.start()
}

// upgradeOneByOne upgrades all nodes under load, and checks what the clients saw. The node that is upgraded first leads
// then. upgraded is called after each step with the node that is upgraded.
func (c *cluster) upgradeOneByOne(l *load, upgraded func(step, i int)) {
	t := c.t
	t.Helper()
	first := c.follower()
	for step := range size {
		i := (first + step) % size
		if step == 1 {
			c.transfer(first) // the older one follows it
		}
		c.progress(l)
		l.resetGap()
		c.down.Store(int32(i + 1))
		if code := terminate(t, c.nodes[i]); code != 0 {
			t.Errorf("n%d: exit code %d", i+1, code)
		}
		c.progress(l) // without it
		c.nodes[i].Use(harness.Binary(t))
		c.restart(i)
		c.down.Store(0)
		t.Logf("n%d is upgraded; longest without an acknowledgement %v", i+1, l.resetGap().Round(10*time.Millisecond))
		upgraded(step, i)
		c.progress(l)
	}
	c.awaitLinks()
	c.progress(l)
	l.finish(t)
}

// progress waits until more jobs are acknowledged and finished.
func (c *cluster) progress(l *load) {
	c.t.Helper()
	submissions, ends := l.history.count(submitted), l.history.count(finished)
	harness.Eventually(c.t, func() string {
		if l.history.count(submitted) < submissions+100 || l.history.count(finished) < ends+50 {
			return "the cluster makes no progress"
		}
		return ""
	})
}
