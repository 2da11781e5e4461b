package service

import (
	"context"
	"slices"
	"strings"

	"broker/core"
	"broker/frontends/access"
)

// Job shows one job with its body and outcome, cut to what people can read.
func (s *Service) Job(ctx context.Context, caller Caller, name string) (Job, error) {
	c := s.open(caller, caller.Name())
	defer c.close()
	info, err := s.inspect(ctx, c, caller, access.Read, name, false)
	if err != nil {
		return Job{}, err
	}
	view := viewOf(info)
	if info.Job != nil {
		view.showBody(info.Job, maxShown)
	}
	if view.Failure != nil {
		view.Failure.Backtrace = info.Failure.Backtrace
	}
	if view.Outcome != nil {
		view.Outcome.cut(maxShown)
	}
	return view, nil
}

// inspect reads a job that the caller has a role for. What it says is durable.
func (s *Service) inspect(ctx context.Context, c *client, caller Caller, r access.Role, name string, brief bool) (*core.JobInfo, error) {
	ref, err := s.ref(name)
	if err != nil {
		return nil, err
	}
	reply, err := c.ask(&core.Inspect{Ref: ref, Brief: brief})
	if err != nil {
		return nil, err
	}
	if err := caller.may(r, reply.Info.Queue); err != nil {
		return nil, err
	}
	if err := c.committed(ctx, reply.Commit); err != nil {
		return nil, err
	}
	if reply.Info.Job == nil {
		reply.Info.Job = reply.Job
	}
	return reply.Info, nil
}

// JobAction is what can be done to one job.
type JobAction string

// The actions.
const (
	ActionRetry  JobAction = "retry"  // ready now, from scheduled, retrying, blocked or dead
	ActionKill   JobAction = "kill"   // to the dead set, from any unfinished state
	ActionCancel JobAction = "cancel" // gone, from any unfinished state; whoever waits for it is told
	ActionDelete JobAction = "delete" // gone, from any state
)

// Act does something to one job. If epoch is set, the job must still have it.
func (s *Service) Act(ctx context.Context, caller Caller, name string, action JobAction, epoch *uint32) error {
	c := s.open(caller, caller.Name())
	defer c.close()
	info, err := s.inspect(ctx, c, caller, access.Operate, name, true)
	if err != nil {
		return err
	}
	op, err := actionOp(action, core.Ref{Seq: info.Seq}, epoch)
	if err != nil {
		return err
	}
	return s.audited(ctx, c, caller, AuditEntry{Action: "job." + string(action), Target: name, Jobs: 1}, op)
}

func actionOp(action JobAction, ref core.Ref, epoch *uint32) (core.Op, error) {
	var is core.Condition
	if epoch != nil {
		is.Epoch, is.HasEpoch = *epoch, true
	}
	switch action {
	case ActionRetry:
		return &core.Enqueue{Ref: ref, If: is}, nil
	case ActionKill:
		return &core.Bury{Ref: ref, If: is}, nil
	case ActionCancel:
		is.States = unfinished
		return &core.Cancel{Ref: ref, If: is}, nil
	case ActionDelete:
		return &core.Cancel{Ref: ref, If: is}, nil
	}
	return nil, invalid("action", "action must be one of retry, kill, cancel or delete")
}

var unfinished = []core.State{core.Scheduled, core.Blocked, core.Ready, core.Leased, core.Retrying}

// ParseStates reads names of states with commas between.
func ParseStates(text string) (states []core.State, err error) {
	if text == "" {
		return nil, nil
	}
names:
	for name := range strings.SplitSeq(text, ",") {
		for _, state := range core.States {
			if state.String() == name {
				states = append(states, state)
				continue names
			}
		}
		return nil, invalid("state", "%q is not one of scheduled, blocked, ready, leased, retrying, done, dead", name)
	}
	return states, nil
}

// JobFilter chooses jobs.
type JobFilter struct {
	States []core.State
	Queue  string
}

// JobPage is the part of a list that is asked for.
type JobPage struct {
	Limit  int
	Cursor string
}

// jobCursor is where a list of jobs goes on.
type jobCursor struct {
	Core uint64 `json:"c"`
}

// Jobs lists jobs without their bodies. The cursor is empty on the last page.
func (s *Service) Jobs(ctx context.Context, caller Caller, f JobFilter, p JobPage) ([]Job, string, error) {
	var at jobCursor
	if err := decodeCursor(p.Cursor, &at); err != nil {
		return nil, "", err
	}
	if f.Queue != "" {
		if err := caller.may(access.Read, f.Queue); err != nil {
			return nil, "", err
		}
	}
	c := s.open(caller, caller.Name())
	defer c.close()
	jobs := make([]Job, 0, p.Limit)
	for len(jobs) < p.Limit {
		op := &core.ListJobs{Queue: f.Queue, Cursor: at.Core, Limit: p.Limit - len(jobs)}
		if len(f.States) == 1 {
			op.State = f.States[0]
		}
		r, err := c.call(ctx, op)
		if err != nil {
			return nil, "", err
		}
		for i := range r.Jobs {
			info := &r.Jobs[i]
			if (len(f.States) == 0 || slices.Contains(f.States, info.State)) && caller.may(access.Read, info.Queue) == nil {
				jobs = append(jobs, viewOf(info))
			}
		}
		if at.Core = r.Cursor; at.Core == 0 {
			return jobs, "", nil
		}
	}
	return jobs, encodeCursor(at), nil
}
