package limit

import (
	"fmt"
	"maps"
	"strings"

	"broker/core"
)

// limitName names a limit within its queue.
type limitName struct {
	scope core.LimitScope
	name  string
}

// queuePolicy holds the limits and the sharing of a queue. The values of its ScopeQueue limit, except the rate, are in
// Queue.Limits.
type queuePolicy struct {
	limits  map[limitName]core.QueueLimit
	sharing core.Sharing
	stored  bool // part of it has a meta entry
}

func (s *queuePolicy) empty() bool { return len(s.limits) == 0 && s.sharing.Key.Kind == core.KeyNone }

// SetLimit sets a limit of a queue, and returns the commit that the reply depends on.
func (r *Rules) SetLimit(n uint32, limit core.QueueLimit) core.Commit {
	q := r.withPolicy(n)
	limit.Queue, limit.Name = q.Name, strings.Clone(limit.Name)
	name := limitName{limit.Scope, limit.Name}
	before, had := q.policy.limits[name]
	q.policy.limits[name] = limit
	return r.applyPolicy(n, q, had && !before.FromConfig || !limit.FromConfig)
}

// LimitRefusal returns why a limit is refused, or nil.
func (r *Rules) LimitRefusal(l *core.QueueLimit) error {
	name := limitName{l.Scope, l.Name}
	wrong := func(what string) error { return fmt.Errorf("%w: %s", core.ErrInvalid, what) }
	switch {
	case l.Queue == "" || len(l.Queue) > core.MaxQueueName || len(l.Name) > core.MaxIDBytes:
		return wrong("a limit needs the name of a queue; names are bounded")
	case l.Scope > core.ScopeKey:
		return wrong("unknown scope")
	case l.Scope == core.ScopeQueue && l.Name != "":
		return wrong("a limit of the whole queue has no name")
	case l.Throttle == (core.Throttle{}) && l.Name == "":
		return wrong("it limits nothing")
	case l.SlotFor < 0 || l.Rate != 0 && !(l.Rate >= core.MinRate && l.Rate <= core.MaxRate) ||
		l.Burst > 0 && l.Rate == 0:
		return wrong(
			"a rate is between one a day and a million a second, a burst needs a rate, and a time is not negative",
		)
	}
	s := r.PolicyOf(l.Queue)
	if s == nil {
		return nil
	}
	before, had := s.limits[name]
	switch {
	case had && before.FromConfig && !l.FromConfig:
		return core.ErrConfigured
	case !had && len(s.limits) >= core.MaxLimits:
		return core.ErrFull
	}
	return nil
}

// DropLimit removes a limit of a queue, and returns the commit that the reply depends on.
func (r *Rules) DropLimit(op *core.RemoveLimit) (core.Commit, error) {
	name, s := limitName{op.Scope, op.Name}, r.PolicyOf(op.Queue)
	var before core.QueueLimit
	had := false
	if s != nil {
		before, had = s.limits[name]
	}
	switch {
	case !had:
		return 0, core.ErrNoLimit
	case before.FromConfig != op.FromConfig:
		return 0, core.ErrConfigured
	}
	delete(s.limits, name)
	n := r.table.QueueNumber(op.Queue)
	return r.applyPolicy(n, r.queues[n], !before.FromConfig), nil
}

// SetSharing sets how a queue shares its workers between keys, and returns the commit that the reply depends on.
func (r *Rules) SetSharing(n uint32, to core.Sharing) core.Commit {
	q := r.withPolicy(n)
	to.Queue, to.Weights = q.Name, maps.Clone(to.Weights)
	before := q.policy.sharing
	if q.policy.sharing = to; to.Key.Kind == core.KeyNone {
		q.policy.sharing = core.Sharing{}
	}
	wasStored := before.Key.Kind != core.KeyNone && !before.FromConfig
	return r.applyPolicy(n, q, wasStored || !to.FromConfig)
}

// SharingRefusal returns why a sharing is refused, or nil.
func (r *Rules) SharingRefusal(s *core.Sharing) error {
	if err := s.Check(); err != nil {
		return err
	}
	if old := r.PolicyOf(s.Queue); old != nil && old.sharing.FromConfig && !s.FromConfig {
		return core.ErrConfigured
	}
	return nil
}

// PolicyOf returns the policy of a queue, or nil.
func (r *Rules) PolicyOf(name string) *queuePolicy {
	if n := r.table.QueueNumber(name); n != 0 {
		return r.queues[n].policy
	}
	return nil
}

// withPolicy gives a queue a policy, if it has none.
func (r *Rules) withPolicy(n uint32) *Queue {
	q := r.queues[n]
	if q.policy == nil {
		q.policy = &queuePolicy{limits: map[limitName]core.QueueLimit{}}
	}
	return q
}

// applyPolicy applies the policy of a queue. If store is set, it stores the policy too. It returns the commit that the
// reply depends on.
func (r *Rules) applyPolicy(n uint32, q *Queue, store bool) core.Commit {
	q.Limits.Throttle = q.policy.limits[limitName{scope: core.ScopeQueue}].Throttle
	commit := core.Commit(0)
	if store {
		r.storePolicy(q)
		commit = r.table.Promise()
	}
	r.sortLanes(n, q, r.sortStep)
	if q.policy.empty() {
		q.policy = nil
	}
	r.host.Offer(n)
	r.host.DropIdle(n)
	return commit
}
