package httpapi

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"broker/core"
	"broker/core/clock"
	"broker/core/coretest"
	"broker/core/engine"
	"broker/core/remote"
	"broker/frontends/shared/httpserver"
	"broker/operate/service"
)

// nodes are the APIs of a leader and of a node that follows.
type nodes struct {
	leader, node *apiFixture
	broker       *remote.Broker
	link         *remote.Uplink
}

// silent is a remote.Owner that hears nothing.
type silent struct{}

func (silent) Asked(*remote.Node, []byte, func([]byte)) {}
func (silent) Told(*remote.Node, []byte)                {}
func (silent) Left(*remote.Node)                        {}

// setupNodes links a node to a leader.
func setupNodes(t *testing.T, o Options) *nodes {
	t.Helper()
	e, err := engine.Open(engine.Options{Dir: "data", FS: coretest.MemoryFS()})
	if err != nil {
		t.Fatal(err)
	}
	links := remote.NewServer(e, remote.ServerOptions{Owner: silent{}, Term: 1})
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	links.Settle(ended, nil, func() {})
	b := remote.NewBroker(remote.BrokerOptions{Node: "n2", Clock: clock.System{}, Told: func([]byte) {}})
	near, far := net.Pipe()
	go func() { _ = links.Serve(far) }() // ends with the link
	up, err := b.Dial(near)
	if err != nil {
		t.Fatal(err)
	}
	<-up.Ready()
	own, err := service.New(service.Options{Broker: e, Cluster: o.Cluster})
	if err != nil {
		t.Fatal(err)
	}
	over := service.NewFollower(service.Options{Broker: b, Cluster: o.Cluster})
	o.Log = zerolog.Nop()
	n := &nodes{
		leader: &apiFixture{t: t, engine: e, server: New(o)}, node: &apiFixture{t: t, engine: e, server: New(o)},
		broker: b, link: up,
	}
	n.leader.server.Ready(Backend{Broker: e, Service: own, Parts: toyParts{}})
	n.node.server.Follow(over)
	for _, f := range []*apiFixture{n.leader, n.node} {
		here := f.server.HTTP().Handler
		linked := OverLink(here)
		web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if f.server.HomeOf(r) == httpserver.AtNode {
				linked.ServeHTTP(w, r)
				return
			}
			here.ServeHTTP(w, r)
		}))
		f.url = web.URL
		t.Cleanup(web.Close)
	}
	t.Cleanup(func() {
		b.Shut()
		links.Close(ended)
		own.Close()
		if err := e.Shutdown(); err != nil {
			t.Error(err)
		}
	})
	return n
}

// clustered are the options of a node.
func clustered() Options { return Options{Cluster: &toyCluster{}} }

func TestNodeThatFollowsServesProducersAndWorkers(t *testing.T) {
	t.Parallel()
	n := setupNodes(t, clustered())
	const trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	ended := make(chan map[string]any, 1)
	go func() {
		ended <- n.node.call("POST", "/api/v1/jobs?wait=60s", `{"queue":"q","body":"x"}`, func(r *http.Request) {
			r.Header.Set("Traceparent", trace)
		}).want(201)
	}()
	lease := n.node.call("POST", "/api/v1/queues/q/lease?wait=60s", `{"worker":"w"}`)
	leased := lease.want(200)
	token, job := leased["lease"].(string), leased["job"].(map[string]any)
	if job["body"] != "x" || job["worker"] != "w" || lease.header.Get("Traceparent") != trace {
		t.Errorf("leased %v, %v", job, lease.header)
	}
	for path, body := range map[string]string{
		"heartbeat": "{}", "progress": `{"percent":50}`, "log": `{"lines":["a"]}`,
	} {
		if a := n.node.call("POST", "/api/v1/leases/"+token+"/"+path, body).want(200); a["lease_until"] == nil ||
			a["cancel_requested"] != false {
			t.Errorf("%s: %v", path, a)
		}
	}
	// One key makes the tokens of all nodes.
	shown := n.leader.call("POST", "/api/v1/leases/"+token+"/heartbeat", "{}")
	shown.want(200)
	n.node.call("POST", "/api/v1/leases/"+token+"/complete", `{"result":"done"}`).want(204)
	if o := (<-ended)["outcome"].(map[string]any); o["result"] != "done" {
		t.Errorf("outcome %v", o)
	}
	n.node.call("POST", "/api/v1/leases/"+token+"/complete", "{}").problem(410, "lease_lost")
	n.node.call("POST", "/api/v1/leases/x/complete", "{}").problem(404, "invalid_lease")
	n.node.call("POST", "/api/v1/jobs", `{"queue":"q","id":"twice"}`).want(201)
	n.node.call("POST", "/api/v1/jobs", `{"queue":"q","id":"twice"}`).problem(409, "duplicate_id")
	token, _ = n.leader.leaseOne()
	n.node.call("POST", "/api/v1/leases/"+token+"/fail", `{"message":"no"}`).want(204)
	n.node.call("POST", "/api/v1/lease?queue=none", "{}").want(204)
}

// The leader gives a job its number and its time, which make its id.
func TestNodeThatFollowsNamesSubmittedJobs(t *testing.T) {
	t.Parallel()
	n := setupNodes(t, clustered())
	one, many := `{"queue":"q","max_fails":3}`, `{"jobs":[{"queue":"q"},{"queue":"q","delay_s":3600}]}`
	for _, ask := range []struct{ query, body string }{{"", one}, {"", many}, {"?wait=1ms", one}, {"?wait=1ms", many}} {
		got := n.node.call("POST", "/api/v1/jobs"+ask.query, ask.body).want(201)
		jobs, isList := got["jobs"].([]any)
		if !isList {
			jobs = []any{got}
		}
		for _, j := range jobs {
			job := j.(map[string]any)
			there := n.leader.call("GET", "/api/v1/jobs/"+job["id"].(string), "").want(200)
			for _, member := range []string{"id", "alias", "seq", "created_at", "state", "max_fails"} {
				if job[member] != there[member] {
					t.Errorf("%s %s: %s: %v, but %v", ask.query, ask.body, member, job[member], there[member])
				}
			}
		}
	}
}

