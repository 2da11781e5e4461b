package service

import (
	"context"

	"broker/access"
	"broker/core"
)

// Job shows one job with its body and outcome, cut to a readable size.
func (s *Service) Job(ctx context.Context, caller Caller, name string) (Job, error) {
	c := s.open(caller)
	defer c.Close()
	info, err := s.inspect(ctx, c, access.Read, name, false)
	if err != nil {
		return Job{}, err
	}
	view := s.viewOf(info)
	if info.Job != nil {
		view.showBody(info.Job, maxShown)
	}
	if info.Job != nil && info.Job.Rares().RerunOf != 0 {
		if first, err := s.inspect(ctx, c, access.Read, view.RerunOf, false); err == nil && first.Job != nil {
			view.RerunOf = text(first.Job.Identity())
		}
	}
	view.Wait = s.wait(c, info)
	view.Timeline = timelineOf(info.Timeline, caller)
	if view.Failure != nil {
		view.Failure.Backtrace = info.Failure.Backtrace
	}
	if view.Outcome != nil {
		view.Outcome.cut(maxShown)
	}
	return view, nil
}

// inspect reads a job for which the caller has a role. The result is durable.
func (s *Service) inspect(
	ctx context.Context, c *session, r access.Role, name string, brief bool,
) (*core.JobInfo, error) {
	ref, err := s.ref(name)
	if err != nil {
		return nil, err
	}
	if err := c.caller.maySome(r); err != nil {
		return nil, err
	}
	reply, err := c.call(ctx, &core.Inspect{Ref: ref, Brief: brief, Timeline: !brief})
	if err != nil {
		return nil, err
	}
	if err := c.caller.mayOf(r, reply.Info.Queue, "job", refusal(core.ErrNotFound)); err != nil {
		return nil, err
	}
	if reply.Info.Job == nil {
		reply.Info.Job = reply.Job
	}
	return reply.Info, nil
}

// Body returns the complete submitted body of a job.
func (s *Service) Body(ctx context.Context, caller Caller, name string) ([]byte, error) {
	c := s.open(caller)
	defer c.Close()
	info, err := s.inspect(ctx, c, access.Read, name, false)
	if err != nil {
		return nil, err
	}
	if info.Job == nil {
		return nil, &Error{Code: CodeJobNotFound, Detail: "the body of " + name + " is gone"}
	}
	return info.Job.Body, nil
}
