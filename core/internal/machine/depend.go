package machine

import (
	"fmt"

	"broker/core"
	"broker/core/internal/table"
)

// heldByBatch reports whether a job is a callback that its batch has not released.
func (m *Machine) heldByBatch(h uint32, e *table.Entry) bool {
	x := m.table.Optional(h)
	return e.State == core.Blocked && x != nil && x.CallbackFor != 0
}

// unblock makes a job scheduled or ready.
func (m *Machine) unblock(h uint32, e *table.Entry) {
	m.table.Unlist(h, e)
	if e.ReadyAt < m.table.Now {
		e.ReadyAt = m.table.Now
		e.Clear(table.ScheduledOrder)
	}
	m.schedule(h, e)
}

// Broken jobs wait for a job that is dead or ended without being done. The OnBroken of a job decides what happens to
// it, which may break further jobs. So broken jobs are collected while links change, and handled at the end of the
// operation, in the same batch.

// decideBroken handles the collected broken jobs.
func (m *Machine) decideBroken() {
	for m.stopped == nil {
		b, noted := m.links.NextBroken()
		if !noted {
			return
		}
		h := m.table.Handle(b.Seq)
		if h == 0 || m.table.At(h).State != core.Blocked {
			continue
		}
		switch e, x := m.table.At(h), m.table.Optional(h); x.OnBroken {
		case core.BrokenReleases:
			m.releaseFrom(h, e, x, b.Pred)
		case core.BrokenFails:
			m.detach(h, e)
			failure := &core.Failure{
				Type: core.DependencyFailed, Message: fmt.Sprintf(core.DependencyFailedMessage, b.Pred),
			}
			waiting := x.Waiting
			m.failJob(h, core.Internal, failure, afterFail{final: true, bury: true})
			m.links.Keep(h, waiting)
		case core.BrokenDrops:
			m.purgeJob(h, core.Internal)
		case core.BrokenWaits:
		}
	}
}

// linksDue begins a step of the ends and deaths of jobs with many dependents.
func (m *Machine) linksDue() {
	if m.links.Due(m.stopped != nil) {
		m.freshEffort()
		m.continueLinks()
	}
}

// continueLinks goes on with what ends and deaths have left, until the step is over.
func (m *Machine) continueLinks() {
	for m.stopped == nil && m.links.Continue() {
		m.decideBroken()
	}
}

// releaseFrom removes a dead job from the dependencies of a job. A job without other dependencies is unblocked.
func (m *Machine) releaseFrom(h uint32, e *table.Entry, x *table.Optional, pred uint64) {
	m.links.StopWaiting(h, x, func(seq uint64) bool { return seq == pred })
	m.table.RewriteStatus(h, e)
	if len(x.Waiting) == 0 && !e.Has(table.Broken) && !m.heldByBatch(h, e) {
		m.unblock(h, e)
	}
}

// linksHost is the machine as links see it.
type linksHost struct{ m *Machine }

// Unblock implements link.Host.
func (x linksHost) Unblock(h uint32, e *table.Entry) { x.m.unblock(h, e) }

// Remove implements link.Host.
func (x linksHost) Remove(h uint32) { x.m.remove(h) }

// Joining implements link.Host.
func (x linksHost) Joining(seq uint64) []uint64 { return x.m.list.WaitingFor(seq) }

// Awaiting implements link.Host.
func (x linksHost) Awaiting(seq uint64) []uint64 { return x.m.list.WaitsFor(seq) }

// stepsFormat is the first format of entries that an end in steps may be in: older nodes do not continue it.
const stepsFormat = 5

// TakesSteps implements link.Host.
func (x linksHost) TakesSteps() bool {
	return x.m.opts.Format == nil || x.m.opts.Format() >= stepsFormat
}

// batchesHost is the machine as batches see it.
type batchesHost struct{ m *Machine }

// Unblock implements batch.Host.
func (x batchesHost) Unblock(h uint32, e *table.Entry) { x.m.unblock(h, e) }

// Spent implements batch.Host.
func (x batchesHost) Spent() bool { return x.m.spent() }

// Later implements batch.Host.
func (x batchesHost) Later(next func() (more bool)) { x.m.later(next) }
