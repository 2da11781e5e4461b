package httpapi

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"broker/frontends/service"
)

func (s *Server) registerBroker(api huma.API) {
	huma.Register(api, operation("list-audit", http.MethodGet, "/audit", "broker", "List who changed what, newest first"), s.listAudit)
}

type auditList struct {
	Entries []service.AuditEntry `json:"entries"`
}

func (s *Server) listAudit(ctx context.Context, in *struct {
	Before uint64 `query:"before" doc:"only entries with a smaller number"`
	Limit  int    `query:"limit" minimum:"1" maximum:"1000" default:"100"`
},
) (*struct{ Body auditList }, error) {
	entries, err := s.service().Audit(callerOf(ctx), in.Before, in.Limit)
	if err != nil {
		return nil, s.problemOf(err)
	}
	return &struct{ Body auditList }{auditList{entries}}, nil
}
