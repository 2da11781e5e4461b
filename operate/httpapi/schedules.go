package httpapi

import (
	"context"
	"net/http"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"broker/operate/service"
)

type scheduleList struct {
	Schedules []service.Schedule `json:"schedules"`
}

type scheduleOutput struct {
	ETag string `header:"ETag" doc:"the schedule's revision"`
	Body service.Schedule
}

// scheduleAnswer is the response with a schedule.
func (s *Server) scheduleAnswer(v service.Schedule, err error) (*scheduleOutput, error) {
	if err != nil {
		return nil, s.problemOf(err)
	}
	return &scheduleOutput{ETag: `"` + strconv.FormatUint(v.Revision, 10) + `"`, Body: v}, nil
}

// IfRevision is the condition that a schedule is unchanged.
type IfRevision struct {
	ETag string `header:"If-Match" doc:"the schedule's revision, as in its ETag; it is changed only if it still has this revision"`

	revision uint64
}

// Resolve implements huma.Resolver.
func (m *IfRevision) Resolve(huma.Context) []error {
	if m.ETag == "" || m.ETag == "*" {
		return nil
	}
	n, err := strconv.ParseUint(strings.Trim(strings.TrimPrefix(m.ETag, "W/"), `"`), 10, 64)
	if err != nil || n == 0 {
		return []error{&huma.ErrorDetail{Message: "expected the revision of a schedule in quotes", Location: "header.If-Match", Value: m.ETag}}
	}
	m.revision = n
	return nil
}

// ScheduleName is the name of a schedule in a path.
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
	huma.Register(api, operation("get-schedule", http.MethodGet, "/schedules/{name}", "schedules", "Show a schedule", http.StatusNotFound), s.getSchedule)
	huma.Register(api, register("put-schedule", http.MethodPut, "/schedules/{name}", "Make or replace a schedule; it keeps its place unless its times change",
		http.StatusNotFound, http.StatusConflict, http.StatusPreconditionFailed), s.putSchedule)
	huma.Register(api, register("change-schedule", http.MethodPatch, "/schedules/{name}", "Pause or resume a schedule",
		http.StatusNotFound), s.changeSchedule)
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
	return s.scheduleAnswer(s.service().PutSchedule(ctx, callerOf(ctx), in.Body, true))
}

func (s *Server) getSchedule(ctx context.Context, in *ScheduleName) (*scheduleOutput, error) {
	return s.scheduleAnswer(s.service().Schedule(ctx, callerOf(ctx), in.Name))
}

func (s *Server) putSchedule(ctx context.Context, in *struct {
	ScheduleName
	IfRevision
	IfNoneMatch string `header:"If-None-Match" doc:"*: the schedule must not exist yet"`
	Body        service.ScheduleChange
},
) (*scheduleOutput, error) {
	if in.Body.Name != "" && in.Body.Name != in.Name {
		return nil, s.problemOf(&service.Error{Code: service.CodeInvalid, Field: "body.name", Detail: "a schedule keeps its name"})
	}
	in.Body.Name = in.Name
	if in.revision != 0 {
		in.Body.Revision = in.revision
	}
	return s.scheduleAnswer(s.service().PutSchedule(ctx, callerOf(ctx), in.Body, in.IfNoneMatch == "*"))
}

func (s *Server) changeSchedule(ctx context.Context, in *struct {
	ScheduleName
	Body struct {
		Paused bool `json:"paused"`
	}
},
) (*scheduleOutput, error) {
	if err := s.service().PauseSchedule(ctx, callerOf(ctx), in.Name, in.Body.Paused); err != nil {
		return nil, s.problemOf(err)
	}
	return s.scheduleAnswer(s.service().Schedule(ctx, callerOf(ctx), in.Name))
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
