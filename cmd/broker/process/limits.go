package process

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"strings"

	"broker/config"
	"broker/core"
)

// LimitsOf are the limits in the settings.
func LimitsOf(c *config.Config) map[core.LimitID]core.Limit {
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

// SharingsOf are the sharings in the settings, by queue.
func SharingsOf(c *config.Config) map[string]core.Sharing {
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
func (t *term) applyLimits(old, fresh *config.Config) {
	set := func(queue, done string, op core.Op) {
		if r := core.DoOnce(t.engine, core.Internal, op)[0]; r.Err != nil {
			t.log.Error().Err(r.Err).Str("queue", queue).Msg("limit refused")
			return
		}
		t.log.Info().Str("queue", queue).Msg(done)
	}
	before, after := LimitsOf(old), LimitsOf(fresh)
	for _, id := range keysOf(before, after, core.LimitID.Compare) {
		l, wanted := after[id]
		switch had, known := before[id]; {
		case !wanted:
			set(id.Queue, "limit removed", &core.RemoveLimit{ID: id, FromConfig: true})
		case !known || had.Throttle != l.Throttle:
			set(id.Queue, "limit set", &core.PutLimit{Limit: l})
		}
	}
	was, is := SharingsOf(old), SharingsOf(fresh)
	for _, queue := range keysOf(was, is, cmp.Compare[string]) {
		s, wanted := is[queue]
		switch had, known := was[queue]; {
		case !wanted:
			set(queue, "sharing removed", &core.ShareQueue{Sharing: core.Sharing{Queue: queue, FromConfig: true}})
		case !known || !reflect.DeepEqual(had, s):
			set(queue, "sharing set", &core.ShareQueue{Sharing: s})
		}
	}
}

// keysOf returns the keys of both maps, in order.
func keysOf[K comparable, V any](a, b map[K]V, compare func(K, K) int) []K {
	keys := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))
	slices.SortFunc(keys, compare)
	return slices.Compact(keys)
}
