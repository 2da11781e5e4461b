package service

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"broker/access"
	"broker/core"
)

// Operation is a change that runs in the background, such as a retry of a million jobs.
type Operation struct {
	ID         string     `json:"id"`
	Action     string     `json:"action" example:"jobs.retry"`
	Target     string     `json:"target,omitempty" doc:"description of the affected objects"`
	State      string     `json:"state" enum:"pending,running,done,failed,cancelled,interrupted" doc:"pending: it has a delay and has changed nothing yet; interrupted: the broker stopped before its end, and it does not continue"`
	Matched    int        `json:"matched" doc:"number of jobs found at the start"`
	Changed    int        `json:"changed" doc:"number of changed jobs"`
	Progress   float64    `json:"progress" doc:"progress, 0 to 1"`
	Findings   []string   `json:"findings,omitempty" doc:"result of a check"`
	Skipped    int        `json:"skipped,omitempty" doc:"number of jobs that had changed, so that the action no longer applies"`
	Created    []string   `json:"created,omitempty" doc:"rerun: ids of new jobs, at most 100"`
	Error      string     `json:"error,omitempty"`
	Who        string     `json:"who"`
	StartedAt  time.Time  `json:"started_at"`
	BeginsAt   *time.Time `json:"begins_at,omitempty" doc:"end of its delay; if cancelled before, it changes nothing"`
	FinishedAt *time.Time `json:"finished_at,omitempty"`

	UndoUntil *time.Time `json:"undo_until,omitempty" doc:"until then, POST /operations/{id}/undo puts back the jobs that have not changed since; not after a restart or a change of the leader"`
	UndoneBy  string     `json:"undone_by,omitempty" doc:"the operation that has undone it"`
	Undoes    string     `json:"undoes,omitempty" doc:"the operation that it undoes"`
}

// States of an operation.
const (
	OpPending     = "pending"
	opRunning     = "running"
	opDone        = "done"
	opFailed      = "failed"
	OpCancelled   = "cancelled"
	opInterrupted = "interrupted"
)

// Operations are stored as a ring of meta entries.
const (
	keptOperations  = 100
	operationMeta   = "http/operation/"
	maxRunning      = 8
	progressEvery   = time.Second // time between two stores of the progress
	operationPrefix = "op-"
)

// operations holds the running operations and the operations that ended last.
type operations struct {
	mu   sync.Mutex   // guards the fields below
	list []*operation // oldest first
	last uint64

	running, pending *access.Pool // places of operations
	delayed          *access.Pool // jobs that delayed actions have recorded
	kept             *access.Pool // jobs that undo has recorded
}

// open makes the pools.
func (l *operations) open() {
	l.running, l.pending = access.NewPool(maxRunning), access.NewPool(maxPending)
	l.delayed, l.kept = access.NewPool(maxAllDelayed), access.NewPool(maxAllChanged)
}

// operation is an operation that is running, or that the store still has.
type operation struct {
	number uint64
	cancel context.CancelFunc // nil: it was read from the store
	done   chan struct{}      // closed at its end; nil as cancel
	holder access.Holder

	mu   sync.Mutex // guards the fields below
	view Operation
	undo *undoLog // what it has changed; nil: not recorded, or forgotten

	tooMany bool // it changes too many jobs for undo; of its goroutine
}

func (o *operation) snapshot() Operation {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.view
}

func (o *operation) update(change func(*Operation)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	change(&o.view)
}

func operationName(number uint64) string {
	return fmt.Sprintf("%s%02d", operationMeta, number%keptOperations)
}

