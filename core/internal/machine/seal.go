package machine

import "broker/core/internal/table"

// Finish returns the reserved numbers that were not assigned, and stores measurements. No job may be admitted after it.
func (m *Machine) Finish() {
	if m.opts.Persist {
		m.table.AddMeta(m.meters.SaveAll)
		m.table.ReturnNumbers()
	}
}

// Sealed is a batch in flight.
type Sealed struct {
	table.Sealed
	Waiters []uint32 // slots of clients with replies that wait for it
}

// Seal closes the open batch: all changes since the last batch, with each job once, in its current state. The caller makes it
// durable, then calls Committed. into is emptied and reused.
func (m *Machine) Seal(into *Sealed) {
	b := &into.Batch
	m.table.StoreLeaseEnds = m.stores(leaseEndFormat)
	m.table.Seal(&into.Sealed)
	into.Waiters, m.waitsOpen = append(into.Waiters[:0], m.waitsOpen...), m.waitsOpen[:0]
	b.Meta = m.schedules.Seal(m.batches.Seal(b.Meta))
	if rates := m.limits.SealRates(b.Meta); m.stores(ratesFormat) {
		b.Meta = rates
	}
	if m.statsDirty && (len(b.Changes) > 0 || len(b.Meta) > 0 || m.table.Open%64 == 0) {
		b.Meta = m.sealStats(b.Meta)
	}
	if len(b.Changes) > 0 || len(b.Meta) > 0 {
		b.Meta = m.meters.Seal(m.table.Now, b.Meta)
	}
}

// Committed records that a batch is durable. If the cache is full, it evicts payloads that are now in the store. It adds the
// clients whose later replies depend on the batch to s.Waiters.
func (m *Machine) Committed(s *Sealed) {
	for _, slot := range m.waitsInflight {
		if c := m.clients[slot]; c != nil && c.waitsOpen != s.Commit {
			s.Waiters = append(s.Waiters, slot)
		}
	}
	m.waitsInflight = m.waitsInflight[:0]
	m.table.Committed(&s.Sealed)
	m.logs.Committed()
}
