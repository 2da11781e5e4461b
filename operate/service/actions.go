package service

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"broker/access"
	"broker/core"
	"broker/frontends/shared/tracecontext"
)

// JobAction is an action on jobs.
type JobAction string

// The actions.
const (
	ActionRetry    JobAction = "retry"    // ready now, from scheduled, retrying, blocked or dead
	ActionKill     JobAction = "kill"     // to the dead set, from any unfinished state
	ActionCancel   JobAction = "cancel"   // removed, from any unfinished state; waiting clients get an outcome
	ActionDelete   JobAction = "delete"   // removed, from any state
	ActionMove     JobAction = "move"     // into another queue, with the same identity
	ActionPriority JobAction = "priority" // another priority
	ActionRerun    JobAction = "rerun"    // a copy of a job that has ended and is kept
)

var jobActions = []JobAction{
	ActionRetry, ActionKill, ActionCancel, ActionDelete, ActionMove, ActionPriority, ActionRerun,
}

// Action is an action with its parameters.
type Action struct {
	Action   JobAction
	Queue    string // ActionMove
	Priority *int64 // ActionPriority
	Running  string // ActionCancel: RunningSignal, or empty

	// Delay is the time until StartAction begins to change the jobs that match now. Until then it can be cancelled.
	Delay time.Duration
}

// RunningSignal asks the worker of a running job to stop, instead of removing the job.
const RunningSignal = "signal"

// Act applies an action to one job. If epoch is set, the job must still have it.
func (s *Service) Act(ctx context.Context, caller Caller, name string, a Action, epoch *uint32) error {
	if err := a.check(caller); err != nil {
		return err
	}
	c := s.open(caller)
	defer c.Close()
	info, err := s.inspect(ctx, c, access.Operate, name, true)
	if err != nil {
		return err
	}
	is := core.Condition{Queue: info.Queue} // the queue that the caller may operate
	if epoch != nil {
		is.Epoch, is.HasEpoch = *epoch, true
	}
	op := a.op(core.Ref{Seq: info.Seq}, is)
	s.putBack(c, op, info.State, info.Fails)
	return s.audited(ctx, c, a.entry(name, info), op)
}

// entry is the entry in the audit log for an action on one job.
func (a *Action) entry(name string, info *core.JobInfo) AuditEntry {
	return AuditEntry{
		Action: "job." + string(a.Action), Target: name, Detail: a.detail(), Jobs: 1,
		TraceID: tracecontext.TraceID(info.Trace),
	}
}

// check validates the parameters of an action.
func (a *Action) check(caller Caller) error {
	switch {
	case !slices.Contains(jobActions, a.Action):
		return invalid("action", "action must be one of retry, kill, cancel, delete, move, priority or rerun")
	case a.Action == ActionMove && (a.Queue == "" || len(a.Queue) > core.MaxQueueName):
		return invalid("queue", "move needs queue, the name of the queue to move to")
	case a.Running != "" && (a.Action != ActionCancel || a.Running != RunningSignal):
		return invalid("running", "running is for cancel, and signal is its only value")
	case a.Delay < 0 || a.Delay > maxDelay:
		return invalid("delay_s", "delay_s must be between 0 and %g", maxDelay.Seconds())
	case a.Action == ActionPriority && a.Priority == nil:
		return invalid("priority", "priority needs priority, the new one")
	case a.Action == ActionMove:
		return caller.may(access.Operate, a.Queue)
	}
	return nil
}

// detail is the text in the audit log after the name of an action.
func (a *Action) detail() string {
	switch a.Action { //nolint:exhaustive // the others need nothing
	case ActionMove:
		return "to " + a.Queue
	case ActionPriority:
		return fmt.Sprint("to ", *a.Priority)
	case ActionCancel:
		return a.Running
	}
	return ""
}

