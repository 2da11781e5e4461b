package cluster_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"broker/integration/harness"
	"broker/integration/server"
)

// requests is a client of the HTTP API, with one connection that must not end.
type requests struct {
	*http.Client
	node   *server.BrokerServer
	dials  atomic.Int32
	tokens map[string]string // by the id of the test
}

// errReconnected: the connection has ended.
var errReconnected = errors.New("the connection has ended")

func newRequests(n *server.BrokerServer) *requests {
	r := &requests{node: n, tokens: map[string]string{}}
	r.Client = &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			if r.dials.Add(1) > 1 {
				return nil, errReconnected
			}
			return new(net.Dialer).DialContext(ctx, network, address)
		},
	}}
	return r
}

func dialHTTP(n *server.BrokerServer) (session, error) { return newRequests(n), nil }

// ask sends a request, with a header and its value; a reply that is not of success is an error.
func (r *requests) ask(path, body string, into any, header ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+r.node.HTTP+"/api/v1"+path,
		strings.NewReader(body))
	if err != nil {
		return err
	}
	r.node.Authorize(req)
	if len(header) > 0 {
		req.Header.Set(header[0], header[1])
	}
	resp, err := r.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }() // it was read
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode/100 != 2 {
		err = &refusal{fmt.Sprintf("%s: %d %s", path, resp.StatusCode, text), resp.StatusCode}
	}
	if err != nil || len(text) == 0 || into == nil {
		return err
	}
	return json.Unmarshal(text, into)
}

func (r *requests) submit(id string) error {
	return r.ask("/jobs", fmt.Sprintf(`{"id":%q,"queue":"http","lease_for_s":3600}`, id), nil)
}

// leasedJob is the reply to a lease.
type leasedJob struct {
	Lease string `json:"lease"`
	Job   struct {
		ID string `json:"id"`
	} `json:"job"`
}

func (r *requests) lease() (string, error) {
	var l leasedJob
	err := r.ask("/queues/http/lease?wait=1s", "{}", &l)
	if l.Lease != "" {
		r.tokens[l.Job.ID] = l.Lease
	}
	return l.Job.ID, err
}

// finish is refused if the lease was lost with its leader.
func (r *requests) finish(id string) (bool, error) {
	err := r.ask("/leases/"+r.tokens[id]+"/complete", "{}", nil)
	if refused := (*refusal)(nil); errors.As(err, &refused) && refused.status == http.StatusGone {
		return false, nil
	}
	return err == nil, err
}

// Close implements session.
func (r *requests) Close() error {
	r.CloseIdleConnections()
	return nil
}

