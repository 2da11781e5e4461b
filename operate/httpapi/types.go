package httpapi

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"broker/operate/service"
)

// TypeName is a type of jobs in a path.
type TypeName struct {
	Name string `path:"name" doc:"type of jobs, percent-encoded"`
}

func (s *Server) registerTypes(api huma.API) {
	register(s, api,
		operation("list-policies", http.MethodGet, "/policies", "types", "List the policies of queues and types"),
		s.listPolicies)
	register(s, api,
		operation("get-type", http.MethodGet, "/types/{name}", "types", "Show what is set for a type of jobs"),
		s.getType)
	register(s, api,
		operation("change-type", http.MethodPatch, "/types/{name}", "types", "Set the policy of a type of jobs",
			http.StatusConflict, http.StatusTooManyRequests, http.StatusGatewayTimeout), s.changeType)
}

type policyList struct {
	Policies []service.NamedPolicy `json:"policies"`
}

func (s *Server) listPolicies(ctx context.Context, _ *struct{}) (*output[policyList], error) {
	all, err := serviceOf(ctx).Policies(ctx, callerOf(ctx))
	return bodyOf(policyList{all}, err)
}

func (s *Server) getType(ctx context.Context, in *TypeName) (*output[service.Type], error) {
	return bodyOf(serviceOf(ctx).ShowType(ctx, callerOf(ctx), in.Name))
}

func (s *Server) changeType(ctx context.Context, in *struct {
	TypeName
	Body service.TypeChange
},
) (*output[service.Type], error) {
	return bodyOf(serviceOf(ctx).ChangeType(ctx, callerOf(ctx), in.Name, in.Body))
}
