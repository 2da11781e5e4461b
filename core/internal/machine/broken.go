package machine

import (
	"fmt"

	"broker/core"
)

// Jobs that wait for one that is gone without being done, or dead. What becomes of a job by its OnBroken may break others; so the
// jobs are noted while links change, and decided about at the end of the operation, in the same batch.

// breach is a job that waits for another, which is dead or gone without being done, or has a child that is.
type breach struct{ seq, pred uint64 }

// breaks notes that a dependency of a job has ended. It returns true if that changes the job's status: one that was not done marks
// the job as broken, unless the job runs without it.
func (m *Machine) breaks(e *entry, x *optional, pred uint64, success bool) bool {
	if success || x.onBroken == core.BrokenReleases {
		return false
	}
	if x.onBroken != core.BrokenWaits {
		m.breaking = append(m.breaking, breach{e.seq, pred})
	}
	if e.has(broken) {
		return false
	}
	e.set(broken)
	return true
}

// breakIfDead notes a new dependency that is dead.
func (m *Machine) breakIfDead(e *entry, x *optional, p uint32) {
	if pred := m.jobs.at(p); x.onBroken != core.BrokenWaits && pred.state == core.Dead {
		m.breaking = append(m.breaking, breach{e.seq, pred.seq})
	}
}

// breakDependents notes the jobs that wait for a job that has died, and those that wait for one of its ancestors to be closed.
func (m *Machine) breakDependents(h uint32) {
	x := m.optionalState(h)
	if x == nil {
		return
	}
	seq := m.jobs.at(h).seq
	m.breakAll(x.children, seq)
	for {
		m.breakAll(x.successors, seq)
		p := m.bySeq.get(x.parent)
		if x.parent == 0 || p == 0 || x.isClosed {
			return
		}
		if seq, x = x.parent, m.optionalState(p); x == nil {
			return
		}
	}
}

// breakAll notes the jobs of a list that wait for pred and do not want to wait for a dead one.
func (m *Machine) breakAll(seqs []uint64, pred uint64) {
	for _, seq := range seqs {
		if x := m.optionalState(m.bySeq.get(seq)); x != nil && x.onBroken != core.BrokenWaits && m.waits(seq, pred) {
			m.breaking = append(m.breaking, breach{seq, pred})
		}
	}
}

// decideBroken decides about the jobs that were noted.
func (m *Machine) decideBroken() {
	for len(m.breaking) > 0 && m.stopped == nil {
		b := m.breaking[0]
		m.breaking = m.breaking[1:]
		h := m.bySeq.get(b.seq)
		if h == 0 || m.jobs.at(h).state != core.Blocked {
			continue
		}
		switch e, x := m.jobs.at(h), m.optionals[h]; x.onBroken {
		case core.BrokenReleases:
			m.releaseFrom(h, e, x, b.pred)
		case core.BrokenFails:
			m.detach(h, e)
			failure := &core.Failure{Type: core.DependencyFailed, Message: fmt.Sprintf(core.DependencyFailedMessage, b.pred)}
			m.failJob(h, core.Internal, failure, afterFail{final: true, bury: true})
		case core.BrokenDrops:
			m.purgeJob(h, core.Internal)
		case core.BrokenWaits:
		}
	}
	if len(m.breaking) == 0 {
		m.breaking = nil
	}
}

// releaseFrom ends the waiting of a job for a dead one. A job with no other dependency is unblocked.
func (m *Machine) releaseFrom(h uint32, e *entry, x *optional, pred uint64) {
	m.stopWaiting(e, x, func(seq uint64) bool { return seq == pred })
	m.rewriteStatus(h, e)
	if len(x.waiting) == 0 && !e.has(broken) && !m.heldByBatch(h, e) {
		m.unblock(h, e)
	}
}
