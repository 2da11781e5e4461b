package machine

import (
	"broker/core"
	"broker/core/internal/table"
)

// Quarantine buries an unfinished job that the store cannot read: no worker can run it. The lease that found the damage does not
// count as lost. Quarantine returns false if the job has ended or is gone.
func (m *Machine) Quarantine(now core.Instant, seq uint64, reason string) bool {
	m.setNow(now)
	m.actor = nil
	m.freshEffort()
	defer m.serveOffers()
	h := m.table.Handle(seq)
	if h == 0 || m.stopped != nil || !m.table.At(h).State.Unfinished() {
		return false
	}
	e := m.table.At(h)
	m.detach(h, e)
	e.Clear(table.Rerun) // the job cannot run again
	failure := &core.Failure{Type: core.Damaged, Message: core.CutText(reason, core.MaxTimelineText)}
	m.failJob(h, core.Internal, failure, afterFail{final: true, bury: true})
	return true
}
