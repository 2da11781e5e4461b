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

// openRefusal returns why a batch cannot be created, the callback that causes this, if any, and the commit that the
// refusal depends on.
func (m *Machine) openRefusal(op *core.OpenBatch) (*core.Job, core.Commit, error) {
	if op.Parent != 0 && m.batches.Find(op.Parent) == nil {
		return nil, m.batches.Commit(nil), core.ErrNoBatch
	}
	if err := m.closedTo(false); err != nil {
		return nil, 0, err
	}
	for _, j := range []*core.Job{op.Complete, op.Success} {
		switch {
		case j == nil:
		case !(&core.Submit{Job: j}).IsValid(m.table.NextSeq) || j.Parent != 0 || len(j.After) > 0:
			return j, 0, core.ErrInvalid
		case j.ID != "" && m.table.Find(core.Ref{ID: j.ID}) != 0:
			return j, m.table.JobCommit(m.table.At(m.table.Find(core.Ref{ID: j.ID}))), core.ErrDuplicate
		case j.Batch != 0:
			if err := m.batches.Refusal(j.Batch); err != nil {
				return j, m.batches.Commit(m.batches.Find(j.Batch)), err
			}
		}
	}
	if op.Complete != nil && op.Success != nil && op.Complete.ID != "" && op.Complete.ID == op.Success.ID {
		return op.Success, 0, core.ErrDuplicate
	}
	return nil, 0, nil
}

// admitCallback admits a job that is blocked until its batch releases it.
func (m *Machine) admitCallback(c *client, j *core.Job, number uint64) uint64 {
	if j == nil {
		return 0
	}
	j.Seq, j.CallbackFor, j.CreatedAt = 0, number, m.table.Now
	h, e := m.admit(j)
	m.count(e.Origin, c.protocol, func(t *core.Totals) { t.Submitted++ })
	m.queues[e.Queue].counts.of(e.Origin).submitted++
	m.batches.Join(h)
	m.move(e, core.Blocked)
	m.table.Enlist(h, e)
	e.Set(table.Changed)
	m.table.Touch(h, e)
	m.meters.Submitted(&m.queues[e.Queue].metered, m.table.Now)
	m.record(h, e, core.EventSubmitted, "")
	return e.Seq
}

// openBatch creates a batch. Its callbacks are admitted at the same time and blocked until the batch releases them.
func (m *Machine) openBatch(c *client, op *core.OpenBatch) {
	if j, commit, err := m.openRefusal(op); err != nil {
		m.reply(c, core.Reply{Kind: core.Failed, Tag: op.Tag, Err: err, Job: j, Commit: commit})
		return
	}
	g := m.batches.Open(op)
	m.batches.SetCallbacks(g, func() (complete, success uint64) {
		complete = m.admitCallback(c, op.Complete, g.Number())
		return complete, m.admitCallback(c, op.Success, g.Number())
	})
	m.reply(c, core.Reply{Kind: core.BatchReply, Tag: op.Tag, Seq: g.Number(), Commit: m.table.Promise()})
}

func (m *Machine) closeBatch(c *client, op *core.CloseBatch) {
	g := m.batches.Find(op.Batch)
	if g == nil {
		m.refusedAt(c, op.Tag, core.ErrNoBatch, m.batches.Commit(nil))
		return
	}
	m.batches.Close(g, op.Reopen)
	m.reply(c, core.Reply{Kind: core.Accepted, Tag: op.Tag, Seq: op.Batch, Commit: m.table.Promise()})
}

func (m *Machine) inspectBatch(c *client, op *core.InspectBatch) {
	g := m.batches.Find(op.Batch)
	if g == nil {
		m.refusedAt(c, op.Tag, core.ErrNoBatch, m.batches.Commit(nil))
		return
	}
	info := g.Info()
	m.reply(c, core.Reply{Kind: core.BatchReply, Tag: op.Tag, Seq: op.Batch, Commit: m.batches.Commit(g), Batch: &info})
}

func (m *Machine) listBatches(c *client, op *core.ListBatches) {
	answer := &core.Answer{}
	var commit core.Commit
	answer.Batches, answer.NextBatch, commit = m.batches.List(op, pageLimit(op.Limit))
	m.reply(c, core.Reply{Kind: core.Answered, Tag: op.Tag, Commit: commit, Answer: answer})
}

// batchTimeout ends a batch. Remaining members continue as plain jobs; callbacks that never ran are removed.
func (m *Machine) batchTimeout(slot uint32) {
	g := m.batches.Expire(slot)
	if g == nil {
		return
	}
	for _, seq := range g.CallbackJobs() {
		if h := m.table.Handle(seq); seq != 0 && h != 0 && m.table.At(h).State == core.Blocked {
			m.end(h, &core.Outcome{Cause: core.Expired})
		}
	}
	m.batches.Ended(g)
}
