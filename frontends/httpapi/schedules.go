package httpapi

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"broker/frontends/service"
)

type scheduleList struct {
	Schedules []service.Schedule `json:"schedules"`
}

type scheduleOutput struct{ Body service.Schedule }

// ScheduleName is a schedule in a path.
type ScheduleName struct {
	Name string `path:"name" example:"nightly"`
}

func (s *Server) registerSchedules(api huma.API) {
	register := func(id, method, path, summary string, statuses ...int) huma.Operation {
		return operation(id, method, path, "schedules", summary, append(statuses, http.StatusGatewayTimeout)...)
	}
	huma.Register(api, operation("list-schedules", http.MethodGet, "/schedules", "schedules", "List the schedules"), s.listSchedules)
	create := register("create-schedule", http.MethodPost, "/schedules", "Make a schedule", http.StatusConflict)
	create.DefaultStatus = http.StatusCreated
	huma.Register(api, create, s.createSchedule)
	huma.Register(api, register("change-schedule", http.MethodPut, "/schedules/{name}", "Replace a schedule; it keeps its place unless its times change",
		http.StatusNotFound, http.StatusConflict), s.changeSchedule)
	remove := register("remove-schedule", http.MethodDelete, "/schedules/{name}", "Remove a schedule; its jobs stay", http.StatusNotFound, http.StatusConflict)
	remove.DefaultStatus = http.StatusNoContent
	huma.Register(api, remove, s.removeSchedule)
	pause := register("pause-schedule", http.MethodPost, "/schedules/{name}/pause", "Pause a schedule", http.StatusNotFound)
	pause.DefaultStatus = http.StatusNoContent
	huma.Register(api, pause, s.pauseSchedule(true))
	resume := register("resume-schedule", http.MethodPost, "/schedules/{name}/resume", "Resume a schedule", http.StatusNotFound)
	resume.DefaultStatus = http.StatusNoContent
	huma.Register(api, resume, s.pauseSchedule(false))
	huma.Register(api, register("run-schedule", http.MethodPost, "/schedules/{name}/run", "Submit a job of a schedule now", http.StatusNotFound), s.runSchedule)
}

func (s *Server) listSchedules(ctx context.Context, _ *struct{}) (*struct{ Body scheduleList }, error) {
	rows, err := s.service().Schedules(ctx, callerOf(ctx))
	if err != nil {
		return nil, s.problemOf(err)
	}
	return &struct{ Body scheduleList }{scheduleList{rows}}, nil
}

func (s *Server) createSchedule(ctx context.Context, in *struct{ Body service.ScheduleChange }) (*scheduleOutput, error) {
	v, err := s.service().PutSchedule(ctx, callerOf(ctx), in.Body, true)
	if err != nil {
		return nil, s.problemOf(err)
	}
	return &scheduleOutput{v}, nil
}

func (s *Server) changeSchedule(ctx context.Context, in *struct {
	ScheduleName
	Body service.ScheduleChange
},
) (*scheduleOutput, error) {
	if in.Body.Name != "" && in.Body.Name != in.Name {
		return nil, s.problemOf(&service.Error{Code: service.CodeInvalid, Field: "body.name", Detail: "a schedule keeps its name"})
	}
	in.Body.Name = in.Name
	v, err := s.service().PutSchedule(ctx, callerOf(ctx), in.Body, false)
	if err != nil {
		return nil, s.problemOf(err)
	}
	return &scheduleOutput{v}, nil
}

func (s *Server) removeSchedule(ctx context.Context, in *ScheduleName) (*struct{}, error) {
	if err := s.service().RemoveSchedule(ctx, callerOf(ctx), in.Name); err != nil {
		return nil, s.problemOf(err)
	}
	return nil, nil //nolint:nilnil // no body
}

func (s *Server) pauseSchedule(paused bool) func(context.Context, *ScheduleName) (*struct{}, error) {
	return func(ctx context.Context, in *ScheduleName) (*struct{}, error) {
		if err := s.service().PauseSchedule(ctx, callerOf(ctx), in.Name, paused); err != nil {
			return nil, s.problemOf(err)
		}
		return nil, nil //nolint:nilnil // no body
	}
}

func (s *Server) runSchedule(ctx context.Context, in *ScheduleName) (*struct{ Body scheduledRun }, error) {
	job, err := s.service().RunSchedule(ctx, callerOf(ctx), in.Name)
	if err != nil {
		return nil, s.problemOf(err)
	}
	return &struct{ Body scheduledRun }{scheduledRun{job}}, nil
}

// scheduledRun is the job of a run.
type scheduledRun struct {
	Job string `json:"job" example:"seq:17"`
}
