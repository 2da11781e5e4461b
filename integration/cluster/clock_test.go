package cluster_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"broker/integration/harness"
	"broker/integration/server"
)

// replaceProgram makes a stopped node run another program on its data and addresses.
func (c *cluster) replaceProgram(i int, program string) {
	c.t.Helper()
	old := c.nodes[i]
	b := c.nodeOf(filepath.Dir(old.Data), i, server.BrokerOptions{Binary: program})
	b.Data, b.Gearman, b.Workq, b.Faktory, b.HTTP = old.Data, old.Gearman, old.Workq, old.Faktory, old.HTTP
	c.nodes[i] = b
}

func TestOneNodeWithAClockAnHourAhead(t *testing.T) {
	t.Parallel()
	checkClocksThatDiffer(t, "1h")
}

// checkClocksThatDiffer shifts the clock of one node. That is reported. While the node leads, and when it has led, no
// job is lost, none that is leased is handed out again, and a delay is as long as it should be.
func checkClocksThatDiffer(t *testing.T, shift string) {
	t.Helper()
	c := start(t) // with one version
	terminate(t, c.nodes[0])
	c.replaceProgram(0, harness.BinaryWith(t, "-X main.clockShift="+shift))
	c.restart(0)
	c.transfer(1)
	l := c.begin()
	l.goesOn("a node with a right clock leads")
	c.transfer(0)
	l.goesOn("the node with the wrong clock leads")
	c.nodes[0].Process.Kill()
	l.goesOn("it was killed")
	c.restart(0)
	c.logs(0, "the clocks of two nodes differ")
	c.logs(1, "the clocks of two nodes differ")
	l.finish(t)
	c.transfer(0)
	c.delayedJob("with a wrong clock")
	c.transfer(2)
	c.delayedJob("with a right clock")
}

// delayedJob submits a job with a delay of a second and waits for it.
func (c *cluster) delayedJob(what string) {
	c.t.Helper()
	queue := "delayed-" + strings.ReplaceAll(what, " ", "-")
	begin := time.Now()
	c.do(0, "POST", "/jobs", fmt.Sprintf(`{"id":%q,"queue":%q,"delay_s":1}`, queue, queue), nil)
	harness.Eventually(c.t, func() string {
		var list struct{ Jobs []json.RawMessage }
		if err := c.api(0, "GET", "/jobs?state=ready&queue="+queue, "", &list); err != nil || len(list.Jobs) != 1 {
			return fmt.Sprint(len(list.Jobs), " jobs, ", err)
		}
		return ""
	})
	if took := time.Since(begin); took < 900*time.Millisecond {
		c.t.Errorf("%s: a job with a delay of a second came after %v", what, took)
	}
}
