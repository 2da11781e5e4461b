package httpapi

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"broker/frontends/service"
)

type batchList struct {
	Batches []service.Batch `json:"batches"`
	Cursor  string          `json:"cursor,omitempty" doc:"where the next page begins; none on the last one"`
}

func (s *Server) registerBatches(api huma.API) {
	huma.Register(api, operation("list-batches", http.MethodGet, "/batches", "batches", "List batches, newest first"), s.listBatches)
	huma.Register(api, operation("get-batch", http.MethodGet, "/batches/{id}", "batches",
		"Show a batch with its progress, its callbacks and the batches below it", http.StatusNotFound), s.getBatch)
}

func (s *Server) listBatches(ctx context.Context, in *Page) (*struct{ Body batchList }, error) {
	list, cursor, err := s.service().Batches(ctx, callerOf(ctx), in.Limit, in.Cursor)
	if err != nil {
		return nil, s.problemOf(err)
	}
	return &struct{ Body batchList }{batchList{list, cursor}}, nil
}

func (s *Server) getBatch(ctx context.Context, in *struct {
	ID string `path:"id" doc:"id of a batch, or its number"`
},
) (*struct{ Body *service.BatchTree }, error) {
	b, err := s.service().Batch(ctx, callerOf(ctx), in.ID)
	if err != nil {
		return nil, s.problemOf(err)
	}
	return &struct{ Body *service.BatchTree }{b}, nil
}
