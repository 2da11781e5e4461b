package service

import (
	"time"

	"broker/frontends/access"
)

// Schedule is a job that the broker submits again and again.
type Schedule struct {
	Cron       string     `json:"cron" example:"0 9 * * *"`
	Queue      string     `json:"queue,omitempty"`
	Type       string     `json:"type,omitempty"`
	NextAt     *time.Time `json:"next_at,omitempty"`
	LastAt     *time.Time `json:"last_at,omitempty" doc:"since the broker started"`
	FromConfig bool       `json:"from_config" doc:"it stands in the configuration, and can be changed only there"`
}

// Schedules lists the schedules.
func (s *Service) Schedules(caller Caller) ([]Schedule, error) {
	if err := caller.mayAll(access.Read); err != nil {
		return nil, err
	}
	rows := []Schedule{}
	if s.o.Cron == nil {
		return rows, nil
	}
	for _, e := range s.o.Cron() {
		rows = append(rows, Schedule{
			Cron: e.Schedule, Queue: e.Queue, Type: e.Type, NextAt: timeOf(e.Next), LastAt: timeOf(e.Last), FromConfig: true,
		})
	}
	return rows, nil
}
