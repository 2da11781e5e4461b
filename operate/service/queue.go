package service

import (
	"context"
	"time"

	"broker/access"
	"broker/core"
	"broker/core/schema"
)

// Queue is a queue with its counters.
type Queue struct {
	Name      string           `json:"name"`
	NameBytes []byte           `json:"name_base64,omitempty" doc:"the name if it is not UTF-8"`
	Paused    bool             `json:"paused"`
	PausedBy  string           `json:"paused_by,omitempty" doc:"who paused it, if the audit log still knows; only where one queue is shown"`
	PausedAt  *time.Time       `json:"paused_at,omitempty" doc:"likewise"`
	Ready     int              `json:"ready"`
	High      int              `json:"high" doc:"of the ready jobs: priority above 0"`
	Normal    int              `json:"normal"`
	Low       int              `json:"low" doc:"of the ready jobs: priority below 0"`
	Scheduled int              `json:"scheduled"`
	Leased    int              `json:"leased"`
	Retrying  int              `json:"retrying"`
	Blocked   int              `json:"blocked"`
	Done      int              `json:"done" doc:"finished jobs, kept for their outcome"`
	Dead      int              `json:"dead"`
	Workers   int              `json:"workers" doc:"registered, waiting, running, or asked within a minute"`
	LatencyS  float64          `json:"latency_s" doc:"time that the next job has been ready"`
	OldestS   float64          `json:"oldest_age_s" doc:"of the ready job that has waited longest"`
	InRate    float64          `json:"in_rate" doc:"jobs submitted per second, over the last minute"`
	OutRate   float64          `json:"out_rate" doc:"jobs done or failed per second, likewise"`
	Measured  bool             `json:"measured" doc:"the rates are known: the queue is among the 1,000 busiest"`
	Max       *QueueMax        `json:"max,omitempty"`
	Throttle  *schema.Throttle `json:"throttle,omitempty"`
	Sharing   *Sharing         `json:"sharing,omitempty" doc:"how the keys of the queue share its workers; only where one queue is shown"`
	Policy    *schema.Policy   `json:"policy,omitempty" doc:"defaults for its jobs; only where one queue is shown"`
	Redrive   *Redrive         `json:"redrive,omitempty" doc:"set over SQS; only where one queue is shown"`
	Wait      *Wait            `json:"wait,omitempty" doc:"why its next job waits; only where one queue is shown"`
	Totals    QueueTotals      `json:"totals" doc:"since the broker started"`
}

// QueueMax limits the unfinished jobs of a queue: at the limit, submissions of a priority class are refused; 0: no
// limit.
type QueueMax struct {
	High   uint32 `json:"high" maximum:"4294967295"`
	Normal uint32 `json:"normal" maximum:"4294967295"`
	Low    uint32 `json:"low" maximum:"4294967295"`
}

// Redrive is the rule that moves jobs which were leased often and are not done to another queue, in place of a further
// lease.
type Redrive struct {
	Leases uint32 `json:"leases" doc:"leases in this queue after which a job moves"`
	To     string `json:"to" doc:"the other queue"`
}

// QueueTotals counts the events of a queue.
type QueueTotals struct {
	Submitted uint64 `json:"submitted"`
	Leased    uint64 `json:"leased"`
	Done      uint64 `json:"done"`
	Failed    uint64 `json:"failed"`
}

func (s *Service) queueOf(q *core.QueueInfo) Queue {
	v := Queue{
		Paused: q.Paused, Ready: q.Ready(), High: q.High, Normal: q.Normal, Low: q.Low, Scheduled: q.Scheduled,
		Leased: q.Leased, Retrying: q.Retrying, Blocked: q.Blocked, Done: q.Done, Dead: q.Dead, Workers: q.Workers,
		OldestS: q.OldestAge.Seconds(), InRate: q.InRate, OutRate: q.OutRate, Measured: q.Measured,
	}
	v.Name, v.NameBytes = textOrBytes(q.Name)
	if q.NextEnqueuedAt != 0 {
		v.LatencyS = max(s.Now().Sub(q.NextEnqueuedAt), 0).Seconds()
	}
	if q.Max != (core.QueueMax{}) {
		v.Max = &QueueMax{q.Max.High, q.Max.Normal, q.Max.Low}
	}
	if q.Throttle != (core.Throttle{}) {
		v.Throttle = new(schema.ThrottleOf(&q.Throttle))
	}
	if q.Sharing != nil {
		v.Sharing = sharingOf(q.Sharing)
	}
	if q.Spent != nil {
		v.Redrive = &Redrive{q.Spent.Leases, text(q.Spent.To)}
	}
	for _, p := range core.Protocols {
		v.Totals.Submitted += q.Counts.Submitted[p]
		v.Totals.Leased += q.Counts.Leased[p]
		v.Totals.Done += q.Counts.Done[p]
		v.Totals.Failed += q.Counts.Failed[p]
	}
	return v
}

// Queue shows one queue.
func (s *Service) Queue(ctx context.Context, caller Caller, name string) (Queue, error) {
	if err := caller.may(access.Read, name); err != nil {
		return Queue{}, err
	}
	c := s.open(caller)
	defer c.Close()
	return s.queue(ctx, c, name)
}

// queue returns a queue with its policy. It also returns a queue that only has a policy or a sharing, and no jobs yet.
func (s *Service) queue(ctx context.Context, c *session, name string) (Queue, error) {
	policy, err := s.policy(ctx, c, core.PolicyOfQueue, name)
	if err != nil {
		return Queue{}, err
	}
	q, err := s.queueAlone(ctx, c, name)
	if IsCode(err, CodeQueueNotFound) {
		if sharing := s.sharing(c, name); policy != nil || sharing != nil {
			q, err = s.queueOf(&core.QueueInfo{Name: name, Sharing: sharing}), nil
		}
	}
	q.Policy = policy
	if err == nil {
		q.Wait, err = s.queueWait(ctx, c, name, &q)
	}
	if q.Paused {
		q.PausedBy, q.PausedAt = s.pausedBy(name)
	}
	return q, err
}

// queueAlone returns a queue without its policy.
func (s *Service) queueAlone(ctx context.Context, c *session, name string) (Queue, error) {
	r, err := c.call(ctx, &core.InspectQueue{Queue: name})
	if err != nil {
		return Queue{}, err
	}
	return s.queueOf(&r.Queues[0]), nil
}
