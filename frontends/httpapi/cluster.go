package httpapi

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/prometheus/client_golang/prometheus"

	"broker/frontends/access"
	"broker/frontends/service"
)

// Cluster is what the server asks the node of a cluster. Its functions are called from any goroutine.
type Cluster struct {
	Overview func(ctx context.Context) ClusterOverview
	Ready    func(ctx context.Context) bool
	Numbers  func() ClusterNumbers

	Add      func(id, address string) error
	Remove   func(ctx context.Context, id string) error
	Transfer func(ctx context.Context, to string) error // empty: to any node
}

// ClusterOverview is the cluster as a node sees it.
type ClusterOverview struct {
	Leader string        `json:"leader" doc:"id of the node that leads; empty: there is none, or the node that is asked does not reach it"`
	Nodes  []ClusterNode `json:"nodes"`
}

// ClusterNode is a node of a cluster.
type ClusterNode struct {
	ID          string  `json:"id" example:"n1"`
	Role        string  `json:"role" enum:"leader,candidate,follower,learner,starting,unreachable" doc:"a learner follows and has no vote"`
	Address     string  `json:"address" doc:"at which the other nodes call it" example:"10.0.0.1:7431"`
	Applied     uint64  `json:"applied" doc:"index up to which its store has the log"`
	Lag         uint64  `json:"lag" doc:"entries that it has not applied yet"`
	LastContact float64 `json:"last_contact_s" doc:"seconds since it last answered the node that is asked"`
	Version     string  `json:"version" doc:"of its program"`
}

// ClusterNumbers is what the metrics show of the node.
type ClusterNumbers struct {
	Role               string // empty: it is not a member yet
	Serving, HasLeader bool   // Serving: clients are served through this node
	Term               uint64
	Applied            uint64
	Lag                uint64 // entries that the cluster has committed and this node has not applied
	LogBytes           uint64
	DiskLow            bool
	Elections          uint64 // won
	Relayed            uint64 // connections that were passed on to the leader
	Relaying           int64  // that are now
}

// clusterPath is where the routes of the cluster begin. Every node answers them itself, also without a store that is open.
const clusterPath = apiPath + "/cluster"

// NewNode is a node that is to be added.
type NewNode struct {
	ID      string `json:"id" minLength:"1" example:"n4"`
	Address string `json:"address" minLength:"1" doc:"host:port at which the other nodes call it" example:"10.0.0.4:7431"`
}

// NodeID names a node.
type NodeID struct {
	ID string `json:"id" minLength:"1" example:"n2"`
}

// NextLeader names the node that gets the lead.
type NextLeader struct {
	ID string `json:"id,omitempty" doc:"default: any node that has caught up" example:"n3"`
}

type clusterOutput struct{ Body ClusterOverview }

func (s *Server) registerCluster(api huma.API) {
	show := operation("get-cluster", http.MethodGet, "/cluster", "cluster", "List the nodes", http.StatusNotImplemented)
	huma.Register(api, show, func(ctx context.Context, _ *struct{}) (*clusterOutput, error) {
		if s.options.Cluster == nil {
			return nil, errNoCluster()
		}
		return &clusterOutput{s.options.Cluster.Overview(ctx)}, nil
	})
	change := func(id, path, summary string) huma.Operation {
		return operation(id, http.MethodPost, "/cluster/"+path, "cluster", summary, http.StatusConflict, http.StatusNotImplemented)
	}
	huma.Register(api, change("add-node", "add", "Let a node join; it gets a vote once it has caught up"),
		func(ctx context.Context, in *struct{ Body NewNode }) (*clusterOutput, error) {
			return s.changeCluster(ctx, "add", in.Body.ID, func(c *Cluster) error { return c.Add(in.Body.ID, in.Body.Address) })
		})
	huma.Register(api, change("remove-node", "remove", "Remove a node, unless it leads"),
		func(ctx context.Context, in *struct{ Body NodeID }) (*clusterOutput, error) {
			return s.changeCluster(ctx, "remove", in.Body.ID, func(c *Cluster) error { return c.Remove(ctx, in.Body.ID) })
		})
	huma.Register(api, change("transfer-leadership", "transfer", "Hand the lead over; clients are disconnected and connect again"),
		func(ctx context.Context, in *struct{ Body NextLeader }) (*clusterOutput, error) {
			return s.changeCluster(ctx, "transfer", in.Body.ID, func(c *Cluster) error { return c.Transfer(ctx, in.Body.ID) })
		})
}

