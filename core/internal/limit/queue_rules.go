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

// queueRules are the limits and the sharing of a queue.
type queueRules struct {
	limits  map[limitName]core.QueueLimit
	sharing core.Sharing
	stored  bool // part of it has a meta entry
}

func (s *queueRules) empty() bool { return len(s.limits) == 0 && s.sharing.Key.Kind == core.KeyNone }

// SetLimit sets a limit of a queue, and returns the commit that the reply depends on.
func (r *Rules) SetLimit(n uint32, limit core.QueueLimit) core.Commit {
	q := r.withRules(n)
	limit.Queue, limit.Name = q.Name, strings.Clone(limit.Name)
	name := limitName{limit.Scope, limit.Name}
	before, had := q.rules.limits[name]
	q.rules.limits[name] = limit
	return r.applyRules(n, q, had && !before.FromConfig || !limit.FromConfig)
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
	s := r.RulesOf(l.Queue)
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
	name, s := limitName{op.Scope, op.Name}, r.RulesOf(op.Queue)
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
	return r.applyRules(n, r.queues[n], !before.FromConfig), nil
}

// SetSharing sets how a queue shares its workers between keys, and returns the commit that the reply depends on.
func (r *Rules) SetSharing(n uint32, to core.Sharing) core.Commit {
	q := r.withRules(n)
	to.Queue, to.Weights = q.Name, maps.Clone(to.Weights)
	before := q.rules.sharing
	if q.rules.sharing = to; to.Key.Kind == core.KeyNone {
		q.rules.sharing = core.Sharing{}
	}
	wasStored := before.Key.Kind != core.KeyNone && !before.FromConfig
	return r.applyRules(n, q, wasStored || !to.FromConfig)
}

// SharingRefusal returns why a sharing is refused, or nil.
func (r *Rules) SharingRefusal(s *core.Sharing) error {
	if err := s.Check(); err != nil {
		return err
	}
	if old := r.RulesOf(s.Queue); old != nil && old.sharing.FromConfig && !s.FromConfig {
		return core.ErrConfigured
	}
	return nil
}

// RulesOf returns the rules of a queue, or nil.
func (r *Rules) RulesOf(name string) *queueRules {
	if n := r.table.QueueNumber(name); n != 0 {
		return r.queues[n].rules
	}
	return nil
}

// withRules gives a queue rules, if it has none.
func (r *Rules) withRules(n uint32) *Queue {
	q := r.queues[n]
	if q.rules == nil {
		q.rules = &queueRules{limits: map[limitName]core.QueueLimit{}}
	}
	return q
}

// applyRules applies the rules of a queue. If store is set, it stores them too. It returns the commit that the
// reply depends on.
func (r *Rules) applyRules(n uint32, q *Queue, store bool) core.Commit {
	r.setWhole(n, q, q.rules.limits[limitName{scope: core.ScopeQueue}].Throttle)
	commit := core.Commit(0)
	if store {
		r.storeRules(q)
		commit = r.table.Promise()
	}
	r.sortLanes(n, q, r.sortStep)
	if q.rules.empty() {
		q.rules = nil
	}
	r.host.Offer(n)
	r.host.DropIdle(n)
	return commit
}
