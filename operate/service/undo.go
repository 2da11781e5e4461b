package service

import (
	"cmp"
	"context"
	"slices"
	"time"

	"broker/access"
	"broker/core"
)

// maxChanged is the maximum number of jobs of an action that can be undone, and maxAllChanged that of all such actions,
// each of which takes about 100 bytes of memory for undoFor.
const (
	maxChanged    = 100_000
	maxAllChanged = 4 * maxChanged
)

// undoLog is what an action has changed. It is in memory only.
type undoLog struct {
	action Action
	jobs   []changedJob
}

// changedJob is a job before an action, and its state after it.
type changedJob struct {
	seq      uint64
	epoch    uint32 // after the action
	was      core.State
	at       core.Instant // when it was ready or due, or had died
	priority int64
	bytes    int // of its body
	queue    string
	group    string // failure group
	after    string // queue after the action
}

// CanUndo reports whether an action of so many jobs can be undone.
func (a *Action) CanUndo(jobs int) bool {
	can := []JobAction{ActionRetry, ActionKill, ActionMove, ActionPriority}
	return jobs <= maxChanged && slices.Contains(can, a.Action)
}

// infosToKeep returns the jobs of a page as they are, for an action that can be undone; nil for a job that is gone.
func (a *Action) infosToKeep(c *session, page []jobVersion) []*core.JobInfo {
	if !a.CanUndo(len(page)) {
		return nil
	}
	ops := make([]core.Op, len(page))
	for i := range page {
		ops[i] = &core.Inspect{Ref: core.Ref{Seq: page[i].seq}, Brief: true}
	}
	infos := make([]*core.JobInfo, len(page))
	for i, r := range c.AskAll(ops...) {
		infos[i] = r.Info
	}
	return infos
}

// hasChanged reports whether an action has changed a job so that it can be put back. Blocked jobs that no longer wait
// for others cannot, and neither can jobs that a worker has taken meanwhile.
func (a *Action) hasChanged(before, after *core.JobInfo) bool {
	if before == nil || after == nil || after.Attempts != before.Attempts {
		return false
	}
	switch a.Action { //nolint:exhaustive // the others cannot be undone
	case ActionRetry:
		return after.State == core.Ready && before.State != core.Ready && before.State != core.Blocked
	case ActionKill:
		return after.State == core.Dead && before.State != core.Dead && before.State != core.Blocked
	case ActionMove:
		return after.Queue == a.Queue && before.Queue != a.Queue
	case ActionPriority:
		return after.Priority == *a.Priority && before.Priority != *a.Priority
	}
	return false
}

// keep records what an action has changed. An action that changes too many jobs forgets all of them: an undo of a part
// would surprise.
func (l *operations) keep(op *operation, a Action, before, after []*core.JobInfo) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var jobs []changedJob
	for i := range before {
		if b, x := before[i], after[i]; a.hasChanged(b, x) {
			jobs = append(jobs, changedJob{
				seq: b.Seq, epoch: x.Epoch, was: b.State, at: b.ReadyAt, priority: b.Priority, bytes: b.BodyBytes,
				queue: b.Queue, group: b.FailureGroup, after: x.Queue,
			})
		}
	}
	if len(jobs) == 0 {
		return
	}
	op.mu.Lock()
	if op.undo == nil {
		op.undo = &undoLog{action: a}
	}
	kept := len(op.undo.jobs)
	full := op.tooMany || kept+len(jobs) > maxChanged || op.view.Matched > maxChanged
	op.mu.Unlock()
	if full || l.kept.Take(op.holder, len(jobs)) != nil {
		l.forget(op)
		op.tooMany = true
		return
	}
	op.mu.Lock()
	op.undo.jobs = append(op.undo.jobs, jobs...)
	op.mu.Unlock()
}

// forget releases what an operation has recorded.
func (l *operations) forget(op *operation) {
	op.mu.Lock()
	defer op.mu.Unlock()
	if op.undo != nil {
		l.kept.Return(op.holder, len(op.undo.jobs))
		op.undo, op.view.UndoUntil = nil, nil
	}
}

// forgetOld forgets the records of operations that can no longer be undone.
func (l *operations) forgetOld(now time.Time) {
	for _, op := range l.list {
		if v := op.snapshot(); v.UndoUntil != nil && now.After(*v.UndoUntil) {
			l.forget(op)
		}
	}
}

// changedBy returns the numbers of the jobs that an operation has changed, in ascending order. They are known as long
// as it can be undone, and for the same time after an undo.
func (s *Service) changedBy(caller Caller, id string) ([]uint64, error) {
	op, err := s.operation(caller, access.Read, id)
	if err != nil {
		return nil, invalid("operation", "there is no operation %s", id)
	}
	op.mu.Lock()
	defer op.mu.Unlock()
	if op.undo == nil || len(op.undo.jobs) == 0 {
		return nil, invalid("operation", "the jobs that %s has changed are not known (any more)", id)
	}
	seqs := make([]uint64, len(op.undo.jobs))
	for i := range op.undo.jobs {
		seqs[i] = op.undo.jobs[i].seq
	}
	slices.Sort(seqs)
	return seqs, nil
}

