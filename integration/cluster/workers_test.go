package cluster_test

import (
	"fmt"
	"strings"
	"testing"

	"broker/integration/harness"
)

// The list of Faktory's workers is the same at every node, and a worker can be quieted and terminated through each of
// them, wherever it is connected.
func TestFaktoryWorkersAreListedAndQuietedThroughEveryNode(t *testing.T) {
	t.Parallel()
	c := start(t)
	workers := map[string]*faktory{}
	for i, n := range c.nodes {
		s, err := dialFaktoryAs(n, fmt.Sprint("at-n", i+1))
		check(t, err)
		defer func() { _ = s.Close() }() // the test is over
		workers[fmt.Sprint("worker:at-n", i+1)] = s
	}
	for i := range c.nodes {
		c.listsWorkers(i, workers)
	}
	for i := range c.nodes { // requested through one node, connected to the next
		wid := fmt.Sprint("at-n", (i+1)%size+1)
		for _, state := range []string{"quiet", "terminate"} {
			c.do(i, "POST", "/workers/"+wid+"/"+state, "", nil)
			reply, err := workers["worker:"+wid].call(`BEAT {"wid":"%s"}`, wid)
			check(t, err)
			if want := fmt.Sprintf(`{"state":%q}`, state); reply != want {
				t.Errorf("%s through n%d: BEAT says %q", state, i+1, reply)
			}
		}
	}
	// The workers of the other nodes go on at the next leader, in the same state.
	old := c.leader()
	c.nodes[old].Process.Kill()
	c.awaitLeaderOtherThan(old)
	delete(workers, fmt.Sprintf("worker:at-n%d", old+1))
	for _, w := range workers {
		if reply, err := w.call(`BEAT {"wid":"%s"}`, w.wid); err != nil || reply != `{"state":"terminate"}` {
			t.Errorf("%s: BEAT at the next leader says %q, %v", w.wid, reply, err)
		}
	}
	c.listsWorkers(c.leader(), workers)
	i := c.leader()
	c.ready(i)
	s, err := dialFaktoryAs(c.nodes[i], "after")
	check(t, err)
	defer func() { _ = s.Close() }() // the test is over
	c.restart(old)
	harness.Eventually(t, func() string {
		if err := c.api(old, "POST", "/workers/after/quiet", "", nil); err != nil {
			return err.Error()
		}
		return ""
	})
	if reply, err := s.call(`BEAT {"wid":"after"}`); err != nil || reply != `{"state":"quiet"}` {
		t.Errorf("BEAT at the new leader: %q %v", reply, err)
	}
	c.listsWorkers(old, workers)
}

// listsWorkers waits until a node lists workers, by their ids, and no others.
func (c *cluster) listsWorkers(i int, want map[string]*faktory) {
	c.t.Helper()
	harness.Eventually(c.t, func() string {
		var list struct {
			Workers []struct{ ID, Address, State string }
		}
		c.do(i, "GET", "/workers?protocol=faktory", "", &list)
		seen := map[string]bool{}
		for _, w := range list.Workers {
			if strings.HasPrefix(w.ID, "worker:at-n") {
				seen[w.ID] = true
			}
		}
		for id := range want {
			if !seen[id] || len(seen) != len(want) {
				return fmt.Sprintf("n%d lists %v, not %s", i+1, list.Workers, id)
			}
		}
		return ""
	})
}

// Each node has the metrics of the cluster, and counts as ready while clients are served through it.
func TestEveryNodeHasMetricsOfTheCluster(t *testing.T) {
	t.Parallel()
	c := prepare(t, nil, calm).start()
	for i := range c.nodes {
		harness.Eventually(t, func() string {
			for _, name := range []string{"broker_ready", "broker_cluster_has_leader"} {
				if v := c.metric(i, name); v != 1 {
					return fmt.Sprintf("%s of n%d is %v", name, i+1, v)
				}
			}
			return ""
		})
		for _, name := range []string{
			`broker_cluster_role{role="leader"}`, `broker_cluster_role{role="follower"}`, "broker_cluster_term",
			"broker_cluster_applied_index",
			"broker_cluster_lag_entries", "broker_cluster_log_bytes", "broker_cluster_elections_won_total",
			"broker_cluster_proxied_connections",
			"broker_cluster_proxied_connections_total", "broker_disk_low",
			"broker_cluster_links", "broker_cluster_link_clients", "broker_cluster_link_buffered_bytes",
		} {
			if v := c.metric(i, name); v < 0 {
				t.Errorf("n%d has no metric %s", i+1, name)
			}
		}
	}
	if v := c.metric(c.leader(), "broker_commit_seconds_count"); v < 1 {
		t.Errorf("the leader counts %v commits", v)
	}
	leader, other := c.leader(), c.follower()
	s, err := dialFaktory(c.nodes[other])
	check(t, err)
	check(t, s.submit(jobID(1)))
	if v := c.metric(leader, "broker_cluster_link_clients"); v < 1 {
		t.Errorf("n%d leads and serves %v clients of n%d", leader+1, v, other+1)
	}
	_ = s.Close() // the test is over
	for _, i := range []int{(leader + 1) % size, (leader + 2) % size} {
		c.nodes[i].Process.Kill()
	}
	harness.Eventually(t, func() string {
		if ready, led := c.metric(leader,
			"broker_ready"), c.metric(leader, "broker_cluster_has_leader"); ready != 0 || led != 0 {
			return fmt.Sprint("alone: ", ready, led)
		}
		return ""
	})
}
