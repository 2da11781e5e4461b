package httpapi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"broker/access"
	"broker/operate/service"
)

// clusterChanges are the routes that change a cluster, each with a valid body.
var clusterChanges = map[string]string{
	"add": `{"id":"n4","address":"127.0.0.1:4"}`, "remove": `{"id":"n2"}`, "transfer": `{}`,
}

func TestSingleBrokerReportsThatItHasNoCluster(t *testing.T) {
	t.Parallel()
	f := setupAPI(t, Options{})
	f.call("GET", "/api/v1/cluster", nil).problem(501, "not_available")
	for route, body := range clusterChanges {
		f.call("POST", "/api/v1/cluster/"+route, body).problem(501, "not_available")
	}
}

// toyCluster is a cluster with one node, which records the changes.
type toyCluster struct {
	changes *[]string // nil: none is made
	err     error     // of all changes
}

func (k *toyCluster) note(format string, args ...any) error {
	*k.changes = append(*k.changes, fmt.Sprintf(format, args...))
	return k.err
}

func (k *toyCluster) Overview(context.Context) service.ClusterOverview {
	return service.ClusterOverview{
		Leader: "n1", Nodes: []service.ClusterNode{{ID: "n1", Role: "leader", Address: "127.0.0.1:1", Applied: 7}},
	}
}

func (k *toyCluster) Ready(context.Context) bool { return true }

func (k *toyCluster) Numbers() service.ClusterNumbers {
	return service.ClusterNumbers{
		Role: "follower", DiskLow: true, Serving: true, Format: 2, Warm: true, IndexJobs: 7, IndexLag: 3,
		CopiesRepeated: 2, WriteTime: 80 * time.Millisecond, DiskSlow: true,
	}
}

func (k *toyCluster) Add(id, address string) error { return k.note("add %s %s", id, address) }

func (k *toyCluster) Remove(_ context.Context, id string, handsOver func() error) error {
	if id == "n1" {
		return errors.Join(handsOver(), k.note("remove %s", id))
	}
	return k.note("remove %s", id)
}

func (k *toyCluster) Successor(_ context.Context, id string) (string, error) {
	return cmp.Or(id, "n3"), k.err
}

func (k *toyCluster) Transfer(_ context.Context, to string) error { return k.note("transfer %s", to) }

func TestClusterIsShownAndChanged(t *testing.T) {
	t.Parallel()
	var changes []string
	f := setupAPI(t, Options{Cluster: &toyCluster{&changes, nil}})
	for route, body := range clusterChanges {
		if o := f.call("POST", "/api/v1/cluster/"+route, body).want(200); o["leader"] != "n1" {
			t.Errorf("%s: %v", route, o)
		}
	}
	for _, want := range []string{"add n4 127.0.0.1:4", "remove n2", "transfer n3"} {
		if !strings.Contains(strings.Join(changes, ";"), want) {
			t.Errorf("%v: no %s", changes, want)
		}
	}
	for _, e := range []string{"cluster.add n4 127.0.0.1:4", "cluster.remove n2 <nil>", "cluster.transfer n3 <nil>"} {
		if all := f.audit(); !slices.Contains(all, e) {
			t.Errorf("the audit log has no entry %q: %q", e, all)
		}
	}
	for _, bad := range []struct{ route, body string }{
		{"add", `{"id":"n4"}`},
		{"add", `{"id":"","address":"a:1"}`},
		{"remove", `{}`},
		{"transfer", `{"node":"n1"}`},
		{"transfer", `{"id":`},
	} {
		if a := f.call("POST", "/api/v1/cluster/"+bad.route, bad.body); a.status/100 != 4 ||
			a.header.Get("Content-Type") != problemType {
			t.Errorf("%s %s: %d %s", bad.route, bad.body, a.status, a.text)
		}
	}
	// While another node leads, this node has no open store but still answers.
	f.server.Unready()
	if o := f.call("GET", "/api/v1/cluster", nil).want(200); fmt.Sprint(o["nodes"]) == "[]" {
		t.Errorf("%v", o)
	}
	f.call("GET", "/api/v1/queues", nil).problem(503, "no_leader")
	text := string(f.call("GET", "/metrics", nil).text)
	for _, line := range []string{
		"broker_disk_low 1", "broker_ready 1", `broker_cluster_role{role="follower"} 1`, "broker_cluster_format 2",
		"broker_cluster_index_warm 1", "broker_cluster_index_jobs 7", "broker_cluster_index_lag_entries 3",
		"broker_cluster_repeated_copies_total 2", "broker_cluster_log_write_seconds 0.08", "broker_cluster_disk_slow 1",
	} {
		if !strings.Contains(text, "\n"+line+"\n") {
			t.Errorf("a node that does not lead has no metric %s", line)
		}
	}
	documented, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range regexp.MustCompile(`(?m)^# TYPE (broker_cluster_\w+)`).FindAllStringSubmatch(text, -1) {
		if !strings.Contains(string(documented), "`"+name[1]+"`") {
			t.Errorf("docs/metrics.md does not list %s", name[1])
		}
	}
	if got := f.call("GET", "/healthz", nil).want(200); got["status"] != "disk of this node nearly full" {
		t.Errorf("health %v", got)
	}
}

