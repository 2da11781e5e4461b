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
	r, err := c.call(ctx, &core.ListSharedLimits{Name: name})
	if err != nil {
		return nil, err
	}
	limits := []Limit{}
	for i := range r.SharedLimits {
		l := &r.SharedLimits[i]
		if caller.mayShared(access.Read, l.Queues, l.Types) != nil {
			continue
		}
		v := limitOf(&core.LimitInfo{
			QueueLimit: core.QueueLimit{Name: l.Name, Throttle: l.Throttle}, Uses: []core.LimitUse{l.Use},
		})
		v.Scope, v.Queues, v.Types = sharedScope, texts(l.Queues), texts(l.Types)
		limits = append(limits, v)
	}
	return limits, nil
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

// putSharedLimit sets a shared limit. To replace a limit, the caller needs the right for both.
func (s *Service) putSharedLimit(ctx context.Context, caller Caller, spec *LimitSpec) ([]Limit, error) {
	switch {
	case spec.Queue != "":
		return nil, invalid("body.queue", "queue and queues exclude each other")
	case spec.Scope != "" && spec.Scope != sharedScope:
		return nil, invalid("body.scope", "a limit with queues or types is shared")
	case spec.Name == "":
		return nil, invalid("body.name", "a limit of queues and types needs a name")
	case spec.PerWorker != 0 || spec.SlotForS != 0:
		return nil, invalid("body", "per_worker and slot_for_s are for limits of one queue")
	}
	op := &core.PutSharedLimit{Limit: core.SharedLimit{
		Name: spec.Name, Queues: spec.Queues, Types: spec.Types,
		Throttle: core.Throttle{
			Leased: spec.Concurrency, Rate: spec.RatePerS, Burst: spec.Burst,
		},
	}}
	if err := caller.mayShared(access.Operate, spec.Queues, spec.Types); err != nil {
		return nil, err
	}
	if err := s.changeShared(ctx, caller, spec.Name, "limit.set", op); err != nil {
		return nil, err
	}
	return s.SharedLimits(ctx, caller, spec.Name)
}

// removeSharedLimit removes a shared limit.
func (s *Service) removeSharedLimit(ctx context.Context, caller Caller, name string) error {
	return s.changeShared(ctx, caller, name, "limit.remove", &core.RemoveSharedLimit{Name: name})
}

// changeShared changes a shared limit. If the limit exists, the caller needs the right for it.
func (s *Service) changeShared(ctx context.Context, caller Caller, name, action string, op core.Op) error {
	if err := caller.maySome(access.Operate); err != nil {
		return err
	}
	c := s.open(caller)
	defer c.Close()
	r, err := c.call(ctx, &core.ListSharedLimits{Name: name})
	if err != nil {
		return err
	}
	for i := range r.SharedLimits {
		if err := caller.mayShared(access.Operate, r.SharedLimits[i].Queues, r.SharedLimits[i].Types); err != nil {
			return err
		}
	}
	err = s.audited(ctx, c, AuditEntry{Action: action, Target: name}, op)
	switch {
	case IsCode(err, CodeState):
		return invalid("body", "%v", err)
	case IsCode(err, CodeQueueFull):
		return &Error{Code: CodeTooMany, Detail: "there are as many shared limits as are possible"}
	}
	return err
}
