//go:build nightly

package cluster_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"

	"broker/integration/harness"
	"broker/integration/server"
)

// A cluster of the build before nodes served producers and workers of the HTTP API themselves is upgraded under their
// load, one node after the other. A lease that one build granted is reported to another one through another node.
func TestRequestsGoOnDuringAnUpgrade(t *testing.T) {
	c := startOf(t, harness.BinaryBefore(t, "operate/service/follower.go", "^func NewFollower"))
	c.committed = true // no node is killed
	seen := &upgradeErrors{c: c, of: make(map[string]int)}
	l := c.beginOf([]protocol{
		{"one by one", true, func(n *server.BrokerServer) (session, error) { return seen.dial(n, false), nil }},
		{"several at once", true, func(n *server.BrokerServer) (session, error) { return seen.dial(n, true), nil }},
	})
	held := c.holdJob(0)
	c.upgradeOneByOne(l, func(_, i int) {
		check(t, c.reportJob((i+1)%size, held))
		held = c.holdJob(i)
	})
	check(t, c.reportJob(c.leader(), held))
	for i := range c.nodes {
		passed := c.metric(i, "broker_cluster_proxied_requests_total")
		check(t, c.reportJob(i, c.holdJob(i)))
		if now := c.metric(i, "broker_cluster_proxied_requests_total"); now != passed {
			t.Errorf("n%d passes requests of producers and workers on after the upgrade", i+1)
		}
	}
	seen.check(t)
}

// holdJob submits and leases a job through a node.
func (c *cluster) holdJob(i int) (lease string) {
	c.t.Helper()
	var l leasedJob
	check(c.t, c.api(i, "POST", "/jobs", `{"queue":"held"}`, nil))
	check(c.t, c.api(i, "POST", "/queues/held/lease?wait=10s", `{"lease_for_s":3600}`, &l))
	return l.Lease
}

// reportJob reports progress of a job through a node, then its end.
func (c *cluster) reportJob(i int, lease string) error {
	for _, report := range []string{"heartbeat", "progress", "complete"} {
		body := "{}"
		if report == "progress" {
			body = `{"percent":50}`
		}
		if err := c.api(i, "POST", "/leases/"+lease+"/"+report, body, nil); err != nil {
			return fmt.Errorf("%s through n%d: %w", report, i+1, err)
		}
	}
	return nil
}

// upgradeErrors is what clients of HTTP were told.
type upgradeErrors struct {
	c *cluster

	mu sync.Mutex // guards of
	of map[string]int
}

// reporting is a client that reports on its jobs before it finishes them. many takes and finishes several at once.
type reporting struct {
	*requests
	seen  *upgradeErrors
	many  bool
	taken []string // leased, and not yet worked on
}

func (e *upgradeErrors) dial(n *server.BrokerServer, many bool) session {
	return &reporting{requests: newRequests(n), seen: e, many: many}
}

// note counts an error that the client of a node should not see. A node that stops or starts has no connections;
// without a leader, a request is refused, or its outcome unknown.
func (e *upgradeErrors) note(n *server.BrokerServer, downBefore int32, err error) error {
	if err == nil {
		return nil
	}
	node := int32(slices.Index(e.c.nodes, n) + 1)
	refused := (*refusal)(nil)
	switch {
	case downBefore == node, e.c.down.Load() == node:
		return err
	case errors.As(err, &refused) && (refused.status == http.StatusServiceUnavailable ||
		refused.status == http.StatusGatewayTimeout || refused.status == http.StatusGone):
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.of[fmt.Sprintf("n%d: %v", node, err)]++
	return err
}

func (e *upgradeErrors) check(t *testing.T) {
	t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	for text, n := range e.of {
		t.Errorf("%d times: %s", n, text)
	}
}

// ask sends a request and notes its error.
func (r *reporting) ask(path, body string, into any) error {
	down := r.seen.c.down.Load()
	return r.seen.note(r.node, down, r.requests.ask(path, body, into))
}

func (r *reporting) submit(id string) error {
	if !r.many {
		return r.ask("/jobs", fmt.Sprintf(`{"id":%q,"queue":"one","lease_for_s":3600}`, id), nil)
	}
	return r.ask("/jobs", fmt.Sprintf(`{"jobs":[{"id":%q,"queue":"many","lease_for_s":3600}]}`, id), nil)
}

func (r *reporting) lease() (string, error) {
	if !r.many {
		var l leasedJob
		err := r.ask("/queues/one/lease?wait=1s", "{}", &l)
		r.tokens[l.Job.ID] = l.Lease
		return l.Job.ID, err
	}
	if len(r.taken) == 0 {
		var all struct {
			Leases []leasedJob `json:"leases"`
		}
		if err := r.ask("/leases", `{"queues":["many"],"max":3,"wait_s":1}`, &all); err != nil {
			return "", err
		}
		for _, l := range all.Leases {
			r.tokens[l.Job.ID] = l.Lease
			r.taken = append(r.taken, l.Job.ID)
		}
	}
	if len(r.taken) == 0 {
		return "", nil
	}
	id := r.taken[0]
	r.taken = r.taken[1:]
	return id, nil
}

func (r *reporting) finish(id string) (bool, error) {
	if err := r.ask("/leases/"+r.tokens[id]+"/heartbeat", "{}", nil); err != nil {
		return false, err
	}
	if !r.many {
		err := r.ask("/leases/"+r.tokens[id]+"/complete", "{}", nil)
		return err == nil, err
	}
	var all struct {
		Results []struct {
			OK bool `json:"ok"`
		} `json:"results"`
	}
	err := r.ask("/leases/complete", fmt.Sprintf(`{"leases":[{"lease":%q}]}`, r.tokens[id]), &all)
	return err == nil && len(all.Results) == 1 && all.Results[0].OK, err
}
