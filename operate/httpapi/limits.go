package httpapi

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"broker/operate/service"
)

type limitList struct {
	Limits []service.Limit `json:"limits"`
}

func (s *Server) registerLimits(api huma.API) {
	list := operation("list-limits", http.MethodGet, "/limits", "limits",
		"List the limits of leases, and what counts against them")
	list.Description = "With queue each limit has its uses: who holds which slots. Who holds unique keys is listed by GET /jobs with holds_unique_key or unique_key."
	register(s, api, list, s.listLimits)
	register(s, api, operation("put-limit", http.MethodPut, "/limits", "limits",
		"Set a limit of a queue, or one for several queues and types",
		http.StatusConflict, http.StatusTooManyRequests, http.StatusGatewayTimeout), s.putLimit)
	register(s, api, operation("remove-limit", http.MethodDelete, "/limits", "limits", "Remove a limit",
		http.StatusNotFound, http.StatusConflict, http.StatusGatewayTimeout), s.removeLimit)
}

// limitAnswer is the response with limits.
func limitAnswer(limits []service.Limit, err error) (*output[limitList], error) {
	return bodyOf(limitList{limits}, err)
}

func (s *Server) listLimits(ctx context.Context, in *struct {
	Queue string `query:"queue" doc:"only limits of this queue, with their use"`
	Name  string `query:"name" doc:"only the shared limit of this name, with its use"`
},
) (*output[limitList], error) {
	if in.Name != "" {
		return limitAnswer(serviceOf(ctx).SharedLimits(ctx, callerOf(ctx), in.Name))
	}
	return limitAnswer(serviceOf(ctx).Limits(ctx, callerOf(ctx), in.Queue))
}

func (s *Server) putLimit(ctx context.Context, in *struct{ Body service.LimitSpec }) (*output[limitList], error) {
	return limitAnswer(serviceOf(ctx).PutLimit(ctx, callerOf(ctx), in.Body))
}

// limitName names a limit in a query.
type limitName struct {
	Queue string `query:"queue" doc:"none: the shared limit of this name"`
	Scope string `query:"scope" enum:"queue,type,key,shared" default:"queue"`
	Name  string `query:"name" doc:"the type or key; none: the limit for each one; of a shared limit: its name"`
}

func (s *Server) removeLimit(ctx context.Context, in *limitName) (*struct{}, error) {
	return nil, serviceOf(ctx).RemoveLimit(ctx, callerOf(ctx), in.Queue, in.Scope, in.Name)
}
