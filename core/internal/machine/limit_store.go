package machine

import (
	"cmp"
	"encoding/json"
	"sort"
	"strings"
	"time"

	"broker/core"
)

// ShapePrefix begins the names of the meta entries of shapes, one for each queue.
const ShapePrefix = "core/shape/"

// shapeMeta is the part of a shape that operations have set, as stored.
type shapeMeta struct {
	Limits  []limitMeta       `json:"limits,omitempty"`
	Key     core.KeyKind      `json:"key,omitempty"`
	Tag     string            `json:"tag,omitempty"`
	Fair    bool              `json:"fair,omitempty"`
	Weights map[string]uint32 `json:"weights,omitempty"`
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

// storeShape stores the shape of a queue with the open batch.
func (m *Machine) storeShape(q *jobQueue) {
	var k shapeMeta
	for _, l := range q.shape.sorted() {
		if !l.FromConfig {
			k.Limits = append(k.Limits, limitMeta{l.Scope, []byte(l.Name), l.Leased, l.LeasedPerWorker, l.SlotFor, l.Rate, l.Burst})
		}
	}
	if s := &q.shape.sharing; !s.FromConfig {
		k.Key, k.Tag, k.Fair, k.Weights = s.Key.Kind, s.Key.Tag, s.Fair, s.Weights
	}
	entry := core.MetaEntry{Name: ShapePrefix + q.name}
	if len(k.Limits) > 0 || k.Key != core.KeyNone {
		entry.Value = mustEncode(k)
	} else if !q.shape.stored {
		return
	}
	q.shape.stored = entry.Value != nil
	m.logMeta(entry)
}

// sorted is the limits of a queue by scope and name.
func (s *shape) sorted() []core.QueueLimit {
	all := make([]core.QueueLimit, 0, len(s.limits))
	for _, l := range s.limits {
		all = append(all, l)
	}
	sort.Slice(all, func(i, j int) bool {
		return cmp.Or(cmp.Compare(all[i].Scope, all[j].Scope), cmp.Compare(all[i].Name, all[j].Name)) < 0
	})
	return all
}

// restoreShape restores the shape of a queue, before its jobs.
func (m *Machine) restoreShape(name string, value []byte) error {
	var k shapeMeta
	if err := json.Unmarshal(value, &k); err != nil {
		return err
	}
	queue := strings.TrimPrefix(name, ShapePrefix)
	sharing := core.Sharing{Queue: queue, Key: core.JobKey{Kind: k.Key, Tag: k.Tag}, Fair: k.Fair, Weights: k.Weights}
	err := m.sharingRefusal(&sharing)
	limits := make([]core.QueueLimit, len(k.Limits))
	for i, l := range k.Limits {
		limits[i] = core.QueueLimit{Queue: queue, Scope: l.Scope, Name: string(l.Name), Throttle: core.Throttle{
			Leased: l.Leased, LeasedPerWorker: l.PerWorker, SlotFor: l.SlotFor, Rate: l.Rate, Burst: l.Burst,
		}}
		if err == nil {
			err = m.limitRefusal(&limits[i], limitName{l.Scope, string(l.Name)})
		}
	}
	if err != nil {
		return err
	}
	q := m.shapedQueue(queue)
	q.shape.stored = true
	if q.shape.sharing = sharing; k.Key == core.KeyNone {
		q.shape.sharing = core.Sharing{}
	}
	for _, l := range limits {
		q.shape.limits[limitName{l.Scope, l.Name}] = l
	}
	m.reshaped(q, false)
	return nil
}
