package console

import (
	"encoding/json"

	"broker/frontends/service"
)

// clusterNode is a node as GET /api/v1/cluster shows it.
type clusterNode struct {
	ID, Role, Address, Version string
	Applied, Lag               uint64
	LastContactS               float64 `json:"last_contact_s"`
}

type clusterData struct {
	Alone  bool
	Leader string
	Nodes  []clusterNode

	Reserve string `json:"-"` // what the loss of another node would mean
	AtRisk  bool   `json:"-"`
}

// spare is how many more voters may fail before nothing is accepted any more; negative: nothing is now. A node that does not
// answer counts as a voter, since it may be one.
func spare(nodes []clusterNode) int {
	voters, up := 0, 0
	for _, n := range nodes {
		if n.Role == "learner" {
			continue
		}
		voters++
		if n.Role != "unreachable" && n.Role != "starting" {
			up++
		}
	}
	return up - (voters/2 + 1)
}

// weighLoss says what the loss of another node would mean.
func (d *clusterData) weighLoss() {
	n := spare(d.Nodes)
	d.AtRisk = n <= 0
	switch {
	case len(d.Nodes) == 0:
	case n < 0:
		d.Reserve = "Too few nodes are reachable: nothing is accepted until more than half of the voters are."
	case n == 0:
		d.Reserve = "If one more node fails, nothing is accepted any more."
	default:
		d.Reserve = plural(n, "node") + " may fail, and clients are still served."
	}
}

func clusterPage(r *request) (*view, error) {
	if !rightsOf(r.caller, "").ReadAll {
		return nil, &service.Error{Code: service.CodeForbidden, Detail: "principal " + r.caller.Name() + " lacks the role read"}
	}
	d := &clusterData{Alone: r.console.options.Cluster == nil}
	if !d.Alone {
		text, err := json.Marshal(r.console.options.Cluster(r.Context()))
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(text, d); err != nil {
			return nil, err
		}
		d.weighLoss()
	}
	return &view{page: "cluster", title: "Cluster", nav: "cluster", data: d}, nil
}
