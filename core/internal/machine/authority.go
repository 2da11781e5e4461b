package machine

import (
	"errors"
	"slices"

	"broker/core"
	"broker/core/internal/table"
)

// authorize finds the job of a finish or report and checks that the client may do that. If the job exists, it is
// returned with the error too.
func (m *Machine) authorize(
	c *client, ref core.Ref, is *core.Condition, authority core.FinishAuthority,
) (uint32, *table.Entry, error) {
	h, e, err := m.findIf(ref, is)
	if err != nil {
		return h, e, err
	}
	return h, e, m.authorityRefusal(c, e, authority)
}

// authorizeEnd is authorize for the end of a run. A lease that the previous process granted just before it ended may be
// missing in the store. The report of its worker still counts, and the lease is counted with it.
func (m *Machine) authorizeEnd(
	c *client, ref core.Ref, is *core.Condition, authority core.FinishAuthority,
) (uint32, *table.Entry, error) {
	h, e, err := m.findIf(ref, is)
	if err == nil {
		err = m.authorityRefusal(c, e, authority)
	}
	if authority == core.ByLeased && errors.Is(err, core.ErrNotLeased) && m.mayHaveBeenLeased(e) {
		return h, e, nil
	}
	return h, e, err
}

// mayHaveBeenLeased reports whether a ready job may have been leased when the previous process ended.
func (m *Machine) mayHaveBeenLeased(e *table.Entry) bool {
	return e.State == core.Ready && e.Has(table.Untouched)
}

// countLostLease counts a lease of which only the end is known.
func (m *Machine) countLostLease(e *table.Entry, authority core.FinishAuthority) {
	if authority == core.ByLeased && m.mayHaveBeenLeased(e) {
		e.Attempts++
		e.Epoch++
	}
}

// authorityRefusal returns why a client must not finish a job.
func (m *Machine) authorityRefusal(c *client, e *table.Entry, authority core.FinishAuthority) error {
	switch authority {
	case core.ByHolder:
		if e.State != core.Leased || e.HolderKind != core.HeldByConn || e.Holder != c.slot {
			return core.ErrNotHolder
		}
	case core.ByLeased:
		if e.State != core.Leased {
			return core.ErrNotLeased
		}
	case core.ByAnyone:
		if !e.State.Unfinished() {
			return core.ErrFinished
		}
	}
	return nil
}

// findIf finds the job that ref names and checks the condition. With ErrConflict it also returns the job.
func (m *Machine) findIf(ref core.Ref, is *core.Condition) (uint32, *table.Entry, error) {
	h := m.table.Find(ref)
	if h == 0 {
		return 0, nil, core.ErrNotFound
	}
	e := m.table.At(h)
	if is.Restricts() && !m.holds(e, is) && !m.list.IsApplied() {
		return h, e, core.ErrConflict
	}
	return h, e, nil
}

// holds reports whether a job meets a condition.
func (m *Machine) holds(e *table.Entry, is *core.Condition) bool {
	return (len(is.States) == 0 || slices.Contains(is.States, e.State)) &&
		(!is.HasEpoch || is.Epoch == e.Epoch) &&
		(!is.Unended ||
			e.State == core.Leased && (e.StateTimer == 0 || m.table.Timers.At(e.StateTimer) > m.table.Now)) &&
		(is.LeasedAt == 0 || e.State == core.Leased && is.LeasedAt == e.LeasedAt) &&
		(is.Queue == "" || is.Queue == m.queues[e.Queue].Name) &&
		(is.Worker == "" ||
			e.Has(table.Held) && e.HolderKind == core.HeldByWorker && is.Worker == m.table.Workers.NameOf(e.Holder))
}