// op is the operation on one job.
func (a *Action) op(ref core.Ref, is core.Condition) core.Op {
	switch a.Action {
	case ActionRetry:
		return &core.Enqueue{Ref: ref, If: is}
	case ActionKill:
		return &core.Bury{Ref: ref, If: is}
	case ActionCancel:
		is.States = unfinished
		op := &core.Cancel{Ref: ref, If: is}
		if a.Running == RunningSignal {
			op.Running = core.RunningSignal
		}
		return op
	case ActionDelete:
		return &core.Cancel{Ref: ref, If: is}
	case ActionMove:
		return &core.Move{Ref: ref, If: is, Authority: core.ByAnyone, Queue: a.Queue}
	case ActionRerun:
		return &core.Resubmit{Ref: ref, If: is}
	case ActionPriority:
		return &core.Update{Ref: ref, If: is, Set: core.JobChange{Priority: a.Priority}}
	}
	panic("check was not called")
}

var unfinished = []core.State{core.Scheduled, core.Blocked, core.Ready, core.Leased, core.Retrying}

// Selection selects the jobs of a bulk action, by name or by filter.
type Selection struct {
	Names  []string
	Filter *JobFilter

	SkipMissing bool // skip names of jobs that do not exist; otherwise they are an error
}

// Preview shows the effect of a bulk action.
type Preview struct {
	Matched  int   `json:"matched"`
	Examples []Job `json:"examples" doc:"at most ten of the jobs"`
}

// exampleJobs is the number of jobs that a preview shows.
const exampleJobs = 10

// selection is a checked Selection.
type selection struct {
	jobs   []jobVersion // of the names; of the matching jobs if the action has a delay
	missed int          // number of names without a job
	filter core.Filter
	byName bool
}

