package service

import (
	"context"
	"time"

	"broker/core"
)

// FinishedJob is an ended job.
type FinishedJob struct {
	ID         string     `json:"id,omitempty" doc:"missing if only the store has it"`
	Seq        uint64     `json:"seq"`
	Queue      string     `json:"queue"`
	QueueBytes []byte     `json:"queue_base64,omitempty" doc:"the queue's name if it is not UTF-8"`
	Type       string     `json:"type"`
	Origin     string     `json:"origin" enum:"protocol"`
	Kind       string     `json:"kind" enum:"done,failed,cancelled,expired" doc:"its end"`
	Detail     string     `json:"detail,omitempty" doc:"failed: the error class"`
	CreatedAt  *time.Time `json:"created_at,omitempty"`
	LeasedAt   *time.Time `json:"leased_at,omitempty" doc:"start of the last lease"`
	FinishedAt *time.Time `json:"finished_at"`
	Attempts   uint32     `json:"attempts"`
	Fails      uint32     `json:"fails"`
	Protocol   string     `json:"protocol,omitempty" doc:"of the worker, or of the client that removed it"`
	Worker     string     `json:"worker,omitempty"`
}

// Finished lists the last ended jobs of one queue or of all queues, the newest first.
func (s *Service) Finished(ctx context.Context, caller Caller, queue string, offset, limit int) ([]FinishedJob, error) {
	if err := caller.mayRead(queue); err != nil {
		return nil, err
	}
	c := s.open(caller)
	defer c.Close()
	r, err := c.call(ctx, &core.ListFinished{Queue: queue, Offset: offset, Limit: limit})
	if err != nil {
		return nil, err
	}
	all := make([]FinishedJob, len(r.Finished))
	for i := range r.Finished {
		j := &r.Finished[i]
		end := eventView(&j.Event)
		all[i] = FinishedJob{
			ID: text(j.ID), Seq: j.Seq, Type: end.Type, Origin: j.Origin.String(), Kind: end.Kind, Detail: end.Detail,
			CreatedAt: timeOf(j.CreatedAt), LeasedAt: timeOf(j.LeasedAt), FinishedAt: end.At,
			Attempts: j.Attempts, Fails: j.Fails, Protocol: end.Protocol, Worker: end.Worker,
		}
		all[i].Queue, all[i].QueueBytes = textOrBytes(j.Queue)
	}
	return all, nil
}
