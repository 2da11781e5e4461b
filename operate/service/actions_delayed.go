package service

import (
	"context"
	"time"

	"broker/access"
	"broker/core"
)

// maxDelay is the longest delay of an action. MaxDelayed is the maximum number of jobs of a delayed action, and
// maxPending the maximum number of pending actions. All of them together have at most maxAllDelayed jobs, each of which
// takes 48 bytes.
const (
	maxDelay      = time.Hour
	MaxDelayed    = 1_000_000
	maxAllDelayed = 2 * MaxDelayed
	maxPending    = 20
)

// hold reserves memory for the jobs of a delayed action of a holder.
func (l *operations) hold(h access.Holder, jobs int) error {
	if err := l.delayed.Take(h, jobs); err != nil {
		return &Error{Code: CodeTooMany, Detail: "the pending operations have too many jobs: " + err.Error() +
			"; wait for one of yours or cancel it"}
	}
	return nil
}

// startDelayed starts an action with a delay.
func (s *Service) startDelayed(
	ctx context.Context, c *session, o Operation, a Action, chosen *selection,
) (Operation, error) {
	if o.Matched > MaxDelayed {
		return o, errTooManyDelayed
	}
	held, holder := o.Matched, c.caller.Holder()
	if err := s.operations.hold(holder, held); err != nil {
		return o, err
	}
	err := s.delay(ctx, c, &o, a.Delay, chosen)
	if more := len(chosen.jobs) - held; err == nil && more > 0 { // the count was a lower bound
		if err = s.operations.hold(holder, more); err == nil {
			held += more
		}
	}
	if err == nil {
		o, err = s.start(ctx, c.caller, o, func(ctx context.Context, op *operation) error {
			defer s.operations.delayed.Return(holder, held)
			return s.runDelayed(ctx, c.caller, op, a, chosen)
		})
	}
	if err != nil {
		s.operations.delayed.Return(holder, held)
	}
	return o, err
}

var errTooManyDelayed = invalid("delay_s", "a change of more than %d jobs cannot have a delay", MaxDelayed)

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
	s.operations.begin(op)
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
