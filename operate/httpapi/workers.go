package httpapi

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"broker/operate/service"
)

type workerList struct {
	Workers []service.Worker `json:"workers"`
	Cursor  string           `json:"cursor,omitempty" doc:"cursor of the next page; none on the last page"`
}

// notifiedWorkers is the number of notified workers.
type notifiedWorkers struct {
	Workers int `json:"workers"`
}

// workerID is the id of a worker in a path.
type workerID struct {
	ID string `path:"id" example:"worker:fleet-1"`
}

func (s *Server) registerWorkers(api huma.API) {
	register(s, api, operation("list-workers", http.MethodGet, "/workers", "workers",
		"List connections and worker processes of all protocols"), s.listWorkers)
	for _, w := range []struct{ state, summary string }{
		{"quiet", "to take no more jobs"}, {"terminate", "to exit"},
	} {
		one := operation(w.state+"-worker", http.MethodPost, "/workers/{id}/"+w.state, "workers",
			"Tell a Faktory worker "+w.summary, http.StatusNotFound)
		register(s, api, one, func(ctx context.Context, in *workerID) (*output[notifiedWorkers], error) {
			return s.setWorkerState(ctx, in.ID, w.state)
		})
		all := operation(w.state+"-workers", http.MethodPost, "/workers/"+w.state, "workers",
			"Tell all Faktory workers "+w.summary)
		register(s, api, all, func(ctx context.Context, _ *struct{}) (*output[notifiedWorkers], error) {
			return s.setWorkerState(ctx, "", w.state)
		})
	}
	register(s, api, operation("disconnect", http.MethodDelete, "/workers/{id}", "workers",
		"Close a connection, which releases the jobs that it holds", http.StatusNotFound), s.disconnect)
}

func (s *Server) listWorkers(ctx context.Context, in *struct {
	Page
	Protocol clientProtocol `query:"protocol" doc:"only workers of this protocol"`
},
) (*output[workerList], error) {
	workers, cursor, err := serviceOf(ctx).Workers(ctx, callerOf(ctx), string(in.Protocol), in.Limit, in.Cursor)
	return bodyOf(workerList{workers, cursor}, err)
}

func (s *Server) setWorkerState(ctx context.Context, id, state string) (*output[notifiedWorkers], error) {
	n, err := serviceOf(ctx).SetWorkerState(ctx, callerOf(ctx), id, state)
	return bodyOf(notifiedWorkers{n}, err)
}

func (s *Server) disconnect(ctx context.Context, in *workerID) (*struct{}, error) {
	return nil, serviceOf(ctx).Disconnect(ctx, callerOf(ctx), in.ID)
}
