package httpapi

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"broker/operate/service"
)

func (s *Server) registerWorkflows(api huma.API) {
	op := operation("get-workflow", http.MethodGet, "/workflows/{id}", "jobs",
		"Show a job or a batch with all that is below it", http.StatusNotFound)
	op.Description = "Below are children, members of the batch, batches below it, callbacks, and jobs that still wait for one of these. " +
		`To cancel or retry all of them, use POST /job-actions with the filter {"workflow": id}.`
	register(s, api, op, s.getWorkflow)
}

func (s *Server) getWorkflow(ctx context.Context, in *struct {
	ID string `path:"id" doc:"name of a job, or id of a batch"`
},
) (*output[*service.Workflow], error) {
	return bodyOf(serviceOf(ctx).Workflow(ctx, callerOf(ctx), in.ID))
}
