package httpapi

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"

	"broker/frontends/access"
	"broker/frontends/service"
)

// Cluster is what the server asks the node of a cluster. Its functions are called from any goroutine.
type Cluster struct {
	Overview func(ctx context.Context) any // the nodes, for GET /cluster
	Ready    func(ctx context.Context) bool
	Numbers  func() ClusterNumbers

	Add      func(id, address string) error
	Remove   func(ctx context.Context, id string) error
	Transfer func(ctx context.Context, to string) error // empty: to any node
}

// ClusterNumbers is what the metrics tell of the node.
type ClusterNumbers struct {
	Role               string // empty: it is not a member yet
	Serving, HasLeader bool
	Term               uint64
	Applied            uint64
	Lag                uint64 // entries that are committed and not applied
	LogBytes           uint64
	DiskLow            bool
	Elections          uint64 // won
	Relayed            uint64 // connections that were passed on to the leader
	Relaying           int64  // that are now
}

// clusterRoutes serves what is about the cluster. Every node answers for itself, also while another one leads.
func (s *Server) clusterRoutes(mux *http.ServeMux) {
	c := s.options.Cluster
	if c == nil {
		mux.Handle("GET "+apiPath+"/cluster", s.guarded(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			problem(http.StatusNotImplemented, string(service.CodeUnsupported), "this broker is not a node of a cluster").write(w)
		})))
		return
	}
	mux.Handle("GET "+apiPath+"/cluster", s.guarded(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.answer(w, http.StatusOK, c.Overview(r.Context()))
	})))
	change := func(pattern string, do func(ctx context.Context, in *clusterChange) error) {
		mux.Handle(pattern, s.protected(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if caller := callerOf(r.Context()); !caller.Principal.May(access.Admin, "") {
				problem(http.StatusForbidden, string(service.CodeForbidden), "only administrators change the cluster").write(w)
				return
			}
			var in clusterChange
			d := json.NewDecoder(http.MaxBytesReader(w, r.Body, 64<<10))
			d.DisallowUnknownFields()
			if err := d.Decode(&in); err != nil {
				problem(http.StatusBadRequest, string(service.CodeInvalid), "body: "+err.Error()).write(w)
				return
			}
			if err := do(r.Context(), &in); err != nil {
				problem(http.StatusConflict, codeClusterRefused, err.Error()).write(w)
				return
			}
			s.options.Log.Info().Str("path", r.URL.Path).Str("node", in.ID).Str("remote", r.RemoteAddr).Msg("cluster changed over http")
			s.answer(w, http.StatusOK, c.Overview(r.Context()))
		})))
	}
	change("POST "+apiPath+"/cluster/add", func(_ context.Context, in *clusterChange) error { return c.Add(in.ID, in.Address) })
	change("POST "+apiPath+"/cluster/remove", func(ctx context.Context, in *clusterChange) error { return c.Remove(ctx, in.ID) })
	change("POST "+apiPath+"/cluster/transfer", func(ctx context.Context, in *clusterChange) error { return c.Transfer(ctx, in.ID) })
}

// clusterChange is the body of a change of the cluster.
type clusterChange struct {
	ID      string `json:"id"`
	Address string `json:"address"`
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
	lagDesc       = describe("cluster_lag_entries", "Entries that are committed and that this node has not applied.")
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
