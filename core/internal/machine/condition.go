package machine

import (
	"slices"

	"broker/core"
)

// findIf finds the job that ref names and checks the condition. With ErrConflict it also returns the job.
func (m *Machine) findIf(ref core.Ref, is *core.Condition) (uint32, *entry, error) {
	h := m.find(ref)
	if h == 0 {
		return 0, nil, core.ErrNotFound
	}
	e := m.jobs.at(h)
	if !m.holds(e, is) && (m.run == nil || !m.run.applying) {
		return h, e, core.ErrConflict
	}
	return h, e, nil
}

// holds reports whether a job meets a condition.
func (m *Machine) holds(e *entry, is *core.Condition) bool {
	return (len(is.States) == 0 || slices.Contains(is.States, e.state)) &&
		(!is.HasEpoch || is.Epoch == e.epoch) &&
		(is.LeasedAt == 0 || e.state == core.Leased && is.LeasedAt == e.leasedAt) &&
		(is.Queue == "" || is.Queue == m.queues[e.queue].name) &&
		(is.Worker == "" || e.has(held) && e.holderKind == core.HeldByWorker && is.Worker == m.workers.names[e.holder])
}