// A worker that polls for a job, clients that wait for outcomes, a foreground job and a lease go on at the next leader,
// each on its connection.
func TestRequestsOutliveTheLeader(t *testing.T) {
	t.Parallel()
	c := prepare(t, nil, loggedIn).start()
	c.awaitLinks()
	leader := c.leader()
	first, second := c.nodes[(leader+1)%size], c.nodes[(leader+2)%size]
	async := func(n *server.BrokerServer, path, body string, into any) <-chan error {
		done := make(chan error, 1)
		go func() { done <- newRequests(n).ask(path, body, into) }()
		return done
	}
	type submitted struct {
		Outcome struct {
			Result string `json:"result"`
		} `json:"outcome"`
	}
	var polled leasedJob
	polls := async(first, "/queues/later/lease?wait=60s", "{}", &polled)
	var foreground, stored submitted
	var several struct {
		Jobs []submitted `json:"jobs"`
	}
	waits := map[string]<-chan error{
		"foreground": async(first, "/jobs?wait=60s", `{"queue":"foreground","ephemeral":true}`, &foreground),
		"stored":     async(second, "/jobs?wait=60s", `{"queue":"stored"}`, &stored),
		"several":    async(first, "/jobs?wait=60s", `{"jobs":[{"queue":"several"},{"queue":"several"}]}`, &several),
	}
	worker := newRequests(second)
	var held leasedJob
	check(t, worker.ask("/queues/foreground/lease?wait=60s", `{"lease_for_s":600}`, &held))
	for _, queue := range []string{"stored", "several"} {
		harness.Eventually(t, func() string {
			if err := c.api(leader, "GET", "/queues/"+queue, "", nil); err != nil {
				return err.Error()
			}
			return ""
		})
	}
	c.nodes[leader].Process.Kill()
	c.awaitLeaderOtherThan(leader)
	check(t, worker.ask("/leases/"+held.Lease+"/heartbeat", "{}", nil))
	check(t, worker.ask("/leases/"+held.Lease+"/complete", `{"result":"foreground"}`, nil))
	for _, queue := range []string{"stored", "several", "several"} {
		var l leasedJob
		check(t, worker.ask("/queues/"+queue+"/lease?wait=60s", "{}", &l))
		check(t, worker.ask("/leases/"+l.Lease+"/complete", fmt.Sprintf(`{"result":%q}`, queue), nil))
	}
	check(t, newRequests(second).ask("/jobs", `{"queue":"later","id":"polled"}`, nil))
	if err := <-polls; err != nil || polled.Job.ID != "polled" {
		t.Errorf("polled %q, %v", polled.Job.ID, err)
	}
	for name, done := range waits {
		if err := <-done; err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	results := []string{foreground.Outcome.Result, stored.Outcome.Result}
	for _, j := range several.Jobs {
		results = append(results, j.Outcome.Result)
	}
	if got := fmt.Sprint(results); got != "[foreground stored several several]" {
		t.Errorf("results %s", got)
	}
}

// Requests with an idempotency key, and those that read, are passed on and counted; a key is known under each leader.
func TestRequestsThatTheLeaderServesArePassedOn(t *testing.T) {
	t.Parallel()
	c := prepare(t, nil, calm).start()
	c.awaitLinks()
	leader, node := c.leader(), c.follower()
	passed := func() float64 { return c.metric(node, "broker_cluster_proxied_requests_total") }
	check(t, c.api(node, "POST", "/jobs", `{"queue":"q"}`, nil))
	check(t, c.api(node, "POST", "/queues/q/lease", "{}", nil))
	if n := passed(); n != 0 {
		t.Errorf("%v requests of producers and workers were passed on", n)
	}
	submit := func() (id string) {
		var job struct {
			ID string `json:"id"`
		}
		harness.Eventually(t, func() string {
			err := newRequests(c.nodes[node]).ask("/jobs", `{"queue":"q"}`, &job, "Idempotency-Key", "once")
			if refused := (*refusal)(nil); errors.As(err, &refused) && refused.status == http.StatusServiceUnavailable {
				return err.Error()
			}
			check(t, err)
			return ""
		})
		return job.ID
	}
	id := submit()
	check(t, c.api(node, "GET", "/jobs/"+id, "", nil))
	if n := passed(); n < 2 { // more if there was no leader for a while
		t.Errorf("%v requests were passed on", n)
	}
	c.nodes[leader].Process.Kill()
	c.awaitLeaderOtherThan(leader)
	if again := submit(); again != id {
		t.Errorf("the key has the jobs %s and %s", id, again)
	}
}

// A stream of events goes on at the next leader, which says that events before it may be missing.
func TestEventStreamOutlivesTheLeader(t *testing.T) {
	t.Parallel()
	c := start(t)
	node := c.nodes[c.follower()]
	resp, err := http.Get("http://" + node.HTTP + "/api/v1/events?queue=watched&kind=submitted")
	check(t, err)
	t.Cleanup(func() { _ = resp.Body.Close() }) // it was read
	lines := make(chan string, 1000)
	go func() { // ends with the stream
		defer close(lines)
		for in := bufio.NewScanner(resp.Body); in.Scan(); {
			lines <- in.Text()
		}
	}()
	await := func(text string) {
		t.Helper()
		late := time.After(harness.Patience)
		for {
			select {
			case line, open := <-lines:
				if !open {
					t.Fatalf("the stream has ended before %q", text)
				}
				if strings.Contains(line, text) {
					return
				}
			case <-late:
				t.Fatalf("%q does not come", text)
			}
		}
	}
	await("id: ")
	check(t, newRequests(node).ask("/jobs", `{"id":"before","queue":"watched"}`, nil))
	await(`"job":"before"`)
	c.killLeader()
	await(`"restarted":true`)
	check(t, newRequests(node).ask("/jobs", `{"id":"behind","queue":"watched"}`, nil))
	await(`"job":"behind"`)
}
