package machine

import (
	"slices"

	"broker/core"
	"broker/core/internal/table"
)

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
		(!is.Unended || e.State == core.Leased && (e.StateTimer == 0 || m.table.Timers.At(e.StateTimer) > m.table.Now)) &&
		(is.LeasedAt == 0 || e.State == core.Leased && is.LeasedAt == e.LeasedAt) &&
		(is.Queue == "" || is.Queue == m.queues[e.Queue].Name) &&
		(is.Worker == "" || e.Has(table.Held) && e.HolderKind == core.HeldByWorker && is.Worker == m.table.Workers.NameOf(e.Holder))
}
