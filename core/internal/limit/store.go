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

// Prefixes of the names of meta entries: of the rules of queues, and of shared limits. They are on disk and never
// change.
const (
	RulesPrefix  = "core/shape/"
	SharedPrefix = "core/limit/"
)

// rulesMeta is the part of the rules of a queue that operations have set, as stored.
type rulesMeta struct {
	Limits  []limitMeta       `json:"limits,omitempty"`
	Key     core.KeyKind      `json:"key,omitempty"`
	Tag     string            `json:"tag,omitempty"`
	Fair    bool              `json:"fair,omitempty"`
	Weights map[string]uint32 `json:"weights,omitempty"`
	Ordered bool              `json:"ordered,omitempty"`
}

// limitMeta is a limit as stored: one of a queue in its rulesMeta, or a shared one in an entry of its own. Names are
// bytes: they need not be text.
type limitMeta struct {
	Scope     core.LimitScope `json:"scope,omitempty"`
	Of        []byte          `json:"name,omitempty"`
	Queues    [][]byte        `json:"queues,omitempty"`
	Types     [][]byte        `json:"types,omitempty"`
	Leased    uint32          `json:"leased,omitempty"`
	PerWorker uint32          `json:"per_worker,omitempty"`
	SlotFor   time.Duration   `json:"slot_for,omitempty"`
	Rate      float64         `json:"rate,omitempty"`
	Burst     uint32          `json:"burst,omitempty"`
}

func metaOf(t core.Throttle) limitMeta {
	return limitMeta{
		Leased: t.Leased, PerWorker: t.LeasedPerWorker, SlotFor: t.SlotFor, Rate: t.Rate, Burst: t.Burst,
	}
}

// storeRules stores the rules of a queue with the open batch.
func (r *Rules) storeRules(q *Queue) {
	var k rulesMeta
	for _, name := range q.rules.sorted() {
		if l := q.rules.limits[name]; !l.fromConfig {
			m := metaOf(l.Throttle)
			m.Scope, m.Of = name.scope, []byte(name.of)
			k.Limits = append(k.Limits, m)
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

// storeShared stores a shared limit with the open batch.
func (r *Rules) storeShared(l *core.Limit) {
	m := metaOf(l.Throttle)
	m.Queues, m.Types = asBytes(l.Queues), asBytes(l.Types)
	r.table.LogMeta(core.MetaEntry{Name: SharedPrefix + l.Name, Value: table.Encode(m)})
}

// sorted returns the names of the limits of a queue in order.
func (s *queueRules) sorted() []limitName {
	return slices.SortedFunc(maps.Keys(s.limits), limitName.compare)
}

func asBytes(names []string) (all [][]byte) {
	for _, name := range names {
		all = append(all, []byte(name))
	}
	return all
}

func asTexts(names [][]byte) (all []string) {
	for _, name := range names {
		all = append(all, string(name))
	}
	return all
}

// Stored are the limits in a meta entry: those of a queue with its sharing, or a shared one.
type Stored struct {
	Queue   string // empty for a shared limit
	Limits  []core.Limit
	Sharing core.Sharing
}

// Decode decodes a meta entry with RulesPrefix or SharedPrefix. Values beyond the current bounds are reduced to them,
// because they must not prevent a store from opening.
func Decode(name string, value []byte) (*Stored, error) {
	if shared, is := strings.CutPrefix(name, SharedPrefix); is {
		var k limitMeta
		if err := json.Unmarshal(value, &k); err != nil {
			return nil, err
		}
		l, err := k.limit()
		l.Name, l.Selector = shared, core.Selector{Queues: asTexts(k.Queues), Types: asTexts(k.Types)}
		if shared == "" {
			err = errors.New("a shared limit without a name")
		}
		return &Stored{Limits: []core.Limit{l}}, err
	}
	var k rulesMeta
	if err := json.Unmarshal(value, &k); err != nil {
		return nil, err
	}
	s := &Stored{Queue: strings.TrimPrefix(name, RulesPrefix), Limits: make([]core.Limit, len(k.Limits))}
	if s.Queue == "" || k.Key > core.KeyUnique || (k.Key == core.KeyTag) != (k.Tag != "") {
		return nil, errors.New("limits without a queue, or an unknown key")
	}
	for i := range k.Limits {
		m := &k.Limits[i]
		l, err := m.limit()
		if err != nil || m.Scope > core.ScopeKey || m.Scope == core.ScopeQueue && len(m.Of) > 0 {
			return nil, cmp.Or(err, errors.New("a limit of an unknown scope"))
		}
		l.Selector = core.InQueue(s.Queue, m.Scope, string(m.Of))
		s.Limits[i] = l
	}
	if k.Key != core.KeyNone {
		s.Sharing = core.Sharing{
			Queue: s.Queue, Key: core.JobKey{Kind: k.Key, Tag: k.Tag}, Fair: k.Fair, Weights: k.Weights,
			Ordered: k.Ordered && k.Key == core.KeyTag && !k.Fair,
		}
		for key, weight := range k.Weights {
			k.Weights[key] = min(max(weight, 1), core.MaxWeight)
		}
	}
	return s, nil
}

// limit returns the limit without its name and selector.
func (k *limitMeta) limit() (l core.Limit, err error) {
	if k.SlotFor < 0 || k.Rate < 0 || k.Burst > 0 && k.Rate == 0 {
		return l, errors.New("a limit below zero, or a burst without a rate")
	}
	l.Throttle = core.Throttle{
		Leased: k.Leased, LeasedPerWorker: k.PerWorker, SlotFor: k.SlotFor, Rate: k.Rate, Burst: k.Burst,
	}
	if k.Rate > 0 {
		l.Rate = min(max(k.Rate, core.MinRate), core.MaxRate)
	}
	return l, nil
}

// Restore restores a meta entry that Decode reads. The limits of a queue apply at once, before its jobs are restored;
// shared limits apply from RestoredShared on.
func (r *Rules) Restore(name string, value []byte) error {
	s, err := Decode(name, value)
	switch {
	case err != nil:
		return err
	case s.Queue == "":
		r.restoredLimits = append(r.restoredLimits, s.Limits...)
		return nil
	}
	n := r.host.QueueFor(s.Queue)
	q := r.withRules(n)
	q.rules.stored, q.rules.sharing = true, s.Sharing
	for _, l := range s.Limits {
		q.rules.limits[limitName{l.Scope, l.Of}] = queueLimit{Throttle: l.Throttle}
	}
	r.applyRules(n, q, false)
	return nil
}
