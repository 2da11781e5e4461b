package limit

import (
	"cmp"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"broker/core"
	"broker/core/internal/table"
)

// RulesPrefix is the prefix of the names of the meta entries of the rules of queues. It is on disk and
// never changes.
const RulesPrefix = "core/shape/"

// rulesMeta is the part of the rules of a queue that operations have set, as stored.
type rulesMeta struct {
	Limits  []limitMeta       `json:"limits,omitempty"`
	Key     core.KeyKind      `json:"key,omitempty"`
	Tag     string            `json:"tag,omitempty"`
	Fair    bool              `json:"fair,omitempty"`
	Weights map[string]uint32 `json:"weights,omitempty"`
	Ordered bool              `json:"ordered,omitempty"`
}

// limitMeta is a limit as stored.
type limitMeta struct {
	Scope     core.LimitScope `json:"scope,omitempty"`
	Name      []byte          `json:"name,omitempty"`
	Leased    uint32          `json:"leased,omitempty"`
	PerWorker uint32          `json:"per_worker,omitempty"`
	SlotFor   time.Duration   `json:"slot_for,omitempty"`
	Rate      float64         `json:"rate,omitempty"`
	Burst     uint32          `json:"burst,omitempty"`
}

// storeRules stores the rules of a queue with the open batch.
func (r *Rules) storeRules(q *Queue) {
	var k rulesMeta
	for _, l := range q.rules.sorted() {
		if !l.FromConfig {
			k.Limits = append(k.Limits,
				limitMeta{l.Scope, []byte(l.Name), l.Leased, l.LeasedPerWorker, l.SlotFor, l.Rate, l.Burst})
		}
	}
	if s := &q.rules.sharing; !s.FromConfig {
		k.Key, k.Tag, k.Fair, k.Weights, k.Ordered = s.Key.Kind, s.Key.Tag, s.Fair, s.Weights, s.Ordered
	}
	entry := core.MetaEntry{Name: RulesPrefix + q.Name}
	if len(k.Limits) > 0 || k.Key != core.KeyNone {
		entry.Value = table.Encode(k)
	} else if !q.rules.stored {
		return
	}
	q.rules.stored = entry.Value != nil
	r.table.LogMeta(entry)
}

// sorted returns the limits of a queue by scope and name.
func (s *queueRules) sorted() []core.QueueLimit {
	return slices.SortedFunc(maps.Values(s.limits), func(a, b core.QueueLimit) int {
		return cmp.Or(cmp.Compare(a.Scope, b.Scope), cmp.Compare(a.Name, b.Name))
	})
}

// DecodeRules decodes the stored rules of a queue. Values beyond the current bounds are reduced to them, because
// they must not prevent a store from opening.
func DecodeRules(name string, value []byte) (*storedRules, error) {
	var k rulesMeta
	if err := json.Unmarshal(value, &k); err != nil {
		return nil, err
	}
	queue := strings.TrimPrefix(name, RulesPrefix)
	sharing := core.Sharing{
		Queue: queue, Key: core.JobKey{Kind: k.Key, Tag: k.Tag}, Fair: k.Fair, Weights: k.Weights,
		Ordered: k.Ordered && k.Key == core.KeyTag && !k.Fair,
	}
	if queue == "" || k.Key > core.KeyUnique || (k.Key == core.KeyTag) != (k.Tag != "") {
		return nil, errors.New("limits without a queue, or an unknown key")
	}
	limits := make([]core.QueueLimit, len(k.Limits))
	for i, l := range k.Limits {
		limits[i] = core.QueueLimit{Queue: queue, Scope: l.Scope, Name: string(l.Name), Throttle: core.Throttle{
			Leased: l.Leased, LeasedPerWorker: l.PerWorker, SlotFor: l.SlotFor, Rate: l.Rate, Burst: l.Burst,
		}}
		if l.Scope > core.ScopeKey || l.Scope == core.ScopeQueue && len(l.Name) > 0 || l.SlotFor < 0 || l.Rate < 0 ||
			l.Burst > 0 && l.Rate == 0 {
			return nil, errors.New("a limit of an unknown scope, or below zero")
		}
		if l.Rate > 0 {
			limits[i].Rate = min(max(l.Rate, core.MinRate), core.MaxRate)
		}
	}
	for key, weight := range sharing.Weights {
		sharing.Weights[key] = min(max(weight, 1), core.MaxWeight)
	}
	if k.Key == core.KeyNone {
		sharing = core.Sharing{}
	}
	return &storedRules{Queue: queue, sharing: sharing, limits: limits}, nil
}

// storedRules are rules that were stored.
type storedRules struct {
	Queue   string
	sharing core.Sharing
	limits  []core.QueueLimit
}

// ApplyRestored applies stored rules.
func (r *Rules) ApplyRestored(n uint32, p *storedRules) {
	q := r.withRules(n)
	q.rules.stored, q.rules.sharing = true, p.sharing
	for _, l := range p.limits {
		q.rules.limits[limitName{l.Scope, l.Name}] = l
	}
	r.applyRules(n, q, false)
}
