package machine

import (
	"broker/core"
	"broker/core/internal/table"
)

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
