package machine

import (
	"fmt"

	"broker/core"
	"broker/core/internal/table"
)

// Jobs that wait for one that is gone without being done, or dead. What becomes of a job by its OnBroken may break others; so the
// jobs are noted while links change, and decided about at the end of the operation, in the same batch.

// breach is a job that waits for another, which is dead or gone without being done, or has a child that is.
type breach struct{ seq, pred uint64 }

// breaks notes that a dependency of a job has ended. It returns true if that changes the job's status: one that was not done marks
// the job as broken, unless the job runs without it.
func (m *Machine) breaks(e *table.Entry, x *table.Optional, pred uint64, success bool) bool {
	if success || x.OnBroken == core.BrokenReleases {
		return false
	}
	if x.OnBroken != core.BrokenWaits {
		m.breaking = append(m.breaking, breach{e.Seq, pred})
	}
	if e.Has(table.Broken) {
		return false
	}
	e.Set(table.Broken)
	return true
}

// breakIfDead notes a new dependency that is dead.
func (m *Machine) breakIfDead(e *table.Entry, x *table.Optional, p uint32) {
	if pred := m.table.At(p); x.OnBroken != core.BrokenWaits && pred.State == core.Dead {
		m.breaking = append(m.breaking, breach{e.Seq, pred.Seq})
	}
}

// breakDependents notes the jobs that wait for a job that has died, and those that wait for one of its ancestors to be closed.
func (m *Machine) breakDependents(h uint32) {
	x := m.table.Optional(h)
	if x == nil {
		return
	}
	seq := m.table.At(h).Seq
	m.breakAll(x.Children, seq)
	for {
		m.breakAll(x.Successors, seq)
		p := m.table.Handle(x.Parent)
		if x.Parent == 0 || p == 0 || x.IsClosed {
			return
		}
		if seq, x = x.Parent, m.table.Optional(p); x == nil {
			return
		}
	}
}

// breakAll notes the jobs of a list that wait for pred and do not want to wait for a dead one.
func (m *Machine) breakAll(seqs []uint64, pred uint64) {
	for _, seq := range seqs {
		if x := m.table.Optional(m.table.Handle(seq)); x != nil && x.OnBroken != core.BrokenWaits && m.waits(seq, pred) {
			m.breaking = append(m.breaking, breach{seq, pred})
		}
	}
}

// decideBroken decides about the jobs that were noted.
func (m *Machine) decideBroken() {
	for len(m.breaking) > 0 && m.stopped == nil {
		b := m.breaking[0]
		m.breaking = m.breaking[1:]
		h := m.table.Handle(b.seq)
		if h == 0 || m.table.At(h).State != core.Blocked {
			continue
		}
		switch e, x := m.table.At(h), m.table.Optional(h); x.OnBroken {
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
func (m *Machine) releaseFrom(h uint32, e *table.Entry, x *table.Optional, pred uint64) {
	m.stopWaiting(e, x, func(seq uint64) bool { return seq == pred })
	m.rewriteStatus(h, e)
	if len(x.Waiting) == 0 && !e.Has(table.Broken) && !m.heldByBatch(h, e) {
		m.unblock(h, e)
	}
}
