package cluster_test

import (
	"fmt"
	"slices"
	"testing"

	"broker/integration/harness"
)

// The list of Faktory's workers is the same at every node, and a worker can be quieted and terminated through each of them,
// wherever it is connected.
func TestFaktoryWorkersAreSeenAndToldThroughEveryNode(t *testing.T) {
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
		var list struct {
			Workers []struct{ ID, Address, State string }
		}
		check(t, c.api(i, "GET", "/workers?protocol=faktory", "", &list))
		var seen []string
		for _, w := range list.Workers {
			if workers[w.ID] != nil {
				seen = append(seen, w.ID)
			}
		}
		slices.Sort(seen)
		if fmt.Sprint(seen) != "[worker:at-n1 worker:at-n2 worker:at-n3]" {
			t.Errorf("n%d lists %v", i+1, list.Workers)
		}
	}
	for i := range c.nodes { // told through one node, connected to the next
		wid := fmt.Sprint("at-n", (i+1)%size+1)
		for _, state := range []string{"quiet", "terminate"} {
			check(t, c.api(i, "POST", "/workers/"+wid+"/"+state, "", nil))
			reply, err := workers["worker:"+wid].call(`BEAT {"wid":"%s"}`, wid)
			check(t, err)
			if want := fmt.Sprintf(`{"state":%q}`, state); reply != want {
				t.Errorf("%s through n%d: BEAT says %q", state, i+1, reply)
			}
		}
	}
	// A new leader learns of the workers as they connect again.
	old := c.leader()
	c.nodes[old].Process.Kill()
	c.awaitLeaderOtherThan(old)
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
}
