package httpapi

import (
	"context"
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"broker/operate/service"
)

type actionInput struct {
	Wait
	Body struct {
		Action   string     `json:"action" enum:"retry,kill,cancel,delete,move,priority,rerun" doc:"retry: make ready; kill: move to the dead set; cancel: remove if not finished; delete: remove in any state; move: to another queue; priority: set the priority; rerun: submit a copy of an ended job that is kept"`
		IDs      []string   `json:"ids,omitempty" maxItems:"10000" doc:"names of the jobs; in place of filter"`
		Filter   *jobFilter `json:"filter,omitempty" doc:"the jobs; an empty filter means every job"`
		Queue    string     `json:"queue,omitempty" doc:"for move: the new queue"`
		Priority *int64     `json:"priority,omitempty" minimum:"-4294967296" maximum:"4294967295" doc:"for priority: the new priority"`
		Running  string     `json:"running,omitempty" enum:"signal" doc:"for cancel: ask the workers of running jobs to stop; such a job ends as cancelled when the worker fails it or its lease ends, but a completion still counts"`
		DelayS   float64    `json:"delay_s,omitempty" minimum:"0" maximum:"3600" doc:"start after this many seconds, with the jobs that match now and have not changed until then; if cancelled before, the operation changes nothing"`
		DryRun   bool       `json:"dry_run,omitempty" doc:"change nothing; the answer contains the number of matching jobs and ten examples"`
	}
}

type actionOutput struct {
	Status   int
	Location string `header:"Location" doc:"of the operation"`
	Body     any
}

func (s *Server) registerActions(api huma.API) {
	schema := func(t reflect.Type) map[string]*huma.MediaType {
		return map[string]*huma.MediaType{"application/json": {Schema: api.OpenAPI().Components.Schemas.Schema(t, true,
			"")}}
	}
	o := operation("act-on-jobs", http.MethodPost, "/job-actions", "jobs", "Change many jobs",
		http.StatusNotFound, http.StatusTooManyRequests, http.StatusGatewayTimeout)
	o.Description = "The change runs in the background, in steps that are one commit each; the answer is the operation, which says how " +
		"far it is and can be cancelled. Jobs that change meanwhile so that the action does not apply are skipped. With wait the answer " +
		"comes once the operation has ended or the time is over."
	o.MaxBodyBytes = 4 << 20
	o.DefaultStatus = http.StatusAccepted
	o.Responses = map[string]*huma.Response{
		"200": {
			Description: "What would be changed, with dry_run", Content: schema(reflect.TypeFor[service.Preview]()),
		},
		"202": {Description: "The operation", Content: schema(reflect.TypeFor[service.Operation]())},
	}
	register(s, api, o, s.actOnJobs)
	register(s, api, operation("list-operations", http.MethodGet, "/operations", "jobs",
		"List changes that run in the background, newest first"), s.listOperations)
	register(s, api, operation("get-operation", http.MethodGet, "/operations/{id}", "jobs",
		"Show how far an operation is", http.StatusNotFound), s.getOperation)
	register(s, api, operation("cancel-operation", http.MethodDelete, "/operations/{id}", "jobs",
		"Stop an operation; what it has done stays done", http.StatusNotFound), s.cancelOperation)
	undo := operation("undo-operation", http.MethodPost, "/operations/{id}/undo", "jobs", "Undo an operation",
		http.StatusNotFound, http.StatusConflict, http.StatusTooManyRequests, http.StatusGatewayTimeout)
	undo.Description = "Jobs that a retry, a kill, a move or a change of the priority has changed become what they were, unless they have " +
		"changed since; running jobs that were killed become ready. The answer is the operation that does so. A pending operation is cancelled."
	register(s, api, undo, s.undoOperation)
}

func (s *Server) undoOperation(ctx context.Context, in *struct {
	OperationID
	Wait
},
) (*output[service.Operation], error) {
	op, err := serviceOf(ctx).UndoOperation(ctx, callerOf(ctx), in.ID)
	if err == nil && in.span > 0 {
		op, err = serviceOf(ctx).WaitOperation(ctx, callerOf(ctx), op.ID, in.span)
	}
	return bodyOf(op, err)
}

func (s *Server) actOnJobs(ctx context.Context, in *actionInput) (*actionOutput, error) {
	b := &in.Body
	action := service.Action{
		Action: service.JobAction(b.Action), Queue: b.Queue, Priority: b.Priority, Running: b.Running,
		Delay: seconds(b.DelayS),
	}
	selection := service.Selection{Names: b.IDs}
	if b.Filter != nil {
		var err error
		if selection.Filter, err = b.Filter.filter(serviceOf(ctx).Now().Time()); err != nil {
			return nil, service.Within("filter", err)
		}
	}
	if b.DryRun {
		p, err := serviceOf(ctx).Preview(ctx, callerOf(ctx), action, selection)
		if err != nil {
			return nil, err
		}
		return &actionOutput{Status: http.StatusOK, Body: p}, nil
	}
	op, err := serviceOf(ctx).StartAction(ctx, callerOf(ctx), action, selection)
	if err == nil && in.span > 0 {
		op, err = serviceOf(ctx).WaitOperation(ctx, callerOf(ctx), op.ID, in.span)
	}
	if err != nil {
		return nil, err
	}
	return &actionOutput{Status: http.StatusAccepted, Location: apiPath + "/operations/" + op.ID, Body: op}, nil
}

type operationList struct {
	Operations []service.Operation `json:"operations"`
}

// OperationID is the id of an operation in a path.
type OperationID struct {
	ID string `path:"id" example:"op-7"`
}

func (s *Server) listOperations(ctx context.Context, _ *struct{}) (*output[operationList], error) {
	all, err := serviceOf(ctx).Operations(callerOf(ctx))
	return bodyOf(operationList{all}, err)
}

func (s *Server) getOperation(ctx context.Context, in *struct {
	OperationID
	Wait
},
) (*output[service.Operation], error) {
	return bodyOf(serviceOf(ctx).WaitOperation(ctx, callerOf(ctx), in.ID, in.span))
}

func (s *Server) cancelOperation(ctx context.Context, in *OperationID) (*output[service.Operation], error) {
	return bodyOf(serviceOf(ctx).CancelOperation(callerOf(ctx), in.ID))
}
