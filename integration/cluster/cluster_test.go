package cluster_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"broker/integration/harness"
	"broker/integration/server"
)

func TestMain(m *testing.M) { os.Exit(harness.Main(m)) }

// cluster is three nodes.
type cluster struct {
	t       *testing.T
	nodes   []*server.BrokerServer
	list    string
	network *network // nil: the nodes call each other directly

	committed bool         // leases are committed before workers get their jobs
	down      atomic.Int32 // 1 + the index of the node that is being upgraded; 0: none
}

// view is the answer to GET /api/v1/cluster.
type view struct {
	Leader string `json:"leader"`
	Nodes  []struct {
		ID          string  `json:"id"`
		Role        string  `json:"role"`
		Address     string  `json:"address"`
		Applied     uint64  `json:"applied"`
		Lag         uint64  `json:"lag"`
		LastContact float64 `json:"last_contact_s"`
		Version     string  `json:"version"`
	} `json:"nodes"`
}

// leasesFirst commits each lease before its worker gets the job.
const leasesFirst = `lease_commit = "before"`

// electionTimeout is that of all nodes, unless their settings contain one. On a busy machine, a leader may not run for
// longer than the default, which would change the leader at any time. Nightly runs have the machine for themselves and
// measure the default.
const electionTimeout = "3s"

// defaultElection are settings with the default timeout, for tests of the time without service.
const defaultElection = "[cluster]\nelection_timeout = \"500ms\"\n"

// calm are settings for tests that must know who leads: a node that does not run for some seconds changes no leader. A
// leader whose process ends is replaced at once even so. Such a cluster takes longer to elect its first leader.
const calm = "[cluster]\nelection_timeout = \"10s\"\n"

// loggedIn is a setting by which the nodes know the clients of the HTTP API. The connections of those that they do not
// know are closed after ten seconds without a request.
const loggedIn = "[http]\npassword = \"secret\"\n"

// size is the number of nodes.
const size = 3

// prepare makes a cluster that is not started, with a network between its nodes if w is not nil.
func prepare(t *testing.T, w *network, config string) *cluster {
	t.Helper()
	harness.BrokerOnly(t)
	c := &cluster{t: t, network: w, committed: strings.Contains(config, leasesFirst)}
	var members []string
	var env [size][]string
	for i := range size {
		address, err := server.FreeAddr()
		check(t, err)
		id := fmt.Sprint("n", i+1)
		if w != nil {
			env[i] = []string{"BROKER_CLUSTER_LISTEN=" + address}
			address = w.proxy(t, id, address)
		}
		members = append(members, id+"="+address)
	}
	c.list = strings.Join(members, ",")
	dir := t.TempDir()
	for i := range size {
		c.nodes = append(c.nodes, c.node(filepath.Join(dir, fmt.Sprint("n", i+1)), i, config, env[i]))
	}
	return c
}

// node makes a node that is not started.
func (c *cluster) node(dir string, i int, config string, env []string) *server.BrokerServer {
	c.t.Helper()
	o := server.BrokerOptions{Config: config, Env: env}
	if strings.Contains(config, loggedIn) {
		o.HTTPPassword = "secret"
	}
	return c.nodeOf(dir, i, o)
}

// nodeOf makes a node that is not started, with options of its own.
func (c *cluster) nodeOf(dir string, i int, o server.BrokerOptions) *server.BrokerServer {
	c.t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		c.t.Fatal(err)
	}
	if o.Binary == "" {
		o.Binary = harness.Binary(c.t)
	}
	if !harness.Nightly && !strings.Contains(o.Config, "election_timeout") {
		o.Env = append(o.Env, "BROKER_CLUSTER_ELECTION_TIMEOUT="+electionTimeout)
	}
	o.Args = append(o.Args, "--node", fmt.Sprint("n", i+1), "--cluster", c.list)
	b, err := server.NewBroker(dir, o)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() {
		if b.Process == nil {
			return
		}
		_ = b.Signal(syscall.SIGCONT) // it may be stopped
		b.Process.Kill()
		if c.t.Failed() {
			c.t.Logf("log of n%d:\n%s", i+1, b.Output())
		}
	})
	return b
}

// start makes a cluster and waits until every node serves.
func start(t *testing.T) *cluster {
	t.Helper()
	return prepare(t, nil, "").start()
}

// start starts all nodes and waits until each of them serves.
func (c *cluster) start() *cluster {
	t := c.t
	t.Helper()
	for _, n := range c.nodes {
		check(t, n.Spawn())
	}
	for _, n := range c.nodes {
		check(t, n.WaitReady(harness.Patience))
	}
	return c
}

// view asks a node.
func (c *cluster) view(i int) (v view, err error) {
	status, body, err := c.nodes[i].Get("/api/v1/cluster")
	if err == nil && status != 200 {
		err = fmt.Errorf("%d %s", status, body)
	}
	if err == nil {
		err = json.Unmarshal([]byte(body), &v)
	}
	return v, err
}

// leader waits until one node leads and the others follow it; it is the index of that node.
func (c *cluster) leader() int {
	c.t.Helper()
	found := -1
	harness.Eventually(c.t, func() string {
		for i, n := range c.nodes {
			if n.Exited() {
				continue
			}
			v, err := c.view(i)
			if err != nil {
				return err.Error()
			}
			for k := range c.nodes {
				if v.Leader == fmt.Sprint("n", k+1) && !c.nodes[k].Exited() {
					found = k
					return ""
				}
			}
		}
		return "there is no leader"
	})
	return found
}

// follower is the index of a node that does not lead.
func (c *cluster) follower() int { return (c.leader() + 1) % len(c.nodes) }

// terminate ends a node in good order.
func terminate(t *testing.T, n *server.BrokerServer) int {
	t.Helper()
	check(t, n.Signal(syscall.SIGTERM))
	code, err := n.Wait(harness.Patience)
	check(t, err)
	return code
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// ready waits until a node serves clients.
func (c *cluster) ready(i int) {
	c.t.Helper()
	check(c.t, c.nodes[i].WaitReady(harness.Patience))
}

// restart starts a node again and waits until it serves and has caught up.
func (c *cluster) restart(i int) {
	c.t.Helper()
	check(c.t, c.nodes[i].Start())
	c.caughtUp()
}

// caughtUp waits until no node lags behind.
func (c *cluster) caughtUp() {
	c.t.Helper()
	harness.Eventually(c.t, func() string {
		v, err := c.view(c.leader())
		if err != nil {
			return err.Error()
		}
		for _, n := range v.Nodes {
			if n.Lag > 200 || n.Role != "leader" && n.Role != "follower" {
				return fmt.Sprintf("node %+v", n)
			}
		}
		return ""
	})
}
