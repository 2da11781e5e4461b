package service

import (
	"context"
	"fmt"

	"broker/access"
	"broker/core"
)

// brokenWords are the values of on_broken.
var brokenWords = map[string]core.OnBroken{
	"": core.BrokenWaits, "wait": core.BrokenWaits, "release": core.BrokenReleases, "fail": core.BrokenFails,
	"drop": core.BrokenDrops,
}

// setLinks resolves the names of other jobs and of the batch. To make a job wait for another job, or a batch wait for
// the job, the caller also needs the right to submit to those queues.
func (s *Service) setLinks(ctx context.Context, c *session, job *core.Job, sub *Submission) error {
	onBroken, known := brokenWords[sub.OnBroken]
	switch {
	case !known:
		return invalid("on_broken", "on_broken must be wait, release, fail or drop")
	case job.Ephemeral && onBroken != core.BrokenWaits:
		return invalid("on_broken", "an ephemeral job has no on_broken")
	}
	job.OnBroken = onBroken
	if len(sub.After) > core.MaxAfter {
		return invalid("after", "after must not name more than %d jobs", core.MaxAfter)
	}
	if sub.Parent != "" {
		seq, err := s.seqOf(ctx, c, access.Produce, sub.Parent, "parent")
		if err != nil {
			return err
		}
		job.Parent = seq
	}
	for i, name := range sub.After {
		seq, err := s.seqOf(ctx, c, access.Produce, name, fmt.Sprintf("after[%d]", i))
		if err != nil {
			return err
		}
		job.After = append(job.After, seq)
	}
	if sub.Batch != "" {
		batch, err := s.parseBatchName(sub.Batch)
		if err != nil {
			return invalid("batch", "%v", err)
		}
		if err := s.mayBatch(c.caller, access.Produce, &batch); err != nil {
			return err
		}
		job.Batch = batch
	}
	return nil
}

// seqOf finds the job named in a field. The caller must have a role for its queue.
func (s *Service) seqOf(ctx context.Context, c *session, r access.Role, name, field string) (uint64, error) {
	ref, err := s.ref(name)
	if err != nil {
		return 0, invalid(field, "%v", err)
	}
	if err := c.caller.maySome(r); err != nil {
		return 0, err
	}
	reply, err := c.ask(&core.Inspect{Ref: ref, Brief: true})
	missing := invalid(field, "there is no job %q", name)
	if err == nil {
		return reply.Seq, c.caller.mayOf(r, reply.Info.Queue, "job", missing)
	}
	if IsCode(err, CodeJobNotFound) {
		err = missing
	}
	return 0, c.after(ctx, reply.Commit, err)
}
