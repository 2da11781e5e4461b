package service

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"broker/access"
	"broker/core"
	"broker/core/crontab"
)

// Schedule is a job that the broker submits repeatedly.
type Schedule struct {
	Name       string          `json:"name"`
	Cron       string          `json:"cron,omitempty" example:"0 9 * * *"`
	Zone       string          `json:"zone,omitempty" example:"Europe/Berlin" doc:"time zone of cron; none: UTC"`
	EveryS     float64         `json:"every_s,omitempty" doc:"interval in seconds, instead of cron"`
	Queue      string          `json:"queue,omitempty"`
	Type       string          `json:"type,omitempty"`
	Priority   int64           `json:"priority"`
	Tags       []string        `json:"tags,omitempty"`
	Args       json.RawMessage `json:"args,omitempty" doc:"the body of its jobs, if it is an array of arguments"`
	Body       *string         `json:"body,omitempty" doc:"the body of its jobs, if it is any other text"`
	Backlog    int             `json:"backlog,omitempty" doc:"runs are skipped while this many of its jobs wait"`
	Missed     string          `json:"missed" enum:"skip,one,all" doc:"missed runs get no job, one job for all of them, or one job each"`
	Paused     bool            `json:"paused"`
	NextAt     *time.Time      `json:"next_at,omitempty"`
	LastAt     *time.Time      `json:"last_at,omitempty" doc:"when the last run was due"`
	LastJob    string          `json:"last_job,omitempty" doc:"seq:N of the job of the last run"`
	Runs       uint64          `json:"runs" doc:"number of the last run"`
	Revision   uint64          `json:"revision" doc:"changes with each change"`
	FromConfig bool            `json:"from_config" doc:"it comes from the configuration, and can only be changed there"`
	Recent     []ScheduleRun   `json:"recent,omitempty" doc:"the last runs, up to 20, the newest last"`
}

// ScheduleRun is a run of a schedule, and the result of its job.
type ScheduleRun struct {
	DueAt     *time.Time `json:"due_at,omitempty" doc:"missing: a client requested the run"`
	At        *time.Time `json:"at" doc:"when the job was submitted or the run was skipped; later than due_at if the broker was not running, or refused the job at first"`
	Result    string     `json:"result" enum:"submitted,refused,missed,backlogged" doc:"missed, backlogged: one entry for all runs skipped at that time"`
	Job       string     `json:"job,omitempty" doc:"seq:N of its job"`
	StartedAt *time.Time `json:"started_at,omitempty" doc:"of the last lease of a job that has ended"`
	EndedAt   *time.Time `json:"ended_at,omitempty"`
	Outcome   string     `json:"outcome,omitempty" enum:"done,failed,dead,cancelled,expired" doc:"missing: the job has not ended"`
}

// runResults are the names of core.RunResult.
var runResults = []string{"submitted", "refused", "missed", "backlogged"}

// Late is the delay of a run after its due time.
func (r *ScheduleRun) Late() time.Duration {
	if r.DueAt == nil || r.Result != runResults[core.RunSubmitted] {
		return 0
	}
	return r.At.Sub(*r.DueAt)
}

func scheduleRunOf(r *core.RecentRun) ScheduleRun {
	v := ScheduleRun{
		DueAt: timeOf(r.DueAt), At: timeOf(r.At), Result: runResults[r.Result], StartedAt: timeOf(r.StartedAt),
		EndedAt: timeOf(r.EndedAt),
	}
	if r.Seq != 0 {
		v.Job = seqName(r.Seq)
	}
	if r.End != 0 {
		v.Outcome = eventKindName(r.End)
	}
	return v
}

// missedNames are the rules for missed runs.
var missedNames = []string{"skip", "one", "all"}

func scheduleOf(e *core.Schedule) Schedule {
	v := Schedule{
		Name: text(e.Name), Cron: e.Cron, Zone: e.Zone, EveryS: e.Every.Seconds(), Queue: text(e.Job.Queue),
		Type:     text(e.Job.Type),
		Priority: e.Job.Priority, Tags: e.Job.Tags, Backlog: e.Backlog, Missed: missedNames[e.Missed], Paused: e.Paused,
		NextAt: timeOf(e.NextAt), LastAt: timeOf(e.LastAt), Runs: e.Runs, Revision: e.Revision,
		FromConfig: e.FromConfig,
	}
	if e.LastSeq != 0 {
		v.LastJob = seqName(e.LastSeq)
	}
	for i := range e.Recent {
		v.Recent = append(v.Recent, scheduleRunOf(&e.Recent[i]))
	}
	var shown Job
	shown.showBody(e.Job, maxShown)
	v.Args, v.Body = shown.Args, shown.Body
	return v
}