func TestNodeThatFollowsServesManyJobsAtOnce(t *testing.T) {
	t.Parallel()
	n := setupNodes(t, clustered())
	ended := make(chan map[string]any, 1)
	go func() {
		ended <- n.node.call("POST", "/api/v1/jobs?wait=60s",
			`{"jobs":[{"queue":"q"},{"queue":"q"},{"queue":"q"},{"queue":"q"}]}`).want(201)
	}()
	all := n.node.call("POST", "/api/v1/leases", `{"queues":["q"],"max":4,"min":4,"wait_s":60}`).want(200)["leases"]
	var tokens []string
	for _, l := range all.([]any) {
		tokens = append(tokens, l.(map[string]any)["lease"].(string))
	}
	if len(tokens) != 4 {
		t.Fatalf("leased %v", all)
	}
	for i, verb := range []string{"heartbeat", "release", "fail", "complete"} {
		body := fmt.Sprintf(`{"leases":[{"lease":%q},{"lease":"x"}]}`, tokens[i])
		results := n.node.call("POST", "/api/v1/leases/"+verb, body).want(200)["results"].([]any)
		first, second := results[0].(map[string]any), results[1].(map[string]any)
		if first["ok"] != true || second["code"] != "invalid_lease" {
			t.Errorf("%s: %v", verb, results)
		}
		if verb == "heartbeat" && first["lease_until"] == nil {
			t.Errorf("%s: no end of the lease: %v", verb, results)
		}
	}
	n.node.call("POST", "/api/v1/leases/complete", fmt.Sprintf(`{"leases":[{"lease":%q}]}`, tokens[0])).want(200)
	n.node.call("POST", "/api/v1/job-actions?wait=5s", `{}`).problem(503, "no_leader")
	n.leader.call("POST", "/api/v1/job-actions?wait=5s", `{"action":"delete","filter":{"queue":"q"}}`).want(202)
	if got := (<-ended)["jobs"].([]any); len(got) != 4 || got[0].(map[string]any)["outcome"] == nil {
		t.Errorf("in the end %v", got)
	}
}

func TestNodeThatFollowsChecksRights(t *testing.T) {
	t.Parallel()
	o := clustered()
	o.Access = principals(t, map[string][]string{"shop": {"produce:mail"}, "worker": {"consume:mail"}})
	n := setupNodes(t, o)
	job := `{"queue":"mail"}`
	n.node.call("POST", "/api/v1/jobs", job).problem(401, "unauthorized")
	n.node.call("POST", "/api/v1/jobs", job, as("thief")).problem(401, "unauthorized")
	n.node.call("POST", "/api/v1/jobs", job, as("worker")).problem(403, "forbidden")
	n.node.call("POST", "/api/v1/jobs", job, as("shop")).want(201)
	n.node.call("POST", "/api/v1/queues/mail/lease", "{}", as("shop")).problem(403, "forbidden")
	token := n.node.call("POST", "/api/v1/queues/mail/lease", "{}", as("worker")).want(200)["lease"].(string)
	n.node.call("POST", "/api/v1/leases/"+token+"/complete", "{}", as("shop")).problem(403, "forbidden")
	n.node.call("POST", "/api/v1/leases/"+token+"/complete", "{}", as("worker")).want(204)
	if n := n.node.server.options.Access.Refusals(core.HTTP); n != 3 {
		t.Errorf("%d refusals are counted", n)
	}
}

// What nobody can answer any more is told apart by whether it may have been done.
func TestNodeWithoutALeaderSaysWhatMayHaveBeenDone(t *testing.T) {
	t.Parallel()
	n := setupNodes(t, clustered())
	n.node.push(map[string]any{"queue": "mine"})
	token := n.node.call("POST", "/api/v1/queues/mine/lease", "{}").want(200)["lease"].(string)
	ask := func(path, body string) chan answer {
		got := make(chan answer, 1)
		go func() { got <- n.node.call("POST", "/api/v1"+path, body) }()
		return got
	}
	clients := func(want int) {
		t.Helper()
		for end := time.After(time.Minute); n.broker.Clients() != want; {
			select {
			case <-time.After(time.Millisecond):
			case <-end:
				t.Fatalf("%d clients, want %d", n.broker.Clients(), want)
			}
		}
	}
	waits := ask("/jobs?wait=60s", `{"queue":"later"}`)
	clients(1)
	for n.leader.call("GET", "/api/v1/queues/later", nil).status != 200 {
		<-time.After(time.Millisecond)
	}
	polls := ask("/queues/none/lease?wait=60s", "{}")
	clients(2)
	n.link.Hangup()
	submits, reports := ask("/jobs", `{"queue":"unsent"}`), ask("/leases/"+token+"/heartbeat", "{}")
	clients(4)
	n.broker.Shut()
	(<-waits).problem(504, "outcome_unknown")
	for name, got := range map[string]chan answer{"lease": polls, "submission": submits, "report": reports} {
		a := <-got
		if a.problem(503, "no_leader"); a.header.Get("Retry-After") == "" {
			t.Errorf("%s: no Retry-After", name)
		}
	}
	n.node.call("POST", "/api/v1/jobs", `{"queue":"late"}`).problem(503, "no_leader")
	n.leader.call("GET", "/api/v1/queues/unsent", nil).problem(404, "queue_not_found")
}
