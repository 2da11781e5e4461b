package cluster_test

import (
	"fmt"
	"strings"
	"testing"

	"broker/integration/harness"
)

// The console's page shows all nodes, whichever of them is asked, and what the loss of another one would mean.
func TestConsoleShowsTheCluster(t *testing.T) {
	t.Parallel()
	c := prepare(t, nil, calm).start()
	c.caughtUp()
	leader := c.leader()
	for i := range c.nodes {
		c.awaitPage(i, fmt.Sprintf("n%d leads", leader+1), "<strong>n1</strong>", "<strong>n2</strong>",
			"<strong>n3</strong>",
			"state-leader", "state-follower", "1 node may fail, and clients are still served.")
	}
	lost := (leader + 1) % size
	c.nodes[lost].Process.Kill()
	c.awaitPage((leader+2)%size, "unreachable", "s ago", "If one more node fails, nothing is accepted any more.")
	c.restart(lost)
	c.awaitPage(lost, "1 node may fail")
	for _, i := range []int{(lost + 1) % size, (lost + 2) % size} {
		c.nodes[i].Process.Kill()
	}
	harness.Eventually(t, func() string {
		if status, page, err := c.nodes[lost].Get("/queues"); err != nil || status != 503 ||
			!strings.Contains(page, "No node of the cluster serves clients now") {
			return fmt.Sprint("the page does not say what is missing: ", status, err, page)
		}
		return ""
	})
}

// awaitPage waits until the page of a node has all words.
func (c *cluster) awaitPage(i int, words ...string) {
	c.t.Helper()
	harness.Eventually(c.t, func() string {
		status, page, err := c.nodes[i].Get("/cluster")
		if err != nil || status != 200 {
			return fmt.Sprint(status, err)
		}
		for _, word := range words {
			if !strings.Contains(page, word) {
				return fmt.Sprintf("the page of n%d does not say %q:\n%s", i+1, word, page)
			}
		}
		return ""
	})
}
