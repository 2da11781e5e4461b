package process

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"broker/config"
	"broker/core"
	"broker/core/schema"
)

// OldNames says which settings of the limits have their earlier names.
func (s *Settings) OldNames() []string { return s.oldNames }

// limitsOf are the limits in the settings. old says which settings have their earlier names.
func limitsOf(c *config.Config) (all map[core.LimitID]core.Limit, old []string, problems []config.Problem) {
	all = make(map[core.LimitID]core.Limit)
	add := func(at string, selects core.Selector, members []byte) {
		l := core.Limit{Selector: selects, FromConfig: true}
		t, earlier, err := schema.ParseThrottle(at, members)
		old = append(old, earlier...)
		l.Throttle = t.Core()
		one := selects.Scope != core.ScopeQueue && selects.Of != "" // without a limit, if it limits nothing
		field, text, wrong := schema.FieldOf(err)
		if !wrong {
			field = at
			switch err := l.Check(); {
			case !one && t.Concurrency == 0 && t.PerWorker == 0 && t.RatePerS == 0:
				text = "limits nothing: concurrency, per_worker or rate_per_s is missing"
			case err != nil:
				text = strings.TrimPrefix(err.Error(), core.ErrInvalid.Error()+": ")
			default:
				all[l.ID()] = l
				return
			}
		}
		problems = append(problems, config.Problem{Setting: field, Text: text})
	}
	for _, queue := range slices.Sorted(maps.Keys(c.Throttles)) {
		add("throttles."+queue, core.InQueue(queue, core.ScopeQueue, ""), c.Throttles[queue])
	}
	for i, l := range c.QueueLimits {
		scope, of := core.ScopeKey, l.Key
		if l.Type != "" {
			scope, of = core.ScopeType, l.Type
		}
		if of == config.Each {
			of = ""
		}
		add(fmt.Sprintf("queue_limit[%d]", i), core.InQueue(l.Queue, scope, of), l.Members)
	}
	return all, old, problems
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
	for _, text := range fresh.oldNames {
		t.log.Warn().Str("setting", text).Msg("a setting has its old name")
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
