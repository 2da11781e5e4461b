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
	}
	return &view{page: "cluster", title: "Cluster", nav: "cluster", data: d}, nil
}
