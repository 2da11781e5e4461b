package cluster_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"broker/integration/harness"
)

// The ordered test has so many keys, with so many jobs each.
const (
	orderedKeys = 4
	orderedEach = 8
)

// orderedLease is a job of the ordered queue in a worker's hands. Its body is KEY/NUMBER.
type orderedLease struct {
	Lease string
	Job   struct{ ID, Body string }
}

// leaseOrdered asks a node that does not lead for a job of the ordered queue. Without one, the lease is empty.
func (c *cluster) leaseOrdered() (l orderedLease) {
	c.t.Helper()
	var answer struct{ Leases []orderedLease }
	harness.Eventually(c.t, func() string {
		if err := c.api(c.follower(), "POST", "/leases", `{"queues":["ordered"]}`, &answer); err != nil {
			return err.Error()
		}
		return ""
	})
	if len(answer.Leases) > 0 {
		l = answer.Leases[0]
	}
	return l
}

// Jobs of a key run one after the other over the deaths of leaders: before and after, no job is handed out while an
// earlier one of its key has not ended. What a worker has written to the log of its job stays, and it goes on writing.
func TestJobsOfAKeyKeepTheirOrderOverAFailover(t *testing.T) {
	t.Parallel()
	c := start(t)
	c.do(0, "PATCH", "/queues/ordered", `{"sharing":{"mode":"ordered","key_tag":"k"}}`, nil)
	for i := range orderedEach {
		for k := range orderedKeys {
			c.do(c.follower(), "POST", "/jobs", fmt.Sprintf(
				`{"id":"ordered-%d-%d","queue":"ordered","body":"%[1]d/%[2]d","tags":["k:%[1]d"],"max_fails":3}`,
				k, i), nil)
		}
	}
	var held []orderedLease
	for k := range orderedKeys {
		l := c.leaseOrdered()
		if l.Job.Body != fmt.Sprint(k, "/0") {
			t.Fatalf("lease %d is of job %q", k, l.Job.Body)
		}
		// in the first seconds of a cluster there are no logs; the lease is stored with the line
		harness.Eventually(t, func() string {
			if err := c.api(c.follower(), "POST", "/leases/"+l.Lease+"/log", `{"lines":["before"]}`, nil); err != nil {
				return err.Error()
			}
			return ""
		})
		held = append(held, l)
	}
	c.killLeader()
	if l := c.leaseOrdered(); l.Lease != "" {
		t.Errorf("job %s is handed out while an earlier one of its key runs", l.Job.Body)
	}
	for _, l := range held {
		c.do(c.follower(), "POST", "/leases/"+l.Lease+"/log", `{"lines":["after"]}`, nil)
		var log struct{ Lines []struct{ Text string } }
		c.do(c.follower(), "GET", "/jobs/"+l.Job.ID+"/log", "", &log)
		if fmt.Sprint(log.Lines) != "[{before} {after}]" {
			t.Errorf("the log of job %s is %v", l.Job.Body, log.Lines)
		}
		c.do(c.follower(), "POST", "/leases/"+l.Lease+"/complete", "", nil)
	}
	next := map[string]int{}
	for k := range orderedKeys {
		next[fmt.Sprint(k)] = 1
	}
	for done := orderedKeys; done < orderedKeys*orderedEach; done++ {
		if done%10 == 0 {
			c.killLeader()
		}
		var l orderedLease
		harness.Eventually(t, func() string {
			if l = c.leaseOrdered(); l.Lease == "" {
				return fmt.Sprintf("no job is handed out after %d", done)
			}
			return ""
		})
		key, number, _ := strings.Cut(l.Job.Body, "/")
		if number != fmt.Sprint(next[key]) {
			t.Errorf("job %s of key %s comes in place of job %d", number, key, next[key])
		}
		next[key]++
		c.do(c.follower(), "POST", "/leases/"+l.Lease+"/complete", "", nil)
	}
}

// killLeader kills the leader, waits for another one, and starts the node again.
func (c *cluster) killLeader() {
	c.t.Helper()
	i := c.leader()
	c.nodes[i].Process.Kill()
	c.awaitLeaderOtherThan(i)
	time.Sleep(100 * time.Millisecond) // it serves without the third node, too
	c.restart(i)
}
