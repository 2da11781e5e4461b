package machine

import (
	"fmt"

	"broker/core"
	"broker/core/internal/table"
)

// A poisonous job crashes its workers: its leases end one after another without a reply, by a lost connection or by
// expiry. After Options.PoisonAfter such leases in a row, the job moves to the dead set, where people can examine it
// and put it back. This does not apply to jobs with a limit of attempts, nor to leases that count as failures.

// leaseLost counts a lease that ended without a reply, unless the broker itself closes the connections.
func (m *Machine) leaseLost(h uint32, e *table.Entry) {
	if m.opts.PoisonAfter == 0 || m.maxAttempts(e) > 0 || m.draining || int(e.LostLeases) >= m.opts.PoisonAfter {
		return
	}
	e.LostLeases++
	e.Set(table.Changed)
	m.table.Touch(h, e)
}

// poisonous reports whether a job has lost too many leases.
func (m *Machine) poisonous(e *table.Entry) bool {
	return m.opts.PoisonAfter > 0 && m.maxAttempts(e) == 0 && int(e.LostLeases) >= m.opts.PoisonAfter
}

// buryPoison moves a job whose lease has just ended to the dead set.
func (m *Machine) buryPoison(h uint32, e *table.Entry) {
	failure := &core.Failure{
		Type: core.Poisonous, Message: fmt.Sprintf(core.PoisonousMessage, e.LostLeases),
	}
	m.failJob(h, e.HolderFrom, failure, afterFail{final: true, bury: true})
}

// Quarantine buries an unfinished job that the store cannot read: no worker can run it. The lease that found the damage
// does not count as lost. Quarantine returns false if the job has ended or is gone.
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
