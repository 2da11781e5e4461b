package httpapi

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"broker/operate/service"
)

func (s *Server) registerStorage(api huma.API) {
	register(s, api, operation("get-storage", http.MethodGet, "/storage", "broker", "Show the state of the store",
		http.StatusNotImplemented), s.getStorage)
	check := operation("check-storage", http.MethodPost, "/storage/check", "broker",
		"Verify the whole store in the background",
		http.StatusTooManyRequests, http.StatusNotImplemented)
	check.Description = "Every checksum is verified and every record decoded. The answer is the operation; it fails if the store is damaged."
	check.DefaultStatus = http.StatusAccepted
	register(s, api, check, s.checkStorage)
}

func (s *Server) getStorage(ctx context.Context, _ *struct{}) (*output[*service.Storage], error) {
	return bodyOf(serviceOf(ctx).Storage(callerOf(ctx)))
}

// startedOperation is the response with an operation that has begun.
type startedOperation struct {
	Location string `header:"Location" doc:"of the operation"`
	Body     service.Operation
}

func (s *Server) checkStorage(ctx context.Context, in *Wait) (*startedOperation, error) {
	op, err := serviceOf(ctx).StartCheck(ctx, callerOf(ctx))
	if err == nil && in.span > 0 {
		op, err = serviceOf(ctx).WaitOperation(ctx, callerOf(ctx), op.ID, in.span)
	}
	return &startedOperation{apiPath + "/operations/" + op.ID, op}, err
}