// changeCluster makes a change, which administrators may.
func (s *Server) changeCluster(ctx context.Context, what, id string, do func(c *Cluster) error) (*clusterOutput, error) {
	c, caller := s.options.Cluster, callerOf(ctx)
	switch {
	case !caller.Principal.May(access.Admin, ""):
		return nil, problem(http.StatusForbidden, string(service.CodeForbidden), "only administrators change the cluster")
	case c == nil:
		return nil, errNoCluster()
	}
	if err := do(c); err != nil {
		return nil, problem(http.StatusConflict, codeClusterRefused, err.Error())
	}
	s.options.Log.Info().Str("change", what).Str("node", id).Str("caller", caller.Name()).Msg("cluster changed over http")
	return &clusterOutput{c.Overview(ctx)}, nil
}

// errNoCluster is the answer of a broker of its own.
func errNoCluster() *Problem {
	return problem(http.StatusNotImplemented, string(service.CodeUnsupported), "this broker is not a node of a cluster")
}

// clusterReady answers readyz on a node whose clients another one serves.
func (s *Server) clusterReady(w http.ResponseWriter, r *http.Request) {
	if s.options.Cluster.Ready(r.Context()) {
		s.answer(w, http.StatusOK, map[string]any{"ready": true})
		return
	}
	s.answer(w, http.StatusServiceUnavailable, map[string]any{"ready": false, "phase": "waiting for a leader"})
}

// The metrics of a node of a cluster.
var (
	roleDesc      = describe("cluster_role", "1 for the role of this node: leader, follower, candidate or learner.", "role")
	termDesc      = describe("cluster_term", "Term of the cluster as this node knows it; it grows with every election.")
	appliedDesc   = describe("cluster_applied_index", "Index of the last entry of the log that this node has applied.")
	lagDesc       = describe("cluster_lag_entries", "Entries that the cluster has committed and that this node has not applied.")
	hasLeaderDesc = describe("cluster_has_leader", "1 while this node knows of a leader.")
	logDesc       = describe("cluster_log_bytes", "Size of the replicated log.")
	electionsDesc = describe("cluster_elections_won_total", "Elections that this node has won since its start.")
	relayingDesc  = describe("cluster_proxied_connections", "Connections of clients that are passed on to the leader.")
	relayedDesc   = describe("cluster_proxied_connections_total", "Connections of clients that were passed on to the leader.")
)

// clusterMetrics tells the numbers of the node.
func (s scrape) clusterMetrics(c ClusterNumbers) {
	for _, role := range []string{"leader", "follower", "candidate", "learner"} {
		s.gauge(roleDesc, truth(c.Role == role), role)
	}
	s.gauge(termDesc, float64(c.Term))
	s.gauge(appliedDesc, float64(c.Applied))
	s.gauge(lagDesc, float64(c.Lag))
	s.gauge(hasLeaderDesc, truth(c.HasLeader))
	s.gauge(logDesc, float64(c.LogBytes))
	s.counter(electionsDesc, c.Elections)
	s.gauge(relayingDesc, float64(c.Relaying))
	s.counter(relayedDesc, c.Relayed)
}

var _ prometheus.Collector = (*metrics)(nil)

// codeClusterRefused is the code of a change of the cluster that cannot be made now.
const codeClusterRefused = "cluster_refused"