// Schedules lists the schedules.
func (s *Service) Schedules(ctx context.Context, caller Caller) ([]Schedule, error) {
	if err := caller.mayAll(access.Read); err != nil {
		return nil, err
	}
	c := s.open(caller)
	defer c.Close()
	r, err := c.call(ctx, &core.ListSchedules{})
	if err != nil {
		return nil, err
	}
	rows := make([]Schedule, len(r.Schedules))
	for i := range r.Schedules {
		rows[i] = scheduleOf(&r.Schedules[i])
	}
	return rows, nil
}

// ScheduleChange makes or replaces a schedule.
type ScheduleChange struct {
	Name     string     `json:"name,omitempty" doc:"required to make one"`
	Cron     string     `json:"cron,omitempty" doc:"when it runs" example:"0 9 * * *"`
	Zone     string     `json:"zone,omitempty" doc:"time zone of cron; default: UTC"`
	EveryS   float64    `json:"every_s,omitempty" doc:"in place of cron: interval in seconds"`
	Backlog  int        `json:"backlog,omitempty" minimum:"0" doc:"runs are skipped while this many of its jobs wait; default: no limit"`
	Missed   string     `json:"missed,omitempty" enum:"skip,one,all" doc:"missed runs get no job (default), one job for all of them, or one job each"`
	Job      Submission `json:"job" doc:"its jobs; times are relative to the run"`
	Revision uint64     `json:"revision,omitempty" doc:"the schedule must still have this revision"`
}

// maxScheduleName is the size of a schedule's name, in bytes.
const maxScheduleName = 255

// Schedule shows one schedule.
func (s *Service) Schedule(ctx context.Context, caller Caller, name string) (Schedule, error) {
	if err := caller.maySome(access.Read); err != nil {
		return Schedule{}, err
	}
	c := s.open(caller)
	defer c.Close()
	e, err := s.schedule(ctx, c, name)
	if err != nil {
		return Schedule{}, err
	}
	if err := caller.mayOf(access.Read, e.Job.Queue, "schedule", noSchedule(name)); err != nil {
		return Schedule{}, err
	}
	return scheduleOf(e), nil
}

// PutSchedule makes a schedule. Unless create is set, it replaces a schedule with the same name.
func (s *Service) PutSchedule(
	ctx context.Context, caller Caller, change ScheduleChange, create bool,
) (Schedule, error) {
	switch {
	case change.Name == "" || len(change.Name) > maxScheduleName:
		return Schedule{}, invalid("name", "name must have 1 to %d bytes", maxScheduleName)
	case change.Cron != "" && change.EveryS != 0:
		return Schedule{}, invalid("cron", "cron and every_s exclude each other: give one of them")
	case change.Cron == "" && change.EveryS == 0:
		return Schedule{}, invalid("cron", "one of cron and every_s is required")
	case change.Job.hasTimes():
		return Schedule{}, invalid("job", "a schedule's job has spans (delay_s, expires_in_s) in place of times")
	}
	if err := caller.may(access.Operate, change.Job.Queue); err != nil {
		return Schedule{}, err
	}
	if err := crontab.CheckSteps(change.Cron); err != nil {
		return Schedule{}, invalid("cron", "%v", err)
	}
	every, err := span("every_s", change.EveryS)
	if err != nil {
		return Schedule{}, err
	}
	missed := max(0, slices.Index(missedNames, change.Missed))
	c := s.open(caller)
	defer c.Close()
	if !create {
		if err := s.mayChangeSchedule(ctx, c, change.Name); err != nil &&
			(change.Revision != 0 || !IsCode(err, CodeScheduleNotFound)) {
			return Schedule{}, err
		}
	}
	job, err := s.jobOf(ctx, c, &change.Job, 0, false)
	if err == nil {
		err = onlySubmitted(&change.Job)
	}
	if err != nil {
		return Schedule{}, Within("job", err)
	}
	op := &core.PutSchedule{Create: create, Revision: change.Revision, Schedule: core.Schedule{
		Name: change.Name, Cron: change.Cron, Zone: change.Zone, Every: every, Job: job, Backlog: change.Backlog,
		Missed: core.Missed(missed),
	}}
	action := "schedule.change"
	if create {
		action = "schedule.create"
	}
	if err := s.audited(ctx, c, AuditEntry{Action: action, Target: change.Name}, op); err != nil {
		return Schedule{}, scheduleError(err)
	}
	e, err := s.schedule(ctx, c, change.Name)
	if err != nil {
		return Schedule{}, err
	}
	return scheduleOf(e), nil
}

