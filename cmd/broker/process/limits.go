package process

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"broker/config"
	"broker/core"
)

// limitsOf are the limits in the settings.
func limitsOf(c *config.Config) map[core.LimitID]core.Limit {
	all := make(map[core.LimitID]core.Limit)
	add := func(queue string, scope core.LimitScope, of string, t config.Throttle) {
		if of == config.Each {
			of = ""
		}
		l := core.Limit{
			Selector: core.InQueue(queue, scope, of), FromConfig: true,
			Throttle: core.Throttle{
				Leased: uint32(t.Concurrency), LeasedPerWorker: uint32(t.Worker), SlotFor: t.Timeout, Rate: t.Rate,
				Burst: uint32(t.Burst),
			},
		}
		all[l.ID()] = l
	}
	for queue, t := range c.Throttles {
		add(queue, core.ScopeQueue, "", t)
	}
	for _, l := range c.QueueLimits {
		if l.Type != "" {
			add(l.Queue, core.ScopeType, l.Type, l.Throttle)
		} else {
			add(l.Queue, core.ScopeKey, l.Key, l.Throttle)
		}
	}
	return all
}

// sharingsOf are the sharings in the settings, by queue.
func sharingsOf(c *config.Config) map[string]core.Sharing {
	all := make(map[string]core.Sharing)
	for _, s := range c.Sharings {
		to := core.Sharing{
			Queue: s.Queue, Key: core.JobKey{Kind: core.KeyUnique}, Fair: s.Fair, Ordered: s.Ordered, FromConfig: true,
		}
		if tag, is := strings.CutPrefix(s.Key, config.TagKey); is {
			to.Key = core.JobKey{Kind: core.KeyTag, Tag: tag}
		}
		if len(s.Weights) > 0 {
			to.Weights = make(map[string]uint32, len(s.Weights))
			for key, weight := range s.Weights {
				to.Weights[key] = uint32(weight)
			}
		}
		all[s.Queue] = to
	}
	return all
}

// applyLimits sets the limits and sharings that have changed.
func (t *term) applyLimits(old, fresh *Settings) {
	set := func(queue, done string, op core.Op) {
		if r := core.DoOnce(t.engine, core.Internal, op)[0]; r.Err != nil {
			t.log.Error().Err(r.Err).Str("queue", queue).Msg("limit refused")
			return
		}
		t.log.Info().Str("queue", queue).Msg(done)
	}
	reconcile(old.limits, fresh.limits, core.LimitID.Compare, func(id core.LimitID, l core.Limit, wanted bool) {
		if wanted {
			set(id.Queue, "limit set", &core.PutLimit{Limit: l})
		} else {
			set(id.Queue, "limit removed", &core.RemoveLimit{ID: id, FromConfig: true})
		}
	})
	reconcile(old.sharings, fresh.sharings, cmp.Compare[string], func(queue string, s core.Sharing, wanted bool) {
		if wanted {
			set(queue, "sharing set", &core.ShareQueue{Sharing: s})
		} else {
			set(queue, "sharing removed", &core.ShareQueue{Sharing: core.Sharing{Queue: queue, FromConfig: true}})
		}
	})
}

// LimitList are the limits in the settings, in no order.
func (s *Settings) LimitList() []core.Limit { return slices.Collect(maps.Values(s.limits)) }

// SharingList are the sharings in the settings, in no order.
func (s *Settings) SharingList() []core.Sharing { return slices.Collect(maps.Values(s.sharings)) }