// loadOperations reads the stored operations. Operations that were running when the broker stopped become interrupted.
func (s *Service) loadOperations() error {
	l := &s.operations
	for _, value := range s.readRing(keptOperations, operationName) {
		o := &operation{}
		if err := json.Unmarshal(value, &o.view); err != nil {
			return fmt.Errorf("read the operations: %w", err)
		}
		number, err := strconv.ParseUint(o.view.ID[len(operationPrefix):], 10, 64)
		if err != nil {
			return fmt.Errorf("read the operations: %w", err)
		}
		o.number, o.view.UndoUntil = number, nil
		l.last = max(l.last, number)
		l.list = append(l.list, o)
	}
	slices.SortFunc(l.list, func(a, b *operation) int { return cmp.Compare(a.number, b.number) })
	c := s.openUnlisted()
	defer c.Close()
	for _, o := range l.list {
		if o.view.State == opRunning || o.view.State == OpPending {
			o.view.interrupt(s.Now().Time())
			s.saveOperation(c, o)
		}
	}
	return nil
}

// saveOperation stores the progress of an operation.
func (s *Service) saveOperation(c *session, o *operation) core.Commit {
	return c.writeMeta(operationName(o.number), o.snapshot())
}

// start runs a change in the background. It returns once the operation itself is durable.
func (s *Service) start(
	ctx context.Context, caller Caller, o Operation, run func(context.Context, *operation) error,
) (Operation, error) {
	l := &s.operations
	c := s.open(caller)
	defer c.Close()
	if o.State == "" {
		o.State = opRunning
	}
	holder := caller.Holder()
	if err := l.take(o.State, holder); err != nil {
		return Operation{}, err
	}
	own, cancel := context.WithCancel(s.ctx)
	l.mu.Lock()
	l.forgetOld(s.Now().Time())
	l.takeNumber()
	o.ID, o.Who, o.StartedAt = operationPrefix+strconv.FormatUint(l.last, 10), caller.Name(), s.Now().Time()
	op := &operation{number: l.last, cancel: cancel, done: make(chan struct{}), holder: holder, view: o}
	l.list = append(l.list, op)
	l.mu.Unlock()
	if err := c.committed(ctx, s.saveOperation(c, op)); err != nil {
		cancel()
		l.places(o.State).Return(holder, 1)
		now := s.Now().Time()
		op.update(func(v *Operation) { v.State, v.Error, v.FinishedAt = opFailed, err.Error(), &now })
		return Operation{}, err
	}
	s.running.Go(func() { // ends with the operation; Close waits for it
		defer close(op.done)
		defer cancel()
		s.runOperation(own, caller, op, run)
	})
	return op.snapshot(), nil
}

// places are the places of the operations in a state, which has not ended.
func (l *operations) places(state string) *access.Pool {
	if state == OpPending {
		return l.pending
	}
	return l.running
}

// take takes a place for an operation.
func (l *operations) take(state string, h access.Holder) error {
	err := l.places(state).Take(h, 1)
	if err == nil {
		return nil
	}
	why := "too many operations are running: "
	if state == OpPending {
		why = "too many operations wait for the end of their delay: "
	}
	return &Error{Code: CodeTooMany, Detail: why + err.Error() + "; wait for one of yours or cancel it"}
}

// begin ends the delay of an operation. It then runs, also above the limit of running operations.
func (l *operations) begin(o *operation) {
	l.pending.Return(o.holder, 1)
	l.running.Restore(o.holder, 1)
	o.update(func(v *Operation) { v.State = opRunning })
}

// takeNumber sets last to the number of the next operation. Its place in the ring is free, or that of the oldest ended
// operation of the caller with the most of them: so no caller makes the operations of the others disappear.
// Operations that are pending or running keep their places: there are more places than such operations.
func (l *operations) takeNumber() {
	taken := make(map[uint64]bool, len(l.list))
	for _, op := range l.list {
		taken[op.number%keptOperations] = true
	}
	if len(taken) == keptOperations {
		victim := l.oldestOfMost()
		delete(taken, l.list[victim].number%keptOperations)
		l.forget(l.list[victim])
		l.list = slices.Delete(l.list, victim, victim+1)
	}
	for l.last++; taken[l.last%keptOperations]; {
		l.last++
	}
}

// oldestOfMost is the index of the oldest ended operation of the caller who has the most ended ones.
func (l *operations) oldestOfMost() int {
	ended := make(map[string]int)
	for _, op := range l.list {
		if v := op.snapshot(); v.FinishedAt != nil {
			ended[v.Who]++
		}
	}
	most := -1
	for i, op := range l.list {
		v := op.snapshot()
		if v.FinishedAt != nil && (most < 0 || ended[v.Who] > ended[l.list[most].snapshot().Who]) {
			most = i
		}
	}
	return most
}

