package httpapi

import (
	"context"
	"net/http"
	"net/url"

	"github.com/danielgtaylor/huma/v2"

	"broker/operate/service"
)

type batchList struct {
	Batches []service.Batch `json:"batches"`
	Cursor  string          `json:"cursor,omitempty" doc:"cursor of the next page; none on the last page"`
}

func (s *Server) registerBatches(api huma.API) {
	register(s, api, operation("list-batches", http.MethodGet, "/batches", "batches", "List batches, newest first"),
		s.listBatches)
	register(s, api, operation("get-batch", http.MethodGet, "/batches/{id}", "batches",
		"Show a batch with its progress, its callbacks and the batches below it", http.StatusNotFound), s.getBatch)
	open := operation("open-batch", http.MethodPost, "/batches", "batches", "Open a batch",
		http.StatusNotFound, http.StatusConflict, http.StatusTooManyRequests, http.StatusGatewayTimeout)
	open.DefaultStatus = http.StatusCreated
	open.MaxBodyBytes = s.options.MaxBodyBytes
	open.Description = "Jobs whose member batch names it belong to it until it is committed. Its callbacks run after that."
	register(s, api, open, s.openBatch)
	commit := operation("commit-batch", http.MethodPost, "/batches/{id}/commit", "batches",
		"Close a batch for further jobs and let its callbacks run",
		http.StatusNotFound, http.StatusConflict, http.StatusGatewayTimeout)
	register(s, api, commit, s.commitBatch(false))
	reopen := operation("reopen-batch", http.MethodPost, "/batches/{id}/reopen", "batches",
		"Open a committed batch for further jobs",
		http.StatusNotFound, http.StatusConflict, http.StatusGatewayTimeout)
	register(s, api, reopen, s.commitBatch(true))
}

// BatchName is the id of a batch in a path.
type BatchName struct {
	ID string `path:"id" doc:"id of a batch, or its number"`
}

// openedBatch is the response with a new batch.
type openedBatch struct {
	Location string `header:"Location" doc:"of the batch"`
	Body     *service.Batch
}

func (s *Server) openBatch(ctx context.Context, in *struct{ Body service.BatchSubmission }) (*openedBatch, error) {
	b, err := serviceOf(ctx).OpenBatch(ctx, callerOf(ctx), in.Body)
	if err != nil {
		return nil, err
	}
	return &openedBatch{Location: apiPath + "/batches/" + url.PathEscape(b.ID), Body: b}, nil
}

// commitBatch makes the handlers of commit and reopen.
func (s *Server) commitBatch(reopen bool) func(context.Context, *BatchName) (*output[*service.Batch], error) {
	return func(ctx context.Context, in *BatchName) (*output[*service.Batch], error) {
		return bodyOf(serviceOf(ctx).CommitBatch(ctx, callerOf(ctx), in.ID, reopen))
	}
}

func (s *Server) listBatches(ctx context.Context, in *Page) (*output[batchList], error) {
	list, cursor, err := serviceOf(ctx).Batches(ctx, callerOf(ctx), in.Limit, in.Cursor)
	return bodyOf(batchList{list, cursor}, err)
}

func (s *Server) getBatch(ctx context.Context, in *BatchName) (*output[*service.BatchTree], error) {
	return bodyOf(serviceOf(ctx).Batch(ctx, callerOf(ctx), in.ID))
}
