package service

import (
	"context"
	"fmt"
	"time"

	"broker/core"
)

// maxDelay is the longest delay of an action. MaxDelayed is the maximum number of jobs of a delayed action, and maxPending the
// maximum number of pending actions.
const (
	maxDelay   = time.Hour
	MaxDelayed = 1_000_000
	maxPending = 20
)

// roomFor refuses an operation if there are too many.
func (l *operations) roomFor(state string) error {
	n := 0
	for _, known := range l.list {
		if known.snapshot().State == state {
			n++
		}
	}
	switch {
	case state == opRunning && n >= maxRunning:
		return &Error{Code: CodeTooMany, Detail: fmt.Sprintf("%d operations are running; wait for one of them or cancel it", n)}
	case state == OpPending && n >= maxPending:
		return &Error{Code: CodeTooMany, Detail: fmt.Sprintf("%d operations wait for the end of their delay; wait for one of them or cancel it", n)}
	}
	return nil
}

// interrupt records that the broker stopped before the end of the operation.
func (o *Operation) interrupt(now time.Time) {
	if o.State == OpPending {
		o.Error = "the broker stopped before it began; nothing was changed"
	}
	o.State, o.FinishedAt = opInterrupted, &now
}

// runDelayed records the selected jobs, waits for the end of the delay, and changes the jobs that have not changed since.
func (s *Service) runDelayed(ctx context.Context, caller Caller, op *operation, a Action, chosen *selection) error {
	wait := time.NewTimer(a.Delay)
	defer wait.Stop()
	c := s.open(caller, caller.Name())
	defer c.close()
	marks, err := s.marksOf(ctx, c, chosen)
	if err != nil {
		return err
	}
	op.update(func(v *Operation) { v.Matched = len(marks) + chosen.missed })
	select {
	case <-wait.C:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	op.update(func(v *Operation) { v.State = opRunning })
	s.saveOperation(c, op)
	return s.applyTo(ctx, c, caller, op, a, marks)
}

// marksOf returns the current marks of the jobs of a selection.
func (s *Service) marksOf(ctx context.Context, c *client, chosen *selection) ([]jobMark, error) {
	if chosen.byName {
		return chosen.marks, nil
	}
	marks, newest := []jobMark{}, c.newest()
	for cursor := ""; ; {
		r, err := c.ask(&core.Find{Filter: chosen.filter, Cursor: cursor, Limit: 1000, Brief: true})
		if err != nil {
			return nil, err
		}
		for i := range r.Jobs {
			if r.Jobs[i].Seq <= newest {
				marks = append(marks, markOf(&r.Jobs[i]))
			}
		}
		if len(marks) > MaxDelayed {
			return nil, fmt.Errorf("more than %d jobs match, which is too many for a change with a delay; nothing was changed", MaxDelayed)
		}
		if cursor = r.NextCursor; cursor == "" || ctx.Err() != nil {
			return marks, context.Cause(ctx)
		}
	}
}