// interrupt records that the broker stopped before the end of the operation.
func (o *Operation) interrupt(now time.Time) {
	if o.State == OpPending {
		o.Error = "the broker stopped before it began; nothing was changed"
	}
	o.State, o.FinishedAt = opInterrupted, &now
}

// runOperation runs an operation and records its result.
func (s *Service) runOperation(
	ctx context.Context, caller Caller, op *operation, run func(context.Context, *operation) error,
) {
	err := run(ctx, op)
	s.operations.places(op.snapshot().State).Return(op.holder, 1)
	c := s.open(caller)
	defer c.Close()
	now := s.Now().Time()
	op.update(func(v *Operation) {
		v.FinishedAt = &now
		switch {
		case err == nil:
			v.State, v.Progress = opDone, 1
		case s.ctx.Err() != nil:
			v.interrupt(now)
		case errors.Is(err, context.Canceled):
			v.State = OpCancelled
		default:
			v.State, v.Error = opFailed, err.Error()
		}
		if op.undo != nil && len(op.undo.jobs) > 0 {
			v.UndoUntil = new(now.Add(undoFor))
		}
	})
	s.saveOperation(c, op)
	v := op.snapshot()
	s.note(c, AuditEntry{Action: v.Action, Target: v.Target, Jobs: v.Changed, Detail: v.ID + " " + v.State})
}

// Operations lists the operations, newest first.
func (s *Service) Operations(caller Caller) ([]Operation, error) {
	if err := caller.mayAll(access.Read); err != nil {
		return nil, err
	}
	return s.operationsOf(func(*Operation) bool { return true }), nil
}

// UnfinishedOperations lists the operations that the caller may see and that have not ended: all, or the caller's own.
func (s *Service) UnfinishedOperations(caller Caller) []Operation {
	all := caller.mayAll(access.Read) == nil
	return s.operationsOf(func(o *Operation) bool { return o.FinishedAt == nil && (all || o.Who == caller.Name()) })
}

// operationsOf lists the operations for which wanted returns true, newest first.
func (s *Service) operationsOf(wanted func(*Operation) bool) []Operation {
	l := &s.operations
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make([]Operation, 0, len(l.list))
	for _, op := range slices.Backward(l.list) {
		if v := op.snapshot(); wanted(&v) {
			all = append(all, v)
		}
	}
	return all
}

// WaitOperation waits until an operation has ended or the wait is over, and returns it.
func (s *Service) WaitOperation(ctx context.Context, caller Caller, id string, wait time.Duration) (Operation, error) {
	op, err := s.operation(caller, access.Read, id)
	if err != nil {
		return Operation{}, err
	}
	if op.done != nil && wait > 0 {
		timeout := time.NewTimer(wait)
		defer timeout.Stop()
		select {
		case <-op.done:
		case <-timeout.C:
		case <-ctx.Done():
			return Operation{}, context.Cause(ctx)
		}
	}
	return op.snapshot(), nil
}

// CancelOperation stops an operation. Its changes so far stay.
func (s *Service) CancelOperation(caller Caller, id string) (Operation, error) {
	op, err := s.operation(caller, access.Operate, id)
	if err != nil {
		return Operation{}, err
	}
	if op.cancel != nil {
		op.cancel()
	}
	return op.snapshot(), nil
}

// operation finds an operation: the caller's own, or with the role the operation of any caller.
func (s *Service) operation(caller Caller, r access.Role, id string) (*operation, error) {
	l := &s.operations
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, op := range l.list {
		if v := op.snapshot(); v.ID == id {
			if v.Who != caller.Name() {
				if err := caller.mayAll(r); err != nil {
					return nil, err
				}
			}
			return op, nil
		}
	}
	return nil, &Error{Code: CodeOperationNotFound, Detail: "there is no operation " + id}
}
