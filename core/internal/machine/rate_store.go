package machine

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"

	"broker/core"
	"broker/core/internal/table"
)

// What leases have used of a rate is stored with the next commit, so that neither a restart nor another leader grants a burst anew. No
// lease waits for that: a crash forgets those of the batch that it takes.

// ratePrefix begins the names of the meta entries of rates. It is on disk and never changes.
const ratePrefix = "core/rate/"

// rateName is the name of the meta entry of a bucket.
func (b *bucket) rateName(m *Machine) string {
	if b.of == nil {
		return ratePrefix + "shared/" + b.name.name
	}
	queue := m.queues[b.of.queue].Name
	return fmt.Sprintf("%s%d/%d/%s/%s", ratePrefix, b.name.scope, len(queue), queue, b.name.name)
}

// rateChanged adds the rate of a bucket to the open batch.
func (m *Machine) rateChanged(b *bucket) {
	if m.opts.Persist && !b.rateDirty {
		b.rateDirty = true
		m.dirtyRates = append(m.dirtyRates, b.number)
		m.table.AddOpen(table.ChangeBytes)
	}
}

// sealRates adds the rates that have changed to a batch.
func (m *Machine) sealRates(meta []core.MetaEntry) []core.MetaEntry {
	for _, number := range m.dirtyRates {
		b := m.buckets[number]
		if b == nil || !b.rateDirty {
			continue // dropped, and the number may belong to another one
		}
		b.rateDirty, b.rateStored = false, true
		value := binary.AppendVarint(binary.AppendVarint(nil, int64(b.paid)), int64(m.table.Now))
		meta = append(meta, core.MetaEntry{Name: b.rateName(m), Value: value})
	}
	m.dirtyRates = m.dirtyRates[:0]
	return meta
}

// restoreRate restores what is used of a rate. If the clock was set back since, the wait is as long as it was.
func (m *Machine) restoreRate(name string, value []byte) error {
	paid, n := binary.Varint(value)
	at, k := binary.Varint(value[max(n, 0):])
	if n <= 0 || k <= 0 || n+k != len(value) {
		return errors.New("a rate with a wrong value")
	}
	m.rates[name] = min(core.Instant(paid), m.table.Now+core.Instant(max(paid-at, 0)))
	return nil
}

// restoredRates gives the rates to the buckets that exist. Others take theirs when they are made. What has been paid for since is of no use.
func (m *Machine) restoredRates() {
	for _, b := range m.buckets {
		if b != nil {
			m.takeRate(b)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(m.rates)) {
		if m.rates[name] <= m.table.Now {
			delete(m.rates, name)
			m.table.LogMeta(core.MetaEntry{Name: name})
		}
	}
}

// takeRate gives a bucket what was restored of its rate.
func (m *Machine) takeRate(b *bucket) {
	if len(m.rates) == 0 || b.limit.Rate == 0 {
		return
	}
	name := b.rateName(m)
	if paid, there := m.rates[name]; there {
		b.paid, b.rateStored = max(b.paid, paid), true
		delete(m.rates, name)
	}
}

// dropRate removes the stored rate of a bucket that is not needed any more.
func (m *Machine) dropRate(b *bucket) {
	if b.rateStored && !b.isRetired() { // else another bucket has it now
		m.table.LogMeta(core.MetaEntry{Name: b.rateName(m)})
	}
	b.rateDirty, b.rateStored = false, false
}