// audit is the audit log: action, target and detail of each entry.
func (f *apiFixture) audit() (all []string) {
	f.t.Helper()
	for _, e := range f.call("GET", "/api/v1/audit", nil).want(200)["entries"].([]any) {
		m := e.(map[string]any)
		all = append(all, fmt.Sprint(m["action"], " ", m["target"], " ", m["detail"]))
	}
	return all
}

func TestRefusedChangeOfTheClusterIsAConflict(t *testing.T) {
	t.Parallel()
	var changes []string
	f := setupAPI(t, Options{Cluster: &toyCluster{&changes, errors.New("node n2 leads")}})
	for route, body := range clusterChanges {
		if p := f.call("POST", "/api/v1/cluster/"+route, body).problem(409,
			"cluster_refused"); p["detail"] != "node n2 leads" {
			t.Errorf("%s: %v", route, p)
		}
	}
	if all := f.audit(); len(all) > 0 {
		t.Errorf("the audit log has changes that were refused: %q", all)
	}
}

func TestOnlyAdministratorsChangeTheCluster(t *testing.T) {
	t.Parallel()
	control := &access.Control{}
	var entries []access.Entry
	for _, role := range []string{"operate", "admin"} {
		g, err := access.ParseGrant(role)
		if err != nil {
			t.Fatal(err)
		}
		entries = append(entries,
			access.Entry{Name: role, TokenSHA256: access.HashToken(role), Grants: []access.Grant{g}})
	}
	control.Load(entries)
	var changes []string
	f := setupAPI(t, Options{Access: control, Cluster: &toyCluster{&changes, nil}})
	as := func(token string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token) }
	}
	f.call("GET", "/api/v1/cluster", nil).problem(401, "unauthorized")
	for route, body := range clusterChanges {
		f.call("POST", "/api/v1/cluster/"+route, body).problem(401, "unauthorized")
		f.call("POST", "/api/v1/cluster/"+route, body, as("operate")).problem(403, "forbidden")
		if len(changes) > 0 {
			t.Errorf("%s: %v", route, changes)
		}
	}
	for route, body := range clusterChanges {
		f.call("POST", "/api/v1/cluster/"+route, body, as("admin")).want(200)
	}
}

// A request that comes to the API of a follower is refused at once: the node has waited for a leader before, and this
// server gets no store while another node leads.
func TestFollowerRefusesRequestsWithoutALeaderAtOnce(t *testing.T) {
	t.Parallel()
	var changes []string
	f := setupAPI(t, Options{Cluster: &toyCluster{&changes, nil}})
	f.server.Unready()
	f.server.startTimeout = time.Hour
	done := make(chan bool, 1)
	go func() { done <- f.server.awaitService(t.Context()) != nil }()
	select {
	case served := <-done:
		if served {
			t.Error("a follower serves the API")
		}
	case <-time.After(time.Minute):
		t.Error("the request waits for a store")
	}
}
