package httpapi

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"broker/access"
	"broker/operate/service"
)

// clusterPath lists the nodes. Every node answers it itself, even without an open store.
const clusterPath = apiPath + "/cluster"

// NewNode is a node to add.
type NewNode struct {
	ID      string `json:"id" minLength:"1" example:"n4"`
	Address string `json:"address" minLength:"1" doc:"host:port for the other nodes" example:"10.0.0.4:7431"`
}

// NodeID is the id of a node in a path.
type NodeID struct {
	ID string `json:"id" minLength:"1" example:"n2"`
}

// NextLeader names the node that should become the leader.
type NextLeader struct {
	ID string `json:"id,omitempty" doc:"default: any node that is up to date" example:"n3"`
}

func (s *Server) registerCluster(api huma.API) {
	show := operation("get-cluster", http.MethodGet, "/cluster", "cluster", "List the nodes", http.StatusNotImplemented)
	register(s, api, show, func(ctx context.Context, _ *struct{}) (*output[service.ClusterOverview], error) {
		if err := callerOf(ctx).Require(access.Read); err != nil {
			return nil, err
		}
		if s.options.Cluster == nil {
			return nil, problem(http.StatusNotImplemented, string(service.CodeUnsupported),
				"this broker is not a node of a cluster")
		}
		return bodyOf(s.options.Cluster.Overview(ctx), nil)
	})
	change := func(action service.ClusterAction, id, summary string) huma.Operation {
		return operation(id, http.MethodPost, "/cluster/"+string(action), "cluster", summary, http.StatusNotFound,
			http.StatusConflict, http.StatusUnprocessableEntity, http.StatusNotImplemented)
	}
	register(s, api, change(service.ClusterAdd, "add-node", "Let a node join; it gets a vote once it has caught up"),
		func(ctx context.Context, in *struct{ Body NewNode }) (*output[service.ClusterOverview], error) {
			return s.changeCluster(ctx,
				service.ClusterChange{Action: service.ClusterAdd, Node: in.Body.ID, Address: in.Body.Address})
		})
	register(s, api, change(service.ClusterRemove, "remove-node", "Remove a node; a leader first hands the lead over"),
		func(ctx context.Context, in *struct{ Body NodeID }) (*output[service.ClusterOverview], error) {
			return s.changeCluster(ctx, service.ClusterChange{Action: service.ClusterRemove, Node: in.Body.ID})
		})
	register(s, api, change(service.ClusterTransfer, "transfer-leadership",
		"Hand the lead over; clients of the old leader are disconnected and connect again"),
		func(ctx context.Context, in *struct{ Body NextLeader }) (*output[service.ClusterOverview], error) {
			return s.changeCluster(ctx, service.ClusterChange{Action: service.ClusterTransfer, Node: in.Body.ID})
		})
}

// changeCluster makes a change and shows the cluster after it.
func (s *Server) changeCluster(
	ctx context.Context, change service.ClusterChange,
) (*output[service.ClusterOverview], error) {
	if err := serviceOf(ctx).ChangeCluster(ctx, callerOf(ctx), change); err != nil {
		return nil, err
	}
	return bodyOf(s.options.Cluster.Overview(ctx), nil)
}

// clusterReady answers readyz on a follower, whose clients the leader serves.
func (s *Server) clusterReady(w http.ResponseWriter, r *http.Request) {
	if s.options.Cluster.Ready(r.Context()) {
		sendJSON(w, http.StatusOK, map[string]any{"ready": true})
		return
	}
	sendJSON(w, http.StatusServiceUnavailable, map[string]any{"ready": false, "phase": "waiting for a leader"})
}

// The metrics of a node of a cluster.
var (
	roleDesc = describe("cluster_role", "1 for the role of this node: leader, follower, candidate or learner.",
		"role")
	termDesc    = describe("cluster_term", "Term of the cluster as this node knows it; it grows with every election.")
	appliedDesc = describe("cluster_applied_index", "Index of the last entry of the log that this node has applied.")
	lagDesc     = describe("cluster_lag_entries",
		"Entries that the cluster has committed and that this node has not applied.")
	hasLeaderDesc = describe("cluster_has_leader", "1 while this node knows of a leader.")
	logDesc       = describe("cluster_log_bytes", "Size of the replicated log.")
	electionsDesc = describe("cluster_elections_won_total", "Elections that this node has won since its start.")
	formatDesc    = describe("cluster_format", "Format of the entries of the log: the newest that all nodes read.")
	warmDesc      = describe("cluster_index_warm",
		"1 if the index of all jobs is in memory, so that this node serves at once as a leader.")
	indexJobsDesc = describe("cluster_index_jobs", "Jobs in the index of this node while it follows.")
	indexLagDesc  = describe("cluster_index_lag_entries",
		"Entries that this node has applied and that are not in its index yet.")
	clockDesc    = describe("cluster_clock_skew_seconds", "By how many seconds the clock of this node is ahead.")
	copiesDesc   = describe("cluster_copies_total", "Copies of the store that this node has sent to other nodes.")
	repeatedDesc = describe("cluster_repeated_copies_total",
		"Copies for nodes that had not followed for an hour after the copy before.")
	writeDesc = describe("cluster_log_write_seconds",
		"Average time of a write of the log in the last second, with the sync; 0: nothing was written.")
	diskSlowDesc = describe("cluster_disk_slow", "1 while writes of the log take 50 ms or more.")
	relayingDesc = describe("cluster_proxied_connections", "Connections of clients that are passed on to the leader.")
	relayedDesc  = describe("cluster_proxied_connections_total",
		"Connections of clients that were passed on to the leader.")
	passedDesc = describe("cluster_proxied_requests_total", "HTTP requests that were passed on to the leader.")

	linksDesc       = describe("cluster_links", "Links for operations between this node and others.")
	linkClientsDesc = describe("cluster_link_clients", "Clients of other nodes that this node serves as the leader.")
	linkBytesDesc   = describe("cluster_link_buffered_bytes", "Bytes that wait to be written to links.")
)

// clusterMetrics collects the metrics of the node.
func (s scrape) clusterMetrics(c service.ClusterNumbers) {
	for _, role := range []string{"leader", "follower", "candidate", "learner"} {
		s.gauge(roleDesc, truth(c.Role == role), role)
	}
	s.gauge(termDesc, float64(c.Term))
	s.gauge(appliedDesc, float64(c.Applied))
	s.gauge(lagDesc, float64(c.Lag))
	s.gauge(hasLeaderDesc, truth(c.HasLeader))
	s.gauge(logDesc, float64(c.LogBytes))
	s.counter(electionsDesc, c.Elections)
	s.gauge(formatDesc, float64(c.Format))
	s.gauge(warmDesc, truth(c.Warm))
	s.gauge(indexJobsDesc, float64(c.IndexJobs))
	s.gauge(indexLagDesc, float64(c.IndexLag))
	s.gauge(clockDesc, c.ClockSkew.Seconds())
	s.counter(copiesDesc, c.CopiesSent)
	s.counter(repeatedDesc, c.CopiesRepeated)
	s.gauge(writeDesc, c.WriteTime.Seconds())
	s.gauge(diskSlowDesc, truth(c.DiskSlow))
	s.gauge(relayingDesc, float64(c.Relaying))
	s.counter(relayedDesc, c.Relayed)
	s.counter(passedDesc, c.Requests)
	s.gauge(linksDesc, float64(c.Links))
	s.gauge(linkClientsDesc, float64(c.LinkClients))
	s.gauge(linkBytesDesc, float64(c.LinkBuffered))
}
