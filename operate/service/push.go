package service

import (
	"time"

	"broker/core"
)

// PushTarget is a URL to which the broker pushes the jobs of some queues.
type PushTarget struct {
	Name   string   `json:"name"`
	URL    string   `json:"url" doc:"without its query"`
	Queues []string `json:"-"`
	Worker string   `json:"-"` // worker name of its leases

	Concurrency int     `json:"concurrency" doc:"requests at the same time"`
	RatePerS    float64 `json:"rate_per_s,omitempty" doc:"requests a second"`
	InFlight    int     `json:"in_flight" doc:"requests without an answer yet"`
	Done        uint64  `json:"done" doc:"jobs that the receiver has done"`
	Failed      uint64  `json:"failed" doc:"jobs that the receiver has failed, or not done in time"`
	Deferred    uint64  `json:"deferred" doc:"answers 429 and 503 with Retry-After: the job waits that long"`
	Unreachable uint64  `json:"unreachable" doc:"requests that could not be sent; their jobs were released"`
	Late        uint64  `json:"late" doc:"answers after the end of the job or of its lease"`
	Seconds     float64 `json:"-"` // total time of the answers

	PausedUntil *time.Time `json:"paused_until,omitempty" doc:"no job is taken before this time, because the receiver cannot be reached or has asked for more time"`
	LastError   string     `json:"last_error,omitempty"`
	LastErrorAt *time.Time `json:"last_error_at,omitempty"`
}

// pushPrefix is the prefix of a target's id in a list of workers.
const pushPrefix = "push:"

// pushWorkers returns the targets as workers.
func (s *Service) pushWorkers(held map[string][]core.HeldJob) []Worker {
	if s.o.Host == nil {
		return nil
	}
	targets := s.o.Host.PushTargets()
	workers := make([]Worker, len(targets))
	for i := range targets {
		t := &targets[i]
		workers[i] = Worker{
			ID: pushPrefix + t.Name, Protocol: core.HTTP.String(), Name: t.Worker, Address: t.URL,
			Queues:  make([]string, len(t.Queues)),
			Waiting: t.PausedUntil == nil && t.InFlight < t.Concurrency, Held: heldJobs(held[t.Worker]), Push: t,
		}
		for j, q := range t.Queues {
			workers[i].Queues[j] = text(q)
		}
		delete(held, t.Worker)
	}
	return workers
}