// UndoOperation undoes an operation: one that is pending is cancelled, and the jobs of one that has ended become what
// they were. It returns the operation that does so; jobs that have changed since are skipped.
func (s *Service) UndoOperation(ctx context.Context, caller Caller, id string) (Operation, error) {
	op, err := s.operation(caller, access.Operate, id)
	if err != nil {
		return Operation{}, err
	}
	v, u := op.snapshot(), undoLog{}
	op.mu.Lock()
	if op.undo != nil && v.UndoUntil != nil && !s.Now().Time().After(*v.UndoUntil) {
		u = *op.undo
	}
	op.mu.Unlock()
	switch {
	case v.State == OpPending:
		return s.CancelOperation(caller, id)
	case v.UndoneBy != "":
		return v, &Error{Code: CodeNoUndo, Detail: id + " is undone already, by " + v.UndoneBy}
	case v.FinishedAt == nil:
		return v, &Error{Code: CodeNoUndo, Detail: id + " has not ended: cancel it first"}
	case len(u.jobs) == 0:
		return v, &Error{Code: CodeNoUndo, Detail: id + " cannot be undone (any more)"}
	}
	undo := Operation{Action: "jobs.undo", Target: v.Action + " " + v.Target, Matched: len(u.jobs), Undoes: id}
	undo, err = s.start(ctx, caller, undo, func(ctx context.Context, by *operation) error {
		return s.runUndo(ctx, caller, by, &u)
	})
	if err == nil {
		op.update(func(v *Operation) { v.UndoneBy = undo.ID })
		c := s.open(caller)
		defer c.Close()
		s.saveOperation(c, op)
	}
	return undo, err
}

// runUndo puts jobs back, page by page.
func (s *Service) runUndo(ctx context.Context, caller Caller, by *operation, u *undoLog) error {
	c := s.open(caller)
	defer c.Close()
	for jobs := u.jobs; len(jobs) > 0; {
		n, bytes := 0, 0
		for n < min(len(jobs), bulkPage) && (n == 0 || bytes+jobs[n].bytes <= bulkBytes) {
			bytes += jobs[n].bytes
			n++
		}
		ops, then := make([]core.Op, n), []core.Op{}
		for i := range jobs[:n] {
			j := &jobs[i]
			if err := cmp.Or(caller.may(access.Operate, j.queue), caller.may(access.Operate, j.after)); err != nil {
				return err
			}
			var next core.Op
			if ops[i], next = u.action.putBack(j, s.Now()); next != nil {
				then = append(then, next)
			}
		}
		if err := s.applyPage(ctx, c, by, ops); err != nil {
			return err
		}
		p, err := c.applyOps(then) // for jobs that could not be put back, they are refused
		if err == nil {
			err = c.committed(context.WithoutCancel(ctx), p.latest)
		}
		if err != nil {
			return err
		}
		jobs = jobs[n:]
	}
	return nil
}

// putBack is the operation that undoes an action for a job that has not changed since. then, if it is not nil, is
// applied after it: a move puts a job at the end of its queue, and takes it out of the dead set.
func (a *Action) putBack(j *changedJob, now core.Instant) (op, then core.Op) {
	ref := core.Ref{Seq: j.seq}
	is := core.Condition{Queue: j.after, Epoch: j.epoch, HasEpoch: true}
	due := core.JobChange{ReadyAt: &j.at}
	switch {
	case a.Action == ActionPriority:
		return &core.Update{Ref: ref, If: is, Set: core.JobChange{Priority: &j.priority}}, nil
	case a.Action == ActionRetry:
		is.States = []core.State{core.Ready}
		if j.was == core.Dead {
			return &core.Bury{Ref: ref, If: is, Group: j.group, DiedAt: j.at}, nil
		}
		return &core.Update{Ref: ref, If: is, Set: due}, nil
	}
	move := &core.Move{Ref: ref, If: is, Authority: core.ByAnyone, Queue: j.queue, ReadyAt: j.at}
	moved := core.Condition{Queue: j.queue, Epoch: j.epoch + 1, HasEpoch: true}
	switch j.was { //nolint:exhaustive // the others are where they were
	case core.Dead: // no worker gets it in between
		move.ReadyAt = now.Add(time.Hour)
		return move, &core.Bury{Ref: ref, If: moved, Group: j.group, DiedAt: j.at}
	case core.Ready, core.Leased:
		return move, &core.Update{Ref: ref, If: moved, Set: due}
	}
	return move, nil
}
