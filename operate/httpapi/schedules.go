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
func scheduleAnswer(v service.Schedule, err error) (*scheduleOutput, error) {
	return &scheduleOutput{ETag: `"` + strconv.FormatUint(v.Revision, 10) + `"`, Body: v}, err
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
		return []error{&huma.ErrorDetail{
			Message: "expected the revision of a schedule in quotes", Location: "header.If-Match", Value: m.ETag,
		}}
	}
	m.revision = n
	return nil
}

// ScheduleName is the name of a schedule in a path.
type ScheduleName struct {
	Name string `path:"name" example:"nightly"`
}

func (s *Server) registerSchedules(api huma.API) {
	change := func(id, method, path, summary string, statuses ...int) huma.Operation {
		return operation(id, method, path, "schedules", summary, append(statuses, http.StatusGatewayTimeout)...)
	}
	register(s, api, operation("list-schedules", http.MethodGet, "/schedules", "schedules", "List the schedules"),
		s.listSchedules)
	create := change("create-schedule", http.MethodPost, "/schedules", "Make a schedule", http.StatusConflict)
	create.DefaultStatus = http.StatusCreated
	register(s, api, create, s.createSchedule)
	register(s, api, operation("get-schedule", http.MethodGet, "/schedules/{name}", "schedules", "Show a schedule",
		http.StatusNotFound), s.getSchedule)
	register(s, api, change("put-schedule", http.MethodPut, "/schedules/{name}",
		"Make or replace a schedule; it keeps its place unless its times change",
		http.StatusNotFound, http.StatusConflict, http.StatusPreconditionFailed), s.putSchedule)
	register(s, api, change("change-schedule", http.MethodPatch, "/schedules/{name}", "Pause or resume a schedule",
		http.StatusNotFound), s.changeSchedule)
	register(s, api,
		change("remove-schedule", http.MethodDelete, "/schedules/{name}", "Remove a schedule; its jobs stay",
			http.StatusNotFound, http.StatusConflict), s.removeSchedule)
	register(s, api,
		change("pause-schedule", http.MethodPost, "/schedules/{name}/pause", "Pause a schedule", http.StatusNotFound),
		s.pauseSchedule(true))
	register(s, api, change("resume-schedule", http.MethodPost, "/schedules/{name}/resume", "Resume a schedule",
		http.StatusNotFound), s.pauseSchedule(false))
	register(s, api, change("run-schedule", http.MethodPost, "/schedules/{name}/run", "Submit a job of a schedule now",
		http.StatusNotFound), s.runSchedule)
}

func (s *Server) listSchedules(ctx context.Context, _ *struct{}) (*output[scheduleList], error) {
	rows, err := serviceOf(ctx).Schedules(ctx, callerOf(ctx))
	return bodyOf(scheduleList{rows}, err)
}

func (s *Server) createSchedule(
	ctx context.Context, in *struct{ Body service.ScheduleChange },
) (*scheduleOutput, error) {
	return scheduleAnswer(serviceOf(ctx).PutSchedule(ctx, callerOf(ctx), in.Body, true))
}

func (s *Server) getSchedule(ctx context.Context, in *ScheduleName) (*scheduleOutput, error) {
	return scheduleAnswer(serviceOf(ctx).Schedule(ctx, callerOf(ctx), in.Name))
}

func (s *Server) putSchedule(ctx context.Context, in *struct {
	ScheduleName
	IfRevision
	IfNoneMatch string `header:"If-None-Match" doc:"*: the schedule must not exist yet"`
	Body        service.ScheduleChange
},
) (*scheduleOutput, error) {
	if in.Body.Name != "" && in.Body.Name != in.Name {
		return nil, &service.Error{Code: service.CodeInvalid, Field: "name", Detail: "a schedule keeps its name"}
	}
	in.Body.Name = in.Name
	if in.revision != 0 {
		in.Body.Revision = in.revision
	}
	return scheduleAnswer(serviceOf(ctx).PutSchedule(ctx, callerOf(ctx), in.Body, in.IfNoneMatch == "*"))
}

func (s *Server) changeSchedule(ctx context.Context, in *struct {
	ScheduleName
	Body struct {
		Paused bool `json:"paused"`
	}
},
) (*scheduleOutput, error) {
	if err := serviceOf(ctx).PauseSchedule(ctx, callerOf(ctx), in.Name, in.Body.Paused); err != nil {
		return nil, err
	}
	return scheduleAnswer(serviceOf(ctx).Schedule(ctx, callerOf(ctx), in.Name))
}

func (s *Server) removeSchedule(ctx context.Context, in *ScheduleName) (*struct{}, error) {
	return nil, serviceOf(ctx).RemoveSchedule(ctx, callerOf(ctx), in.Name)
}

func (s *Server) pauseSchedule(paused bool) func(context.Context, *ScheduleName) (*struct{}, error) {
	return func(ctx context.Context, in *ScheduleName) (*struct{}, error) {
		return nil, serviceOf(ctx).PauseSchedule(ctx, callerOf(ctx), in.Name, paused)
	}
}

func (s *Server) runSchedule(ctx context.Context, in *ScheduleName) (*output[scheduledRun], error) {
	job, err := serviceOf(ctx).RunSchedule(ctx, callerOf(ctx), in.Name)
	return bodyOf(scheduledRun{job}, err)
}

// scheduledRun is the job of a run.
type scheduledRun struct {
	Job string `json:"job" example:"seq:17"`
}
