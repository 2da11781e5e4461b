package cluster_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"broker/integration/gearmanclient"
	"broker/integration/harness"
	"broker/integration/server"
)

// awaitRole waits until a node has a role in the leader's view.
func (c *cluster) awaitRole(id, want string) {
	c.t.Helper()
	harness.Eventually(c.t, func() string {
		v, err := c.view(c.leader())
		if err != nil {
			return err.Error()
		}
		for _, n := range v.Nodes {
			if n.ID == id && n.Role == want {
				return ""
			}
		}
		return fmt.Sprintf("%s is not a %s: %v", id, want, v)
	})
}

// join adds a node through another one, and starts it.
func (c *cluster) join(through int) {
	c.t.Helper()
	address, err := server.FreeAddr()
	check(c.t, err)
	i := len(c.nodes)
	id := fmt.Sprint("n", i+1)
	c.do(through, "POST", "/cluster/add", fmt.Sprintf(`{"id":%q,"address":%q}`, id, address), nil)
	c.list += "," + id + "=" + address
	b := c.nodeOf(filepath.Join(c.t.TempDir(), id), i, server.BrokerOptions{Args: []string{"--join"}})
	c.nodes = append(c.nodes, b)
	check(c.t, b.Start())
}

// Nodes are added and removed while clients work. A node that was added gets a vote as soon as the number of votes
// stays odd with it; one that was removed stops and says so.
func TestMembersAreReplacedUnderLoad(t *testing.T) {
	t.Parallel()
	c := start(t)
	l := c.begin()
	l.goesOn("three nodes")
	c.transfer(1)
	c.join(2)
	c.awaitRole("n4", "learner")
	l.goesOn("a fourth node learns")
	c.do(2, "POST", "/cluster/remove", `{"id":"n2"}`, nil) // the leader
	c.awaitRole("n4", "follower")
	code, err := c.nodes[1].Wait(harness.Patience)
	check(t, err)
	if code == 0 || !strings.Contains(c.nodes[1].Output(), "this node was removed from the cluster") {
		t.Errorf("exit code %d of a node that was removed:\n%s", code, c.nodes[1].Tail())
	}
	l.goesOn("the second node was removed")
	check(t, c.nodes[1].Spawn())
	code, err = c.nodes[1].Wait(harness.Patience)
	check(t, err)
	if n := strings.Count(c.nodes[1].Output(), "this node was removed from the cluster"); code == 0 || n != 2 {
		t.Errorf("exit code %d of a removed node that was started again, which has said %d times why:\n%s", code, n,
			c.nodes[1].Tail())
	}
	c.nodes[0].Process.Kill() // n4's vote counts now
	l.goesOn("another node was killed")
	c.restart(0)

	c.join(3)
	c.join(3)
	c.awaitRole("n5", "follower")
	c.awaitRole("n6", "follower")
	for _, i := range []int{0, 4} { // five nodes survive the loss of two
		c.nodes[i].Process.Kill()
	}
	l.goesOn("two of five were killed")
	check(t, c.nodes[0].Spawn())
	c.restart(4)
	l.finish(t)
}

func TestInvalidChangesOfMembersAreRefused(t *testing.T) {
	t.Parallel()
	c := prepare(t, nil, calm).start()
	leader := c.leader()
	id := func(i int) string { return fmt.Sprint("n", i+1) }
	for _, r := range []struct {
		path, body, words string
		status            int
	}{
		{"add", `{"id":"n2","address":"127.0.0.1:9"}`, "is a member already", 409},
		{
			"add", `{"id":"n9","address":"` + strings.TrimPrefix(strings.Split(c.list, ",")[0], "n1=") + `"}`,
			"has that address already", 409,
		},
		{"add", `{"id":"n9","address":"nowhere"}`, "is not host:port", 422},
		{"add", `{"id":"n 9","address":"127.0.0.1:9"}`, "letters, digits", 422},
		{"remove", `{"id":"n9"}`, "no such node", 404},
		{"transfer", `{"id":"n9"}`, "no such node", 404},
		{"transfer", `{"id":`, "body", 400},
		{"transfer", `{"node":"n1"}`, "body", 422},
	} {
		for i := range c.nodes { // each passes it on to the leader
			err := c.api(i, "POST", "/cluster/"+r.path, r.body, nil)
			var refused *refusal
			if !errors.As(err, &refused) || refused.status != r.status || !strings.Contains(err.Error(), r.words) {
				t.Errorf("%s %s: %v, want %d with %q", r.path, r.body, err, r.status, r.words)
			}
		}
	}
	c.nodes[(leader+1)%size].Process.Kill()
	err := c.api(leader, "POST", "/cluster/remove", `{"id":"`+id((leader+2)%size)+`"}`, nil)
	if err == nil || !strings.Contains(err.Error(), "no majority") {
		t.Errorf("the only other node that runs was removed: %v", err)
	}
	c.restart((leader + 1) % size)
}

// A node that lost its disk, while the log of the others was cut, gets a copy of the leader's store, and can lead with
// it.
func TestEmptiedNodeGetsACopyOfTheStore(t *testing.T) {
	t.Parallel()
	c := start(t)
	c.transfer(0)
	c.nodes[2].Process.Kill()
	check(t, os.RemoveAll(c.nodes[2].Data))
	const jobs, bytes = 160, 600 << 10
	body := strings.Repeat("0123456789abcdef", bytes/16)
	for i := range jobs { // more than the log keeps
		harness.Eventually(t, func() string { // on a busy machine the lead may change
			s, err := gearmanclient.Dial(c.nodes[1].Gearman)
			if err != nil {
				return err.Error()
			}
			defer func() { _ = s.Close() }() // the job was submitted, or not
			if _, err = s.Submit(gearmanclient.SubmitJobBg, "gearman", "", fmt.Sprint(body, i)); err != nil {
				return err.Error()
			}
			return ""
		})
	}
	harness.Eventually(t, func() string {
		if v := c.metric(0, "broker_cluster_log_bytes"); v > 64*mib {
			return fmt.Sprint("the log was not cut: ", v)
		}
		return ""
	})
	c.restart(2)
	c.logs(2, "copy of the leader's store received")
	c.awaitRole("n3", "follower")
	c.transfer(2)
	seen := make(map[string]bool)
	harness.Eventually(t, func() string { // the jobs of a connection that ends are handed out again
		g, err := dialGearman(c.nodes[0])
		if err != nil {
			return err.Error()
		}
		defer func() { _ = g.Close() }() // the jobs were seen
		for len(seen) < jobs {
			id, err := g.lease()
			if err != nil || id == "" {
				return fmt.Sprintf("%d of %d jobs: %v", len(seen), jobs, err)
			}
			if len(id) < bytes {
				t.Fatalf("a job of %d bytes came back", len(id))
			}
			seen[id[len(body):]] = true
		}
		return ""
	})
}
