package service

import (
	"cmp"
	"context"
	"iter"

	"broker/access"
	"broker/core"
)

// bulkPage is the number of jobs that a bulk action changes in one commit. bulkBytes limits their bodies, if the broker
// has to read them.
const (
	bulkPage  = 500
	bulkBytes = 32 << 20
)

// jobVersion is a job as it was when an action was requested, or when the action found it.
type jobVersion struct {
	seq           uint64
	epoch         uint32
	state         core.State
	queue         string
	fails         uint32
	bytes         int  // of its body
	evenIfChanged bool // apply the action even if the job has changed since
}

func versionOf(info *core.JobInfo) jobVersion {
	return jobVersion{
		seq: info.Seq, epoch: info.Epoch, state: info.State, queue: info.Queue, fails: info.Fails,
		bytes: info.BodyBytes,
	}
}

// condition is the condition of the action. It includes the queue, because the caller may lack the right for another
// one.
func (v *jobVersion) condition() core.Condition {
	if v.evenIfChanged {
		return core.Condition{Queue: v.queue}
	}
	return core.Condition{Queue: v.queue, Epoch: v.epoch, HasEpoch: true, States: []core.State{v.state}}
}

// applyTo applies an action to jobs, page by page.
func (s *Service) applyTo(ctx context.Context, c *session, op *operation, a Action, jobs []jobVersion) error {
	for page := range a.pages(jobs) {
		if err := a.stillMay(c.caller, page); err != nil {
			return err
		}
		before := a.infosToKeep(c, page)
		ops := make([]core.Op, len(page))
		for i := range page {
			ops[i] = a.op(core.Ref{Seq: page[i].seq}, page[i].condition())
			s.putBack(c, ops[i], page[i].state, page[i].fails)
		}
		err := s.applyPage(ctx, c, op, ops)
		s.operations.keep(op, a, before, a.infosToKeep(c, page)) // also of a part of the page
		if err != nil {
			return err
		}
	}
	return nil
}

// putBack adds to a kill what the job's timeline says about its last failure: the class, for a job that is neither
// retrying nor dead and therefore in no failure group, and the time of its death, if it has not been leased since.
func (s *Service) putBack(c *session, op core.Op, state core.State, fails uint32) {
	bury, kills := op.(*core.Bury)
	if !kills || fails == 0 || state == core.Retrying || state == core.Dead {
		return
	}
	r, err := c.ask(&core.Inspect{Ref: bury.Ref, Brief: true, Timeline: true})
	if err != nil || r.Info == nil || r.Info.Timeline == nil {
		return // the change decides what becomes of the job
	}
	for _, e := range r.Info.Timeline.Entries {
		switch e.Kind { //nolint:exhaustive // the others say nothing about a failure
		case core.EventFailed:
			bury.Group = cmp.Or(e.Group, e.Detail)
		case core.EventDead:
			bury.DiedAt = e.At
		case core.EventLeased:
			bury.DiedAt = 0
		}
	}
}

// pages splits the jobs into the pages that are changed in one commit each.
func (a *Action) pages(jobs []jobVersion) iter.Seq[[]jobVersion] {
	bodies := a.Action == ActionMove || a.Action == ActionPriority || a.Action == ActionRerun
	return func(yield func([]jobVersion) bool) {
		for len(jobs) > 0 {
			n, bytes := 0, 0
			for n < min(len(jobs), bulkPage) && (n == 0 || !bodies || bytes+jobs[n].bytes <= bulkBytes) {
				bytes += jobs[n].bytes
				n++
			}
			if !yield(jobs[:n]) {
				return
			}
			jobs = jobs[n:]
		}
	}
}

// stillMay checks before each page of an action that the caller still has its rights, because a reload may have removed
// them.
func (a *Action) stillMay(caller Caller, page []jobVersion) error {
	if err := a.check(caller); err != nil {
		return err
	}
	for i := range page {
		if i > 0 && page[i].queue == page[i-1].queue {
			continue
		}
		if err := caller.may(access.Operate, page[i].queue); err != nil {
			return err
		}
	}
	return nil
}
