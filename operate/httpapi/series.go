package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"broker/operate/service"
)

func (s *Server) registerSeries(api huma.API) {
	register(s, api, operation("get-series", http.MethodGet, "/series", "queues",
		"Show what happened in a queue, or in all, over time: rates, counts, ages, waiting and running times"), s.getSeries)
	register(s, api, operation("get-histograms", http.MethodGet, "/histograms", "queues",
		"Show how long jobs have waited and run since the broker started"), s.getHistograms)
}

func (s *Server) getSeries(ctx context.Context, in *struct {
	Queue string    `query:"queue" doc:"default: all queues together; only the busiest 1,000 queues have their own points"`
	Step  string    `query:"step" enum:"2s,1m,1h" default:"1m" doc:"kept: half an hour in steps of 2s, a day in 1m, 30 days in 1h"`
	From  time.Time `query:"from" doc:"leave out earlier points"`
},
) (*output[*service.Series], error) {
	return bodyOf(serviceOf(ctx).Series(ctx, callerOf(ctx),
		service.SeriesQuery{Queue: in.Queue, Step: in.Step, From: in.From}))
}

func (s *Server) getHistograms(ctx context.Context, in *struct {
	Queue string `query:"queue" doc:"only jobs of this queue"`
	Type  string `query:"type" doc:"only jobs of this type, of any queue"`
},
) (*output[*service.Histograms], error) {
	return bodyOf(serviceOf(ctx).Histograms(ctx, callerOf(ctx), in.Queue, in.Type))
}
