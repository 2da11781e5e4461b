package httpapi

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"broker/operate/service"
)

func (s *Server) registerFinished(api huma.API) {
	op := operation("list-finished-jobs", http.MethodGet, "/finished-jobs", "jobs",
		"List the jobs that have ended last")
	op.Description = "The newest first. The last 1,000 are remembered while the process runs; [keep_done] in the settings keeps " +
		"finished jobs themselves."
	register(s, api, op, s.listFinished)
}

// finishedList is a page of the list.
type finishedList struct {
	Jobs []service.FinishedJob `json:"jobs"`
}

func (s *Server) listFinished(ctx context.Context, in *struct {
	Queue  string `query:"queue" doc:"only jobs of this queue"`
	Offset int    `query:"offset" minimum:"0" maximum:"1000"`
	Limit  int    `query:"limit" minimum:"1" maximum:"1000" default:"100"`
},
) (*output[finishedList], error) {
	jobs, err := serviceOf(ctx).Finished(ctx, callerOf(ctx), in.Queue, in.Offset, in.Limit)
	return bodyOf(finishedList{jobs}, err)
}