// NextRuns returns the next n runs of a cron expression, in its time zone (empty: UTC). Its errors are those of
// PutSchedule.
func (s *Service) NextRuns(expression, zone string, n int) (runs []time.Time, err error) {
	if err := crontab.CheckSteps(expression); err != nil {
		return nil, invalid("cron", "%v", err)
	}
	local, err := time.LoadLocation(zone)
	if err != nil {
		return nil, invalid("zone", "%q is not a time zone such as Europe/Vienna", zone)
	}
	of, err := crontab.Parse(expression, local)
	if err != nil {
		return nil, invalid("cron", "cron: %v", err)
	}
	for at := s.Now().Time(); len(runs) < n; runs = append(runs, at) {
		if at = of.Next(at); at.IsZero() {
			break
		}
	}
	return runs, nil
}

// scheduleError is the error for an invalid schedule.
func scheduleError(err error) error {
	var e *Error
	if errors.As(err, &e) {
		switch e.Code { //nolint:exhaustive // the others say enough
		case CodeState:
			return &Error{Code: CodeInvalid, Detail: e.Detail}
		case CodeDuplicate:
			return &Error{Code: CodeExists, Field: "name", Detail: "there is a schedule of that name"}
		case CodeConflict:
			return &Error{Code: CodeConflict, Detail: "the schedule has changed meanwhile"}
		}
	}
	return err
}

// schedule finds a schedule by its name.
func (s *Service) schedule(ctx context.Context, c *session, name string) (*core.Schedule, error) {
	r, err := c.call(ctx, &core.ListSchedules{Prefix: name, Limit: 1})
	if err != nil {
		return nil, err
	}
	if len(r.Schedules) == 0 || r.Schedules[0].Name != name {
		return nil, noSchedule(name)
	}
	return &r.Schedules[0], nil
}

func noSchedule(name string) error {
	return &Error{Code: CodeScheduleNotFound, Detail: "there is no schedule " + name}
}

// mayChangeSchedule checks that a schedule exists, and that the caller may operate its queue.
func (s *Service) mayChangeSchedule(ctx context.Context, c *session, name string) error {
	if err := c.caller.maySome(access.Operate); err != nil {
		return err
	}
	e, err := s.schedule(ctx, c, name)
	if err != nil {
		return err
	}
	return c.caller.mayOf(access.Operate, e.Job.Queue, "schedule", noSchedule(name))
}

// PauseSchedule pauses or resumes a schedule.
func (s *Service) PauseSchedule(ctx context.Context, caller Caller, name string, paused bool) error {
	op := &core.PauseSchedule{Name: name, Paused: paused}
	_, err := s.changeSchedule(ctx, caller, pauseAction("schedule", paused), name, op)
	return err
}

// RemoveSchedule removes a schedule; its jobs stay.
func (s *Service) RemoveSchedule(ctx context.Context, caller Caller, name string) error {
	_, err := s.changeSchedule(ctx, caller, "schedule.remove", name, &core.RemoveSchedule{Name: name})
	return err
}

// RunSchedule submits a job of a schedule now, and returns the name of the job.
func (s *Service) RunSchedule(ctx context.Context, caller Caller, name string) (job string, err error) {
	r, err := s.changeSchedule(ctx, caller, "schedule.run", name, &core.RunSchedule{Name: name})
	return seqName(r.Seq), err
}

func (s *Service) changeSchedule(
	ctx context.Context, caller Caller, action, name string, op core.Op,
) (core.Reply, error) {
	c := s.open(caller)
	defer c.Close()
	if err := s.mayChangeSchedule(ctx, c, name); err != nil {
		return core.Reply{}, err
	}
	r, err := s.changed(c, AuditEntry{Action: action, Target: name}, op)
	if err != nil {
		err = scheduleError(err)
	}
	return r, c.after(ctx, r.Commit, err)
}
