package service

import (
	"context"
	"iter"

	"broker/core"
	"broker/frontends/access"
)

// bulkPage is how many jobs one step of a bulk action changes, in one commit; bulkBytes bounds their bodies, where the broker has to
// read them.
const (
	bulkPage  = 500
	bulkBytes = 32 << 20
)

// jobMark is a job as it was when an action was asked for, or found it.
type jobMark struct {
	seq    uint64
	epoch  uint32
	state  core.State
	queue  string
	bytes  int  // of its body
	anyhow bool // the action is about the job even if it has changed since
}

func markOf(info *core.JobInfo) jobMark {
	return jobMark{seq: info.Seq, epoch: info.Epoch, state: info.State, queue: info.Queue, bytes: info.BodyBytes}
}

// condition is what must still hold of the job. In another queue the caller may lack the right.
func (m *jobMark) condition() core.Condition {
	if m.anyhow {
		return core.Condition{Queue: m.queue}
	}
	return core.Condition{Queue: m.queue, Epoch: m.epoch, HasEpoch: true, States: []core.State{m.state}}
}

// applyTo carries an action out, page by page.
func (s *Service) applyTo(ctx context.Context, c *client, caller Caller, op *operation, a Action, marks []jobMark) error {
	for page := range a.pages(marks) {
		if err := a.stillMay(caller, page); err != nil {
			return err
		}
		ops := make([]core.Op, len(page))
		for i := range page {
			ops[i] = a.op(core.Ref{Seq: page[i].seq}, page[i].condition())
		}
		if err := s.applyPage(ctx, c, op, ops); err != nil {
			return err
		}
	}
	return nil
}

// pages are the jobs that are changed in one commit each.
func (a *Action) pages(marks []jobMark) iter.Seq[[]jobMark] {
	bodies := a.Action == ActionMove || a.Action == ActionPriority || a.Action == ActionRerun
	return func(yield func([]jobMark) bool) {
		for len(marks) > 0 {
			n, bytes := 0, 0
			for n < min(len(marks), bulkPage) && (n == 0 || !bodies || bytes+marks[n].bytes <= bulkBytes) {
				bytes += marks[n].bytes
				n++
			}
			if !yield(marks[:n]) {
				return
			}
			marks = marks[n:]
		}
	}
}

// stillMay checks before each page of an action that the caller still has its rights, because a reload may have removed them.
func (a *Action) stillMay(caller Caller, page []jobMark) error {
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
