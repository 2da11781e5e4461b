package service

import (
	"context"
	"fmt"
	"time"

	"broker/core"
)

// maxDelay is the longest delay of an action. MaxDelayed is the maximum number of jobs of a delayed action, and maxPending the
// maximum number of pending actions. All of them together have at most maxAllDelayed jobs, each of which takes 48 bytes.
const (
	maxDelay      = time.Hour
	MaxDelayed    = 1_000_000
	maxAllDelayed = 2 * MaxDelayed
	maxPending    = 20
)

// hold reserves memory for the jobs of a delayed action; release gives it back.
func (l *operations) hold(jobs int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.delayed+jobs > maxAllDelayed {
		return &Error{Code: CodeTooMany, Detail: fmt.Sprintf(
			"the pending operations have %d jobs, and together they may have %d; wait for one of them or cancel it", l.delayed, maxAllDelayed)}
	}
	l.delayed += jobs
	return nil
}

func (l *operations) release(jobs int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.delayed -= jobs
}

// startDelayed starts an action with a delay.
func (s *Service) startDelayed(ctx context.Context, c *session, o Operation, a Action, chosen *selection) (Operation, error) {
	if o.Matched > MaxDelayed {
		return o, errTooManyDelayed
	}
	held := o.Matched
	if err := s.operations.hold(held); err != nil {
		return o, err
	}
	err := s.delay(ctx, c, &o, a.Delay, chosen)
	if more := len(chosen.jobs) - held; err == nil && more > 0 { // the count was a lower bound
		if err = s.operations.hold(more); err == nil {
			held += more
		}
	}
	if err == nil {
		o, err = s.start(ctx, c.caller, o, func(ctx context.Context, op *operation) error {
			defer s.operations.release(held)
			return s.runDelayed(ctx, c.caller, op, a, chosen)
		})
	}
	if err != nil {
		s.operations.release(held)
	}
	return o, err
}

var errTooManyDelayed = invalid("body.delay_s", "a change of more than %d jobs cannot have a delay", MaxDelayed)

// runDelayed waits for the end of the delay, and changes the selected jobs that have not changed since the request.
func (s *Service) runDelayed(ctx context.Context, caller Caller, op *operation, a Action, chosen *selection) error {
	wait := time.NewTimer(a.Delay)
	defer wait.Stop()
	c := s.open(caller)
	defer c.Close()
	select {
	case <-wait.C:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	op.update(func(v *Operation) { v.State = opRunning })
	s.saveOperation(c, op)
	return s.applyTo(ctx, c, op, a, chosen.jobs)
}

// delay records in an operation when it begins, and in the selection its jobs as they are now.
func (s *Service) delay(ctx context.Context, c *session, o *Operation, d time.Duration, chosen *selection) error {
	begins := s.Now().Time().Add(d)
	o.State, o.BeginsAt = OpPending, &begins
	if chosen.byName {
		return nil
	}
	var err error
	if chosen.jobs, err = s.versionsOf(ctx, c, chosen.filter); err != nil {
		return err
	}
	if o.Matched = len(chosen.jobs); o.Matched > MaxDelayed {
		return errTooManyDelayed
	}
	return nil
}

// versionsOf returns the jobs that match a filter as they are now, and stops above MaxDelayed.
func (s *Service) versionsOf(ctx context.Context, c *session, filter core.Filter) ([]jobVersion, error) {
	jobs, newest := []jobVersion{}, c.newest()
	for cursor := ""; ; {
		r, err := c.call(ctx, &core.Find{Filter: filter, Cursor: cursor, Limit: corePage, Brief: true})
		if err != nil {
			return nil, findError(err, "")
		}
		for i := range r.Jobs {
			if r.Jobs[i].Seq <= newest {
				jobs = append(jobs, versionOf(&r.Jobs[i]))
			}
		}
		if cursor = r.NextCursor; cursor == "" || len(jobs) > MaxDelayed || ctx.Err() != nil {
			return jobs, context.Cause(ctx)
		}
	}
}
