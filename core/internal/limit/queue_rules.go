package limit

import (
	"cmp"
	"maps"
	"strings"

	"broker/core"
)

// limitName names a limit within its queue: by the type or key that it is of.
type limitName struct {
	scope core.LimitScope
	of    string
}

func (n limitName) compare(to limitName) int {
	return cmp.Or(cmp.Compare(n.scope, to.scope), cmp.Compare(n.of, to.of))
}

// queueRules are the limits and the sharing of a queue.
type queueRules struct {
	limits  map[limitName]queueLimit
	sharing core.Sharing
	stored  bool // part of it has a meta entry
}

// queueLimit is what a limit of a queue allows.
type queueLimit struct {
	core.Throttle
	fromConfig bool
}

func (s *queueRules) empty() bool { return len(s.limits) == 0 && s.sharing.Key.Kind == core.KeyNone }

// Put sets a limit, and returns the commit that the reply depends on.
func (r *Rules) Put(l *core.Limit) (core.Commit, error) {
	if err := r.refusal(l); err != nil {
		return 0, err
	}
	if l.IsShared() {
		return r.putShared(l), nil
	}
	n := r.host.QueueFor(l.Queues[0])
	q := r.withRules(n)
	name := limitName{l.Scope, strings.Clone(l.Of)}
	before, had := q.rules.limits[name]
	q.rules.limits[name] = queueLimit{l.Throttle, l.FromConfig}
	return r.applyRules(n, q, had && !before.fromConfig || !l.FromConfig), nil
}

// refusal returns why a limit is refused, or nil.
func (r *Rules) refusal(l *core.Limit) error {
	if err := l.Check(); err != nil {
		return err
	}
	if l.IsShared() {
		if r.shared.byName[l.Name] == nil && len(r.shared.byName) >= core.MaxSharedLimits {
			return core.ErrFull
		}
		return nil
	}
	s := r.rulesOf(l.Queues[0])
	if s == nil {
		return nil
	}
	before, had := s.limits[limitName{l.Scope, l.Of}]
	switch {
	case had && before.fromConfig && !l.FromConfig:
		return core.ErrConfigured
	case !had && len(s.limits) >= core.MaxLimits:
		return core.ErrFull
	}
	return nil
}

// Remove removes a limit, and returns the commit that the reply depends on.
func (r *Rules) Remove(id core.LimitID, fromConfig bool) (core.Commit, error) {
	if id.Name != "" {
		return r.removeShared(id.Name)
	}
	name, s := limitName{id.Scope, id.Of}, r.rulesOf(id.Queue)
	var before queueLimit
	had := false
	if s != nil {
		before, had = s.limits[name]
	}
	switch {
	case !had:
		return 0, core.ErrNoLimit
	case before.fromConfig != fromConfig:
		return 0, core.ErrConfigured
	}
	delete(s.limits, name)
	n := r.table.QueueNumber(id.Queue)
	return r.applyRules(n, r.queues[n], !before.fromConfig), nil
}

// Share sets how a queue shares its workers between keys, and returns the commit that the reply depends on.
func (r *Rules) Share(to *core.Sharing) (core.Commit, error) {
	if err := to.Check(); err != nil {
		return 0, err
	}
	old := r.rulesOf(to.Queue)
	switch {
	case old != nil && old.sharing.FromConfig && !to.FromConfig:
		return 0, core.ErrConfigured
	case old == nil && to.Key.Kind == core.KeyNone:
		return r.table.MetaCommit(), nil
	}
	n := r.host.QueueFor(to.Queue)
	q := r.withRules(n)
	before := q.rules.sharing
	if q.rules.sharing = (core.Sharing{}); to.Key.Kind != core.KeyNone {
		q.rules.sharing = *to
		q.rules.sharing.Queue, q.rules.sharing.Weights = q.Name, maps.Clone(to.Weights)
	}
	wasStored := before.Key.Kind != core.KeyNone && !before.FromConfig
	return r.applyRules(n, q, wasStored || !to.FromConfig), nil
}

// rulesOf returns the rules of a queue, or nil.
func (r *Rules) rulesOf(name string) *queueRules {
	if n := r.table.QueueNumber(name); n != 0 {
		return r.queues[n].rules
	}
	return nil
}

// withRules gives a queue rules, if it has none.
func (r *Rules) withRules(n uint32) *Queue {
	q := r.queues[n]
	if q.rules == nil {
		q.rules = &queueRules{limits: map[limitName]queueLimit{}}
		r.ruled.Push(n, r.byName)
	}
	return q
}

// dropRules takes its rules from a queue.
func (r *Rules) dropRules(n uint32) {
	if q := r.queues[n]; q.rules != nil {
		q.rules = nil
		r.ruled.Remove(n, r.byName)
	}
}

// byName is the order of queues by their names.
func (r *Rules) byName(a, b uint32) bool { return r.queues[a].Name < r.queues[b].Name }

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
		r.dropRules(n)
	}
	r.host.Offer(n)
	r.host.DropIdle(n)
	return commit
}
