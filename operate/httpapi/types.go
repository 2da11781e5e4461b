package httpapi

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"broker/operate/service"
)

// TypeName is the type in a path. It is exported because huma sets fields of exported types only.
type TypeName struct {
	Name string `path:"name" doc:"type of jobs, percent-encoded"`
}

type typeOutput struct{ Body service.Type }

func (s *Server) registerTypes(api huma.API) {
	huma.Register(api, operation("list-policies", http.MethodGet, "/policies", "types", "List the policies of queues and types"), s.listPolicies)
	huma.Register(api, operation("get-type", http.MethodGet, "/types/{name}", "types", "Show what is set for a type of jobs"), s.getType)
	huma.Register(api, operation("change-type", http.MethodPatch, "/types/{name}", "types", "Set the policy of a type of jobs",
		http.StatusConflict, http.StatusTooManyRequests, http.StatusGatewayTimeout), s.changeType)
}

type policyList struct {
	Policies []service.NamedPolicy `json:"policies"`
}

func (s *Server) listPolicies(ctx context.Context, _ *struct{}) (*struct{ Body policyList }, error) {
	all, err := s.service().Policies(ctx, callerOf(ctx))
	if err != nil {
		return nil, s.problemOf(err)
	}
	return &struct{ Body policyList }{policyList{all}}, nil
}

func (s *Server) typeAnswer(t service.Type, err error) (*typeOutput, error) {
	if err != nil {
		return nil, s.problemOf(err)
	}
	return &typeOutput{t}, nil
}

func (s *Server) getType(ctx context.Context, in *TypeName) (*typeOutput, error) {
	return s.typeAnswer(s.service().ShowType(ctx, callerOf(ctx), in.Name))
}

func (s *Server) changeType(ctx context.Context, in *struct {
	TypeName
	Body service.TypeChange
},
) (*typeOutput, error) {
	return s.typeAnswer(s.service().ChangeType(ctx, callerOf(ctx), in.Name, in.Body))
}