// choose checks a selection and the caller's right to change its jobs.
func (s *Service) choose(ctx context.Context, c *session, a Action, sel Selection) (*selection, error) {
	out := &selection{byName: sel.Filter == nil}
	switch {
	case sel.Filter == nil && len(sel.Names) == 0:
		return nil, invalid("filter", "either ids or filter is required; an empty filter means every job")
	case sel.Filter != nil && len(sel.Names) > 0:
		return nil, invalid("filter", "ids and filter exclude each other")
	}
	seen := make(map[uint64]bool, len(sel.Names))
	for i, name := range sel.Names {
		info, err := s.inspect(ctx, c, access.Operate, name, true)
		if sel.SkipMissing && IsCode(err, CodeJobNotFound) {
			out.missed++
			continue
		}
		if e := (*Error)(nil); errors.As(err, &e) {
			return nil, &Error{
				Code: e.Code, Field: fmt.Sprintf("ids[%d]", i), Detail: fmt.Sprintf("%s: %s", name, e.Detail),
			}
		}
		if err != nil {
			return nil, err
		}
		if seen[info.Seq] { // named twice
			continue
		}
		seen[info.Seq] = true
		out.jobs = append(out.jobs, versionOf(info))
	}
	if out.byName {
		return out, nil
	}
	var err error
	if out.filter, err = s.coreFilter(ctx, c, sel.Filter); err != nil {
		return nil, Within("filter", err)
	}
	if a.Action == ActionRetry && out.filter.Workflow != 0 && len(out.filter.States) == 0 {
		out.filter.States = []core.State{core.Scheduled, core.Retrying, core.Dead} // blocked jobs run after the others
	}
	if len(out.filter.Queues) == 0 {
		return out, c.caller.mayAll(access.Operate)
	}
	for _, queue := range out.filter.Queues {
		if err := c.caller.may(access.Operate, queue); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Preview shows the effect of a bulk action without doing it.
func (s *Service) Preview(ctx context.Context, caller Caller, a Action, sel Selection) (Preview, error) {
	c := s.open(caller)
	defer c.Close()
	if err := a.check(caller); err != nil {
		return Preview{}, err
	}
	chosen, err := s.choose(ctx, c, a, sel)
	if err != nil {
		return Preview{}, err
	}
	p := Preview{Examples: []Job{}}
	if chosen.byName {
		p.Matched = len(chosen.jobs)
		for _, job := range chosen.jobs[:min(len(chosen.jobs), exampleJobs)] {
			if info, err := s.inspect(ctx, c, access.Operate, seqName(job.seq), false); err == nil {
				p.Examples = append(p.Examples, s.viewOf(info))
			}
		}
		return p, nil
	}
	for find := (core.Find{Filter: chosen.filter, Limit: exampleJobs, WithCount: true}); ; {
		page := find
		r, err := c.call(ctx, &page)
		if err != nil {
			return p, findError(err, "")
		}
		for i := range r.Jobs {
			if len(p.Examples) < exampleJobs {
				p.Examples = append(p.Examples, s.viewOf(&r.Jobs[i]))
			}
		}
		if find.WithCount && r.CountExact {
			p.Matched = r.Count
			return p, nil
		}
		p.Matched += len(r.Jobs)
		if r.NextCursor == "" || ctx.Err() != nil {
			return p, context.Cause(ctx)
		}
		find.WithCount, find.Brief, find.Limit, find.Cursor = false, true, corePage, r.NextCursor
	}
}

// StartAction starts a bulk action, which runs in the background in steps.
func (s *Service) StartAction(ctx context.Context, caller Caller, a Action, sel Selection) (Operation, error) {
	if err := a.check(caller); err != nil {
		return Operation{}, err
	}
	c := s.open(caller)
	defer c.Close()
	chosen, err := s.choose(ctx, c, a, sel)
	if err != nil {
		return Operation{}, err
	}
	o := Operation{Action: "jobs." + string(a.Action), Target: sel.describe()}
	if d := a.detail(); d != "" {
		o.Target += " " + d
	}
	if chosen.byName {
		o.Matched, o.Skipped = len(chosen.jobs)+chosen.missed, chosen.missed
	} else {
		r, err := c.call(ctx, &core.Find{Filter: chosen.filter, Limit: 1, Brief: true, WithCount: true})
		if err != nil {
			return o, findError(err, "")
		}
		o.Matched = r.Count
	}
	if a.Delay > 0 {
		return s.startDelayed(ctx, c, o, a, chosen)
	}
	return s.start(ctx, caller, o, func(ctx context.Context, op *operation) error {
		return s.runAction(ctx, caller, op, a, chosen)
	})
}

// describe describes the selection in words.
func (sel *Selection) describe() string {
	if sel.Filter == nil {
		return strings.Join(sel.Names[:min(len(sel.Names), 10)], ", ")
	}
	if text := sel.Filter.String(); text != "" {
		return text
	}
	return "every job"
}

// runAction changes the jobs page by page. Each page is one commit.
func (s *Service) runAction(ctx context.Context, caller Caller, op *operation, a Action, chosen *selection) error {
	c := s.open(caller)
	defer c.Close()
	if chosen.byName {
		for i := range chosen.jobs {
			chosen.jobs[i].evenIfChanged = true
		}
		return s.applyTo(ctx, c, op, a, chosen.jobs)
	}
	newest := c.newest()
	for cursor := ""; ; {
		r, err := c.ask(&core.Find{Filter: chosen.filter, Cursor: cursor, Limit: bulkPage, Brief: true})
		if err != nil {
			return err
		}
		jobs := make([]jobVersion, 0, len(r.Jobs))
		for i := range r.Jobs {
			if r.Jobs[i].Seq > newest { // the search must not find the new copies of a rerun
				break
			}
			jobs = append(jobs, versionOf(&r.Jobs[i]))
		}
		if err := s.applyTo(ctx, c, op, a, jobs); err != nil {
			return err
		}
		if cursor = r.NextCursor; cursor == "" {
			return nil
		}
	}
}

// newest is the number of the newest job; zero if there is none.
func (c *session) newest() uint64 {
	r, err := c.ask(&core.Find{Desc: true, Limit: 1, Brief: true})
	if err != nil || len(r.Jobs) == 0 {
		return 0
	}
	return r.Jobs[0].Seq
}
