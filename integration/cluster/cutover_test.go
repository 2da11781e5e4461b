package cluster_test

import (
	"fmt"
	"net"
	"strings"
	"testing"

	"broker/integration/harness"
	"broker/integration/server"
)

// New jobs of a queue that is cut over are refused while the broker does not answer, so no queue is cut over to it.
func TestNoQueueIsCutOverToANodeWithoutALeader(t *testing.T) {
	t.Parallel()
	for protocol, stays := range map[string]func(*cluster) int{
		"gearman": (*cluster).leader, "faktory": (*cluster).follower,
	} {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			c := start(t)
			left := stays(c)
			for i, n := range c.nodes {
				if i != left {
					n.Process.Kill()
				}
			}
			harness.Eventually(t, func() string {
				ready, led := c.metric(left, "broker_ready"), c.metric(left, "broker_cluster_has_leader")
				if ready != 0 || led != 0 {
					return fmt.Sprint("the node that is left: ", ready, led)
				}
				return ""
			})
			old, err := net.Listen("tcp", "127.0.0.1:0") // no client uses it
			check(t, err)
			defer func() { _ = old.Close() }() // the test is over
			listen, err := server.FreeAddr()
			check(t, err)
			page, err := server.FreeAddr()
			check(t, err)
			to := map[string]string{"gearman": c.nodes[left].Gearman, "faktory": c.nodes[left].Faktory}[protocol]
			shadow := harness.Spawn(t, harness.Command{Argv: []string{
				harness.Binary(t), "shadow", "--protocol", protocol, "--upstream", old.Addr().String(),
				"--listen", listen, "--http", page, "--to", to,
			}})
			shadow.AwaitLines(1, func(line string) bool { return line == "ready" })
			r := harness.Exec(t, harness.Command{
				Argv: []string{harness.Binary(t), "shadow", "cut-over", "mail", "--at", page, "-o", "json"},
			})
			if r.Code != 1 || !strings.Contains(r.Stderr, `"code":"no_leader"`) {
				t.Errorf("exit code %d: %s%s", r.Code, r.Stdout, r.Stderr)
			}
			said := harness.Run(t, harness.Command{
				Argv: []string{harness.Binary(t), "shadow", "status", "--at", page, "-o", "json"},
			})
			if strings.Contains(said, "mail") {
				t.Errorf("status: %s", said)
			}
		})
	}
}
