package service

import (
	"context"
	"time"

	"broker/core"
	"broker/frontends/access"
)

// Schedule is a job that the broker submits again and again.
type Schedule struct {
	Name       string     `json:"name"`
	Cron       string     `json:"cron,omitempty" example:"0 9 * * *"`
	EveryS     float64    `json:"every_s,omitempty" doc:"interval in seconds, instead of cron"`
	Queue      string     `json:"queue,omitempty"`
	Type       string     `json:"type,omitempty"`
	Paused     bool       `json:"paused"`
	NextAt     *time.Time `json:"next_at,omitempty"`
	LastAt     *time.Time `json:"last_at,omitempty" doc:"when the last run was due"`
	Runs       uint64     `json:"runs" doc:"number of the last run"`
	FromConfig bool       `json:"from_config" doc:"it stands in the configuration, and can be changed only there"`
}

// Schedules lists the schedules.
func (s *Service) Schedules(ctx context.Context, caller Caller) ([]Schedule, error) {
	if err := caller.mayAll(access.Read); err != nil {
		return nil, err
	}
	c := s.open(caller, caller.Name())
	defer c.close()
	r, err := c.call(ctx, &core.ListSchedules{})
	if err != nil {
		return nil, err
	}
	rows := make([]Schedule, len(r.Schedules))
	for i := range r.Schedules {
		e := &r.Schedules[i]
		rows[i] = Schedule{
			Name: e.Name, Cron: e.Cron, EveryS: e.Every.Seconds(), Queue: e.Job.Queue, Type: e.Job.Type, Paused: e.Paused,
			NextAt: timeOf(e.NextAt), LastAt: timeOf(e.LastAt), Runs: e.Runs, FromConfig: e.FromConfig,
		}
	}
	return rows, nil
}
