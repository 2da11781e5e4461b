package service

import (
	"context"

	"broker/access"
	"broker/core"
	"broker/core/schema"
)

// QueueKey is what the jobs of one key of a queue do, such as those of a tenant.
type QueueKey struct {
	Name    string           `json:"name" doc:"the key; empty: of the jobs without one"`
	Ready   int              `json:"ready" doc:"in a queue with strict order, those that are next"`
	Leased  int              `json:"leased"`
	OldestS float64          `json:"oldest_age_s" doc:"of the ready job that has waited longest"`
	Rate    float64          `json:"rate" doc:"leases per second over the last minute"`
	Limit   *schema.Throttle `json:"limit,omitempty" doc:"its own limit, or that of each key"`
}

// Keys lists the keys of a queue that have jobs: at most 1,000, those with most ready jobs first. It is empty unless
// the keys take turns or have limits.
func (s *Service) Keys(ctx context.Context, caller Caller, queue string) ([]QueueKey, error) {
	if err := caller.may(access.Read, queue); err != nil {
		return nil, err
	}
	c := s.open(caller)
	defer c.Close()
	r, err := c.call(ctx, &core.ListLimits{Queue: queue, WithKeys: true})
	if err != nil {
		return nil, err
	}
	limits := map[string]*core.Throttle{}
	for i := range r.Limits {
		if l := &r.Limits[i]; !l.IsShared() && l.Scope == core.ScopeKey {
			limits[l.Of] = &l.Throttle
		}
	}
	keys := make([]QueueKey, len(r.Keys))
	for i, k := range r.Keys {
		keys[i] = QueueKey{
			Name: text(k.Name), Ready: k.Ready, Leased: k.Leased, OldestS: k.OldestAge.Seconds(), Rate: k.Rate,
		}
		limit := limits[k.Name]
		if limit == nil {
			limit = limits[""]
		}
		if limit != nil && *limit != (core.Throttle{}) {
			keys[i].Limit = new(schema.ThrottleOf(limit))
		}
	}
	return keys, nil
}

// LimitPreview is what a limit would do to the jobs that there are now. Each job counts once, whatever its cost.
type LimitPreview struct {
	Leased, Ready int  // jobs under the limit
	Exact         bool // otherwise there are more
	Waits         int  // ready jobs that it would hold back now
	Ends          int  // leases that have to end before it allows another one
	EmptyInS      float64
}

// PreviewLimit returns what a limit for a queue, one type or one key would do; nil for a limit of each type or key, or
// of several queues.
func (s *Service) PreviewLimit(ctx context.Context, caller Caller, spec LimitSpec) (*LimitPreview, error) {
	l, err := spec.core()
	if err != nil {
		return nil, err
	}
	if l.IsShared() || l.Scope != core.ScopeQueue && l.Of == "" {
		return nil, nil
	}
	if err := caller.may(access.Read, spec.Queue); err != nil {
		return nil, err
	}
	f := core.Filter{Queues: l.Queues}
	c := s.open(caller)
	defer c.Close()
	switch l.Scope {
	case core.ScopeQueue:
	case core.ScopeType:
		f.Types = []string{l.Of}
	case core.ScopeKey:
		sharing := s.sharing(c, spec.Queue)
		if sharing == nil || sharing.Key.Kind != core.KeyTag {
			return nil, nil
		}
		f.Tags = []string{sharing.Key.Tag + ":" + l.Of}
	}
	p := &LimitPreview{Exact: true}
	for state, count := range map[core.State]*int{core.Leased: &p.Leased, core.Ready: &p.Ready} {
		f.States = []core.State{state}
		r, err := c.call(ctx, &core.Find{Filter: f, Limit: 1, Brief: true, WithCount: true})
		if err != nil {
			return nil, findError(err, "")
		}
		*count, p.Exact = r.Count, p.Exact && r.CountExact
	}
	starts := p.Ready
	if most := int(l.Leased); most > 0 {
		starts, p.Ends = min(starts, max(most-p.Leased, 0)), max(p.Leased+1-most, 0)
	}
	if l.Rate > 0 {
		burst := max(int(l.Burst), 1)
		starts = min(starts, burst)
		p.EmptyInS = float64(max(p.Ready-burst, 0)) / l.Rate
	}
	p.Waits = p.Ready - starts
	return p, nil
}
