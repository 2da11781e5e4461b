package cluster_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"broker/integration/harness"
	"broker/integration/server"
)

// partition is what is lost between nodes: packets from one to another. Clients reach all nodes.
type partition struct {
	name    string
	lost    func(leader, second, third int) [][2]int
	deposes bool // the leader cannot continue
}

// both are both directions between two nodes.
func both(a, b int) [][2]int { return [][2]int{{a, b}, {b, a}} }

var partitions = []partition{
	{"the leader is cut off", func(l, a, b int) [][2]int { return append(both(l, a), both(l, b)...) }, true},
	{"nothing from the leader arrives", func(l, a, b int) [][2]int { return [][2]int{{l, a}, {l, b}} }, true},
	{"nothing arrives at the leader", func(l, a, b int) [][2]int { return [][2]int{{a, l}, {b, l}} }, true},
	{"the leader and a follower are cut off from each other", func(l, a, _ int) [][2]int { return both(l, a) }, false},
	{"nothing from the leader arrives at one follower", func(l, a, _ int) [][2]int { return [][2]int{{l, a}} }, false},
	{"the followers are cut off from each other", func(_, a, b int) [][2]int { return both(a, b) }, false},
}

// Packets between nodes are lost, in one direction or both, without any connection that ends. Each node is in a network
// namespace of its own. Clients at all nodes see one broker: what was acknowledged is kept, and no finish is undone.
func TestClusterSurvivesPartitionsOfTheNetwork(t *testing.T) {
	t.Parallel()
	harness.BrokerOnly(t)
	if !harness.InNamespaces(t) {
		return
	}
	makeNamespaces(t)
	c := prepareInNamespaces(t).start()
	l := c.begin()
	l.goesOn("three nodes")
	for _, p := range partitions {
		leader := c.leader()
		lost := p.lost(leader, (leader+1)%size, (leader+2)%size)
		for _, pair := range lost {
			lose(t, pair[0], pair[1])
		}
		if p.deposes {
			c.awaitLeaderOtherThan(leader)
		} else {
			time.Sleep(2 * time.Second) // longer than followers wait for a leader
		}
		l.goesOn(p.name)
		for _, pair := range lost {
			heal(t, pair[0], pair[1])
		}
		c.caughtUp()
		l.goesOn("healed: " + p.name)
	}
	l.finish(t)
}

// ip runs the program ip.
func ip(t *testing.T, format string, args ...any) {
	t.Helper()
	line := fmt.Sprintf(format, args...)
	if out, err := exec.CommandContext(t.Context(), "ip", strings.Fields(line)...).CombinedOutput(); err != nil {
		t.Fatalf("ip %s: %v\n%s", line, err, out)
	}
}

// nodeIP is the address of a node; clients are at 10.77.0.254.
func nodeIP(i int) string { return fmt.Sprint("10.77.0.", i+1) }

// makeNamespaces makes a namespace for each node, with a link to a bridge. All of it ends with this process.
func makeNamespaces(t *testing.T) {
	t.Helper()
	check(t, syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""))
	check(t, os.MkdirAll("/run/netns", 0o755))
	check(t, syscall.Mount("tmpfs", "/run/netns", "tmpfs", 0, ""))
	ip(t, "link set lo up")
	ip(t, "link add br0 type bridge")
	ip(t, "addr add 10.77.0.254/24 dev br0")
	ip(t, "link set br0 up")
	for i := range size {
		ip(t, "netns add n%d", i+1)
		ip(t, "link add v%d type veth peer name eth0 netns n%d", i+1, i+1)
		ip(t, "link set v%d master br0 up", i+1)
		ip(t, "-n n%d addr add %s/24 dev eth0", i+1, nodeIP(i))
		ip(t, "-n n%d link set eth0 up", i+1)
		ip(t, "-n n%d link set lo up", i+1)
	}
}

// lose makes packets from one node to another get lost: they are sent to a hardware address that nobody has.
func lose(t *testing.T, from, to int) {
	t.Helper()
	ip(t, "-n n%d neigh replace %s lladdr 02:00:00:00:00:99 dev eth0 nud permanent", from+1, nodeIP(to))
}

func heal(t *testing.T, from, to int) {
	t.Helper()
	ip(t, "-n n%d neigh del %s dev eth0", from+1, nodeIP(to))
}

// prepareInNamespaces makes a cluster whose nodes are in the namespaces.
func prepareInNamespaces(t *testing.T) *cluster {
	t.Helper()
	a, dir := newAuthority(t), t.TempDir()
	c := &cluster{t: t}
	var members []string
	for i := range size {
		members = append(members, fmt.Sprintf("n%d=%s:7431", i+1, nodeIP(i)))
	}
	c.list = strings.Join(members, ",")
	for i := range size {
		program := filepath.Join(dir, fmt.Sprint("in-n", i+1))
		script := fmt.Sprintf("#!/bin/sh\nexec ip netns exec n%d %s \"$@\"\n", i+1, harness.Binary(t))
		check(t, os.WriteFile(program, []byte(script), 0o700))
		n := c.nodeOf(filepath.Join(dir, fmt.Sprint("n", i+1)), i, server.BrokerOptions{
			Binary: program, Config: a.node() + "[http]\npassword = \"secret\"\n", HTTPPassword: "secret",
		})
		n.Workq, n.Gearman = nodeIP(i)+":9922", nodeIP(i)+":4730"
		n.Faktory, n.HTTP = nodeIP(i)+":7419", nodeIP(i)+":7420"
		c.nodes = append(c.nodes, n)
	}
	return c
}
