package service

import (
	"context"
	"slices"

	"broker/access"
	"broker/core"
)

// sharedScope is the Limit.Scope of a limit for several queues and types.
const sharedScope = "shared"

// SharedLimits lists the shared limits that the caller may read, with their use. With a name it returns that limit and
// the jobs that hold its slots.
func (s *Service) SharedLimits(ctx context.Context, caller Caller, name string) ([]Limit, error) {
	c := s.open(caller)
	defer c.Close()
	limits := []Limit{}
	for op := (core.ListLimits{Name: name}); ; {
		r, err := c.call(ctx, &op)
		if err != nil {
			return nil, err
		}
		for i := range r.Limits {
			if l := &r.Limits[i]; l.IsShared() && caller.mayLimit(access.Read, &l.Limit) == nil {
				limits = append(limits, limitOf(l))
			}
		}
		if op.After = r.NextLimit; op.After.Name == "" { // queues follow, or nothing
			return limits, nil
		}
	}
}

// sharedLimitsOf lists the shared limits that name a queue (without a queue: all), with the jobs that hold their slots.
func (s *Service) sharedLimitsOf(ctx context.Context, caller Caller, queue string) (found []Limit, err error) {
	all, err := s.SharedLimits(ctx, caller, "")
	if queue == "" || err != nil {
		return all, err
	}
	for i := range all {
		if !slices.Contains(all[i].Queues, queue) {
			continue
		}
		one, err := s.SharedLimits(ctx, caller, all[i].Name)
		if err != nil {
			return nil, err
		}
		found = append(found, one...)
	}
	return found, nil
}

func texts(names []string) (all []string) {
	for _, name := range names {
		all = append(all, text(name))
	}
	return all
}
