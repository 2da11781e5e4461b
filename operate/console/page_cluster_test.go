package console

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"broker/access"
	"broker/operate/service"
)

// clusterOf is a cluster whose nodes have roles.
func clusterOf(roles ...string) (o service.ClusterOverview) {
	for _, role := range roles {
		o.Nodes = append(o.Nodes, service.ClusterNode{ID: "n1", Role: role})
	}
	return o
}

// toyCluster is a cluster that only shows itself.
type toyCluster struct {
	service.Cluster

	role  string
	nodes service.ClusterOverview
}

func (k toyCluster) Overview(context.Context) service.ClusterOverview { return k.nodes }
func (k toyCluster) Numbers() service.ClusterNumbers                  { return service.ClusterNumbers{Role: k.role} }

// TestClusterPageIsServedWithoutALeader: a node without a store shows what it knows, and ends the streams of open
// pages.
func TestClusterPageIsServedWithoutALeader(t *testing.T) {
	t.Parallel()
	c, err := New(Options{
		Port:    toyPort{visitor: access.Everyone},
		Now:     func() time.Time { return time.Date(2026, 1, 31, 14, 5, 6, 0, time.UTC) },
		Cluster: toyCluster{nodes: clusterOf("starting", "unreachable", "unreachable")},
	})
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{t: t, console: c}
	f.wants(f.get("/cluster"), "No node serves clients now", ">2026-01-31 14:05:06</time>",
		"Too few nodes are reachable")
	for _, path := range []string{"/live", "/"} {
		w := httptest.NewRecorder()
		c.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		if w.Code != http.StatusServiceUnavailable {
			t.Errorf("GET %s answers %d", path, w.Code)
		}
		if path == "/" && w.Header().Get("Refresh") == "" {
			t.Error("the page of a broker that starts does not load itself again")
		}
	}
	changed, ok := c.live.join("")
	<-changed // the page lacks a change
	if c.live.look() || !ok {
		t.Error("a tab is followed though the broker does not serve")
	}
	if _, open := <-changed; open {
		t.Error("the stream of a tab goes on")
	}
}

func TestClusterPageShowsHowManyNodesMayFail(t *testing.T) {
	t.Parallel()
	for roles, want := range map[string]string{
		"leader follower follower":                         "1 node may fail",
		"leader follower unreachable":                      "If one more node fails",
		"leader unreachable unreachable":                   "Too few nodes",
		"starting unreachable unreachable":                 "Too few nodes",
		"leader follower follower learner":                 "1 node may fail",
		"leader follower follower follower follower":       "2 nodes may fail",
		"leader follower follower unreachable unreachable": "If one more node fails",
		"": "",
	} {
		d := &clusterData{ClusterOverview: clusterOf(strings.Fields(roles)...)}
		d.weighLoss()
		got := d.Reserve
		if (got == "") != (want == "") || !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q, want %q", roles, got, want)
		}
		if len(d.Nodes) > 0 && d.AtRisk != !strings.Contains(want, "may fail") {
			t.Errorf("%s: at risk %v", roles, d.AtRisk)
		}
	}
}
