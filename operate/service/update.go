package service

import (
	"context"
	"encoding/json"
	"time"

	"broker/access"
	"broker/core"
	"broker/frontends/shared/tracecontext"
)

// JobUpdate changes fields of a job. Nil fields do not change.
type JobUpdate struct {
	Queue       *string         `json:"queue,omitempty" minLength:"1" maxLength:"512" doc:"move the job to this queue, with the same identity; this ends its lease and revives a dead job"`
	Type        *string         `json:"type,omitempty" maxLength:"512"`
	Tags        *[]string       `json:"tags,omitempty"`
	Priority    *int64          `json:"priority,omitempty" minimum:"-4294967296" maximum:"4294967295"`
	RunAt       *time.Time      `json:"run_at,omitempty" doc:"for a waiting job: when it becomes ready"`
	ExpiresAt   *time.Time      `json:"expires_at,omitempty"`
	LeaseForS   *float64        `json:"lease_for_s,omitempty" doc:"a worker's time to finish; a running lease does not change"`
	MaxAttempts *uint32         `json:"max_attempts,omitempty" maximum:"4294967295"`
	MaxFails    *uint32         `json:"max_fails,omitempty" maximum:"4294967295"`
	Args        json.RawMessage `json:"args,omitempty" doc:"a new body"`
	Body        *string         `json:"body,omitempty" doc:"a new body"`
	BodyBase64  *string         `json:"body_base64,omitempty" doc:"a new body"`
}

// Update changes a job and returns its new state. If epoch is set, the job must still have it.
func (s *Service) Update(ctx context.Context, caller Caller, name string, u JobUpdate, epoch *uint32) (Job, error) {
	set, err := s.changeOf(&u)
	if err != nil {
		return Job{}, err
	}
	c := s.open(caller)
	defer c.Close()
	info, err := s.inspect(ctx, c, access.Operate, name, true)
	if err != nil {
		return Job{}, err
	}
	is := core.Condition{Queue: info.Queue} // the queue that the caller may operate
	if epoch != nil {
		is.Epoch, is.HasEpoch = *epoch, true
	}
	ref := core.Ref{Seq: info.Seq}
	var op core.Op = &core.Update{Ref: ref, If: is, Set: set}
	if u.Queue != nil && *u.Queue != info.Queue {
		if err := caller.may(access.Operate, *u.Queue); err != nil {
			return Job{}, err
		}
		move := &core.Move{Ref: ref, If: is, Authority: core.ByAnyone, Queue: *u.Queue, Set: set}
		if set.ReadyAt != nil {
			move.ReadyAt, move.Set.ReadyAt = *set.ReadyAt, nil
		}
		op = move
	}
	entry := AuditEntry{Action: "job.update", Target: name, Jobs: 1, TraceID: tracecontext.TraceID(info.Trace)}
	if err := s.audited(ctx, c, entry, op); err != nil {
		return Job{}, err
	}
	return s.Job(ctx, caller, seqName(info.Seq))
}

// changeOf converts an update for the core.
func (s *Service) changeOf(u *JobUpdate) (set core.JobChange, err error) {
	set = core.JobChange{
		Priority: u.Priority, Type: u.Type, Tags: u.Tags, MaxAttempts: u.MaxAttempts, MaxFails: u.MaxFails,
	}
	if u.Tags != nil {
		if err := checkTags(*u.Tags); err != nil {
			return set, err
		}
	}
	if u.RunAt != nil {
		at := core.InstantOf(*u.RunAt)
		set.ReadyAt = &at
	}
	if u.ExpiresAt != nil {
		at := core.InstantOf(*u.ExpiresAt)
		set.ExpiresAt = &at
	}
	if u.LeaseForS != nil {
		d, err := span("lease_for_s", *u.LeaseForS)
		if err != nil {
			return set, err
		}
		set.LeaseFor = &d
	}
	if u.Args != nil || u.Body != nil || u.BodyBase64 != nil {
		var job core.Job
		if err := s.setBody(&job, &Submission{Args: u.Args, Body: u.Body, BodyBase64: u.BodyBase64}); err != nil {
			return set, err
		}
		set.Body = &core.Body{Bytes: job.Body, Format: job.Format}
	}
	return set, nil
}
