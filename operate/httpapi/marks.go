package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"broker/operate/service"
)

type markInput struct {
	Body struct {
		Text    string    `json:"text" minLength:"1" maxLength:"200" example:"billing 4.2"`
		Version string    `json:"version,omitempty" maxLength:"64" doc:"version of the workers' program from then on"`
		At      time.Time `json:"at,omitzero" doc:"within the last 30 days; default: now"`
	}
}

type markList struct {
	Marks []service.Mark `json:"marks"`
}

func (s *Server) registerMarks(api huma.API) {
	o := operation("add-mark", http.MethodPost, "/marks", "broker", "Mark a moment, such as a deploy",
		http.StatusGatewayTimeout)
	o.Description = "Charts and lists of errors show it, and which errors are new since then. The last 200 marks are kept."
	o.DefaultStatus = http.StatusCreated
	register(s, api, o, func(ctx context.Context, in *markInput) (*output[service.Mark], error) {
		b := &in.Body
		mark := service.Mark{Text: b.Text, Version: b.Version, At: b.At}
		return bodyOf(serviceOf(ctx).AddMark(ctx, callerOf(ctx), mark))
	})
	register(s, api, operation("list-marks", http.MethodGet, "/marks", "broker", "List marks, the latest first"),
		func(ctx context.Context, _ *struct{}) (*output[markList], error) {
			all, err := serviceOf(ctx).ListMarks(callerOf(ctx))
			return bodyOf(markList{all}, err)
		})
	register(s, api, operation("remove-mark", http.MethodDelete, "/marks/{id}", "broker", "Remove a mark",
		http.StatusNotFound, http.StatusGatewayTimeout),
		func(ctx context.Context, in *struct {
			ID string `path:"id" example:"mark-7"`
		},
		) (*struct{}, error) {
			return nil, serviceOf(ctx).RemoveMark(ctx, callerOf(ctx), in.ID)
		})
}
