package limit

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"

	"broker/core"
	"broker/core/internal/table"
)

// The used part of a rate is stored with the next commit, so a restart or another leader does not grant the burst
// again. No lease waits for that: a crash forgets the leases of a batch that was not committed.

// RatePrefix is the prefix of the names of the meta entries of rates. It is on disk and never changes.
const RatePrefix = "core/rate/"

// rateName is the name of the meta entry of a bucket.
func (b *bucket) rateName(r *Rules) string {
	if b.isShared() {
		return RatePrefix + "shared/" + b.name.of
	}
	queue := r.queues[b.queue].Name
	return fmt.Sprintf("%s%d/%d/%s/%s", RatePrefix, b.name.scope, len(queue), queue, b.name.of)
}

// rateChanged adds the rate of a bucket to the open batch.
func (r *Rules) rateChanged(b *bucket) {
	if r.table.Persists() && !b.rateDirty {
		b.rateDirty = true
		r.dirtyRates = append(r.dirtyRates, b.number)
		r.table.AddOpen(table.ChangeBytes)
	}
}

// SealRates adds the rates that have changed to a batch.
func (r *Rules) SealRates(meta []core.MetaEntry) []core.MetaEntry {
	for _, number := range r.dirtyRates {
		b := r.buckets.At(number)
		if b == nil || !b.rateDirty {
			continue // dropped; the number may belong to another bucket
		}
		b.rateDirty, b.rateStored = false, true
		value := binary.AppendVarint(binary.AppendVarint(nil, int64(b.paid)), int64(r.table.Now))
		meta = append(meta, core.MetaEntry{Name: b.rateName(r), Value: value})
	}
	r.dirtyRates = r.dirtyRates[:0]
	return meta
}

// RestoreRate restores the used part of a rate. If the clock was set back since, the remaining wait does not become
// longer.
func (r *Rules) RestoreRate(name string, value []byte) error {
	paid, n := binary.Varint(value)
	at, k := binary.Varint(value[max(n, 0):])
	if n <= 0 || k <= 0 || n+k != len(value) {
		return errors.New("a rate with a wrong value")
	}
	r.rates[name] = min(core.Instant(paid), r.table.Now+core.Instant(max(paid-at, 0)))
	return nil
}

// RestoredRates passes the restored rates to existing buckets. New buckets take theirs when they are created. Rates
// that are fully available again are dropped.
func (r *Rules) RestoredRates() {
	for b := range r.buckets.All() {
		r.takeRate(b)
	}
	for _, name := range slices.Sorted(maps.Keys(r.rates)) {
		if r.rates[name] <= r.table.Now {
			delete(r.rates, name)
			r.table.LogMeta(core.MetaEntry{Name: name})
		}
	}
}

// takeRate gives a bucket its restored rate.
func (r *Rules) takeRate(b *bucket) {
	if len(r.rates) == 0 || b.limit.Rate == 0 {
		return
	}
	name := b.rateName(r)
	if paid, there := r.rates[name]; there {
		b.paid, b.rateStored = max(b.paid, paid), true
		delete(r.rates, name)
	}
}

// dropRate removes the stored rate of a bucket that is no longer needed.
func (r *Rules) dropRate(b *bucket) {
	if b.rateStored && !b.isRetired() { // otherwise another bucket has it now
		r.table.LogMeta(core.MetaEntry{Name: b.rateName(r)})
	}
	b.rateDirty, b.rateStored = false, false
}
