package limit

import (
	"cmp"
	"iter"
	"slices"
	"time"

	"broker/core"
)

// keyStep and keySteps are the resolution and the length of the span over which the leases of a key are counted.
const (
	keyStep  = core.Instant(5 * time.Second / time.Microsecond)
	keySteps = 12
)

// maxKeyRates is how many keys of all queues have their leases counted. Each takes about 150 bytes and its names.
const maxKeyRates = 10_000

// keyRates counts the leases of keys, in memory only. Keys that have no jobs for a moment keep their counts.
type keyRates struct {
	byName map[keyName]*keyRate
	swept  int64 // the step of the last sweep
}

type keyName struct{ queue, key string }

// keyRate counts the leases of one key in the last steps and the current one.
type keyRate struct {
	last   int64 // the step of the last lease
	leases [keySteps + 1]uint32
}

// advance clears the steps that have passed without a lease.
func (k *keyRate) advance(step int64) {
	for at := max(k.last+1, step-keySteps); at <= step; at++ {
		k.leases[at%(keySteps+1)] = 0
	}
	k.last = max(k.last, step)
}

// countKey counts a lease of a key.
func (r *Rules) countKey(queue, key string) {
	step, name := int64(r.table.Now/keyStep), keyName{queue, key}
	k := r.keys.byName[name]
	if k == nil {
		if k = r.keys.add(name, step); k == nil {
			return
		}
	}
	k.advance(step)
	k.leases[k.last%(keySteps+1)]++
}

// add begins to count a key; nil: too many keys were leased within the last minute.
func (x *keyRates) add(name keyName, step int64) *keyRate {
	if len(x.byName) >= maxKeyRates && x.swept != step {
		x.swept = step
		for old, k := range x.byName {
			if k.last < step-keySteps {
				delete(x.byName, old)
			}
		}
	}
	if len(x.byName) >= maxKeyRates {
		return nil
	}
	if x.byName == nil {
		x.byName = map[keyName]*keyRate{}
	}
	k := &keyRate{last: step}
	x.byName[name] = k
	return k
}

// rateOf returns the leases a second of a key over the last whole steps.
func (r *Rules) rateOf(name keyName) float64 {
	k := r.keys.byName[name]
	if k == nil {
		return 0
	}
	step, sum := int64(r.table.Now/keyStep), uint32(0)
	for at := step - keySteps; at < step; at++ {
		if at <= k.last && at >= k.last-keySteps {
			sum += k.leases[at%(keySteps+1)]
		}
	}
	return float64(sum) / (keySteps * time.Duration(keyStep) * time.Microsecond).Seconds()
}

// keysOf returns the keys of a queue with the most ready jobs.
func (r *Rules) keysOf(q *Queue) []core.KeyUse {
	keys := []core.KeyUse{}
	if q.lanes == nil || !q.lanes.byKey {
		return keys
	}
	at := map[string]int{}
	for l := range r.firstLanes(q.lanes) {
		i, known := at[l.name.key]
		if !known {
			i = len(keys)
			at[l.name.key], keys = i, append(keys, core.KeyUse{Name: l.name.key})
		}
		keys[i].Ready += l.ready.Len()
		keys[i].Leased += l.leased
	}
	keys = slices.DeleteFunc(keys, func(k core.KeyUse) bool { return k.Ready == 0 && k.Leased == 0 })
	slices.SortFunc(keys, func(a, b core.KeyUse) int {
		return cmp.Or(cmp.Compare(b.Ready, a.Ready), cmp.Compare(b.Leased, a.Leased), cmp.Compare(a.Name, b.Name))
	})
	keys = slices.Clip(keys[:min(len(keys), core.MaxLimitUses)])
	shown := make(map[string]int, len(keys))
	for i := range keys {
		shown[keys[i].Name] = i
		keys[i].Rate = r.rateOf(keyName{q.Name, keys[i].Name})
	}
	for l := range r.firstLanes(q.lanes) {
		i, listed := shown[l.name.key]
		if oldest := r.table.OldestIn(&l.ready); listed && oldest != 0 {
			keys[i].OldestAge = max(keys[i].OldestAge, r.table.Now.Sub(oldest))
		}
	}
	return keys
}

// firstLanes goes through the lanes that keysOf examines.
func (r *Rules) firstLanes(x *lanes) iter.Seq[*lane] {
	return func(yield func(*lane) bool) {
		looks := 0
		for l := range x.slots.All() {
			if looks++; looks > MaxLooks || !yield(l) {
				break
			}
		}
		r.table.Touched += looks
	}
}
