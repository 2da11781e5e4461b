package service

import (
	"context"
	"errors"
	"time"

	"broker/access"
)

// Cluster shows and changes the cluster of which the broker is a node. Any goroutine may call it. It also works while
// another node leads and this node has no open store.
type Cluster interface {
	Overview(ctx context.Context) ClusterOverview
	Ready(ctx context.Context) bool
	Numbers() ClusterNumbers

	Add(id, address string) error
	Remove(ctx context.Context, id string, handsOver func() error) error // handsOver: before the leader goes
	Successor(ctx context.Context, id string) (string, error)            // the node if it can lead; empty: any
	Transfer(ctx context.Context, to string) error
}

// ClusterOverview is a node's view of the cluster.
type ClusterOverview struct {
	Leader string        `json:"leader" doc:"id of the leader; empty: none, or the asked node cannot reach it"`
	Format int           `json:"format" doc:"format of the log entries: the newest that all nodes can read; never decreases"`
	Nodes  []ClusterNode `json:"nodes"`
}

// ClusterNode is a node of a cluster.
type ClusterNode struct {
	ID          string  `json:"id" example:"n1"`
	Role        string  `json:"role" enum:"leader,candidate,follower,learner,starting,unreachable" doc:"a learner follows without a vote"`
	Address     string  `json:"address" doc:"address for the other nodes" example:"10.0.0.1:7431"`
	Applied     uint64  `json:"applied" doc:"index of the last log entry in its store"`
	Lag         uint64  `json:"lag" doc:"committed entries that it has not applied yet"`
	LastContact float64 `json:"last_contact_s" doc:"seconds since it last answered the asked node"`
	Version     string  `json:"version" doc:"of its program"`
	Format      int     `json:"format" doc:"newest format of entries that its program can read; 0: unknown"`
	Warm        bool    `json:"warm" doc:"the index of all jobs is in memory, so the node can serve as a leader at once"`
	IndexLag    uint64  `json:"index_lag" doc:"applied entries that are not in its index yet"`
	ClockSkew   float64 `json:"clock_skew_s" doc:"seconds by which its clock is ahead of the cluster's time"`
	Copies      int     `json:"copies" doc:"copies of the store sent to it, until it has followed for an hour without another one"`
	WriteTime   float64 `json:"write_s" doc:"average time of a write of its log in the last second, with the sync; 0: it wrote nothing"`
	DiskSlow    bool    `json:"disk_slow" doc:"such writes took 50 ms or more for 30 seconds in a row, and have not been faster for as long"`
	DiskLow     bool    `json:"disk_low" doc:"its disk has less free space than min_free_disk"`
	Unlinked    bool    `json:"unlinked" doc:"it follows, and has no link to the leader over which it could serve its clients"`
}

// Answers reports whether the node takes part in the cluster now. Of one that does not, nobody knows how its index,
// clock and disk are.
func (n *ClusterNode) Answers() bool { return n.Role != "unreachable" && n.Role != "starting" }

// Problems are what people should look after on a node that answers.
func (n *ClusterNode) Problems() (all []string) {
	for _, p := range []struct {
		has  bool
		text string
	}{
		{n.DiskLow, "disk nearly full"},
		{n.DiskSlow, "slow disk"},
		{n.Unlinked, "no link to the leader"},
	} {
		if p.has && n.Answers() {
			all = append(all, p.text)
		}
	}
	return all
}

// ClusterNumbers are the numbers of the node for metrics.
type ClusterNumbers struct {
	Role               string // empty: not a member yet
	Serving, HasLeader bool   // Serving: clients are served through this node
	Term               uint64
	Applied            uint64
	Lag                uint64 // entries that the cluster has committed and this node has not applied
	LogBytes           uint64
	Format             int           // current format of entries
	Warm               bool          // as in ClusterNode
	IndexJobs          int           // jobs in the index of a follower
	IndexLag           uint64        // as in ClusterNode
	ClockSkew          time.Duration // as in ClusterNode
	CopiesSent         uint64        // copies of the store that this node has sent
	CopiesRepeated     uint64        // of these, for nodes that had not followed for an hour after the one before
	WriteTime          time.Duration // as in ClusterNode
	DiskSlow           bool          // as in ClusterNode
	DiskLow            bool
	Elections          uint64 // won
	Relayed            uint64 // connections passed on to the leader
	Relaying           int64  // such connections now
	Requests           uint64 // of HTTP, passed on to the leader
	Links              int    // to the leader, or on the leader to the nodes that follow
	LinkClients        int    // on the leader: clients of other nodes
	LinkBuffered       int64  // bytes that wait to be written to links

	Connections map[string]Connections // on a node that follows: to the front-ends that it serves itself
}

// ClusterAction is a change of a cluster.
type ClusterAction string

// Changes of a cluster.
const (
	ClusterAdd      ClusterAction = "add"
	ClusterRemove   ClusterAction = "remove"
	ClusterTransfer ClusterAction = "transfer" // of the leadership
)

// ClusterChange is a change of a cluster and the affected node.
type ClusterChange struct {
	Action  ClusterAction
	Node    string
	Address string // of an added node
}

// ChangeCluster makes a change. Only administrators may do that.
func (s *Service) ChangeCluster(ctx context.Context, caller Caller, change ClusterChange) error {
	switch {
	case !caller.Current().May(access.Admin, ""):
		return &Error{Code: CodeForbidden, Detail: "only administrators change the cluster"}
	case s.o.Cluster == nil:
		return &Error{Code: CodeUnsupported, Detail: "this broker is not a node of a cluster"}
	}
	var err error
	switch change.Action {
	case ClusterAdd:
		err = s.o.Cluster.Add(change.Node, change.Address)
	case ClusterRemove:
		noted := false // the leader has no open store after it was removed
		err = s.o.Cluster.Remove(ctx, change.Node, func() error {
			noted = true
			return s.noteClusterChange(ctx, caller, change)
		})
		if noted && err == nil {
			return nil
		}
	case ClusterTransfer:
		return s.transferLead(ctx, caller, change)
	default:
		return invalid("action", "the action must be add, remove or transfer")
	}
	if err != nil {
		return clusterRefused(err)
	}
	return s.noteClusterChange(ctx, caller, change)
}

// clusterRefused is the error for a change that is impossible now, unless it has a code already.
func clusterRefused(err error) error {
	if known := (*Error)(nil); errors.As(err, &known) {
		return err
	}
	return &Error{Code: CodeClusterRefused, Detail: err.Error()}
}

// transferLead makes another node the leader. It writes the audit entry first, because this node has no open store
// afterwards.
func (s *Service) transferLead(ctx context.Context, caller Caller, change ClusterChange) (err error) {
	if change.Node, err = s.o.Cluster.Successor(ctx, change.Node); err != nil {
		return clusterRefused(err)
	}
	if err := s.noteClusterChange(ctx, caller, change); err != nil {
		return err
	}
	if err := s.o.Cluster.Transfer(ctx, change.Node); err != nil {
		return clusterRefused(err)
	}
	return nil
}

// noteClusterChange adds a change to the audit log and waits until the entry is durable.
func (s *Service) noteClusterChange(ctx context.Context, caller Caller, change ClusterChange) error {
	c := s.open(caller)
	defer c.Close()
	return c.committed(ctx, s.note(c, AuditEntry{
		Action: "cluster." + string(change.Action), Target: change.Node, Detail: change.Address,
	}))
}
