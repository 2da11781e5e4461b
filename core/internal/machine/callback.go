package machine

import (
	"broker/core"
	"broker/core/internal/table"
)

// openBatch makes a batch; its callbacks are admitted with it and blocked until it releases them.
func (m *Machine) openBatch(c *client, op *core.OpenBatch) {
	if j, commit, err := m.openRefusal(op); err != nil {
		m.reply(c, core.Reply{Kind: core.Failed, Tag: op.Tag, Err: err, Job: j, Commit: commit})
		return
	}
	g := &batch{number: m.table.NextSeq}
	m.table.NextSeq++
	m.table.Reserve()
	g.batchMeta = batchMeta{Parent: op.Parent, Description: op.Description, Owner: op.Owner, CreatedAt: m.table.Now, Until: op.OpenUntil}
	if parent := m.batches[op.Parent]; parent != nil {
		parent.children.count(g, 1)
	}
	m.addBatch(g)
	m.linkBatch(g)
	m.mutate(g, func() {
		g.CompleteJob = m.admitCallback(c, op.Complete, g.number)
		g.SuccessJob = m.admitCallback(c, op.Success, g.number)
	})
	m.reply(c, core.Reply{Kind: core.BatchReply, Tag: op.Tag, Seq: g.number, Commit: m.table.Promise()})
}

// openRefusal is why a batch must not be made, the callback that causes this, if any, and the commit that this depends on.
func (m *Machine) openRefusal(op *core.OpenBatch) (*core.Job, core.Commit, error) {
	if op.Parent != 0 && m.batches[op.Parent] == nil {
		return nil, m.batchCommit(nil), core.ErrNoBatch
	}
	if err := m.closedTo(false); err != nil {
		return nil, 0, err
	}
	for _, j := range []*core.Job{op.Complete, op.Success} {
		switch {
		case j == nil:
		case !m.valid(&core.Submit{Job: j}) || j.Parent != 0 || len(j.After) > 0:
			return j, 0, core.ErrInvalid
		case j.ID != "" && m.table.Find(core.Ref{ID: j.ID}) != 0:
			return j, m.table.JobCommit(m.table.At(m.table.Find(core.Ref{ID: j.ID}))), core.ErrDuplicate
		case j.Batch != 0:
			if err := m.batchRefusal(j.Batch); err != nil {
				return j, m.batchCommit(m.batches[j.Batch]), err
			}
		}
	}
	if op.Complete != nil && op.Success != nil && op.Complete.ID != "" && op.Complete.ID == op.Success.ID {
		return op.Success, 0, core.ErrDuplicate
	}
	return nil, 0, nil
}

// batchRefusal is why a job must not join a batch.
func (m *Machine) batchRefusal(number uint64) error {
	g := m.batches[number]
	switch {
	case g == nil:
		return core.ErrNoBatch
	case g.Committed:
		return core.ErrBatchState
	}
	return nil
}

// admitCallback admits a job that is blocked until its batch releases it.
func (m *Machine) admitCallback(c *client, j *core.Job, number uint64) uint64 {
	if j == nil {
		return 0
	}
	j.CallbackFor, j.CreatedAt = number, m.table.Now
	h := m.admit(j)
	e := m.table.At(h)
	m.count(e.Origin, c.protocol, func(t *core.Totals) { t.Submitted++ })
	m.queues[e.Queue].counts.Submitted[e.Origin]++
	m.joinBatch(h)
	m.move(e, core.Blocked)
	m.table.Enlist(h, e)
	e.Set(table.Changed)
	m.table.Touch(h, e)
	m.meters.Submitted(&m.queues[e.Queue].watch, m.table.Now)
	m.record(h, e, core.EventSubmitted, "")
	return e.Seq
}

// callbackDue is the state of a callback that is due; a batch without one has passed it.
func (m *Machine) callbackDue(seq uint64) core.CallbackState {
	if m.table.Handle(seq) == 0 {
		return core.CallbackDone
	}
	return core.CallbackEnqueued
}

// releaseCallback releases a callback job, unless a client has already made it ready.
func (m *Machine) releaseCallback(seq uint64) {
	h := m.table.Handle(seq)
	if h == 0 {
		return
	}
	if e := m.table.At(h); e.State == core.Blocked {
		m.table.Touch(h, e)
		m.unblock(h, e)
	}
}

// callbackEnded records the end of a callback. If it is gone without being done, the batch continues without it and cannot
// succeed.
func (m *Machine) callbackEnded(g *batch, seq uint64, success bool) {
	m.mutate(g, func() {
		switch seq {
		case g.CompleteJob:
			if !success {
				g.CompleteLost = lostCallback(g.Complete) + 1
			}
			g.Complete, g.CompleteJob = core.CallbackDone, 0
		case g.SuccessJob:
			if !success {
				g.SuccessLost = lostCallback(g.Success) + 1
			}
			g.Success, g.SuccessJob = core.CallbackDone, 0
		default:
			return // it ended before a restart and is only kept for its state
		}
		g.CallbackLost = g.CallbackLost || !success
	})
	m.checkBatch(g)
}

func (m *Machine) closeBatch(c *client, op *core.CloseBatch) {
	g := m.batches[op.Batch]
	if g == nil {
		m.refusedAt(c, op.Tag, core.ErrNoBatch, m.batchCommit(nil))
		return
	}
	m.mutate(g, func() {
		switch {
		case !op.Reopen:
			g.Committed = true
			m.groupUntil(g, 0)
		case g.Committed:
			g.Committed, g.Reopened = false, true
			m.groupUntil(g, m.table.Now.Add(reopenedFor))
		}
	})
	m.checkBatch(g)
	m.reply(c, core.Reply{Kind: core.Accepted, Tag: op.Tag, Seq: g.number, Commit: m.table.Promise()})
}

func (m *Machine) inspectBatch(c *client, op *core.InspectBatch) {
	g := m.batches[op.Batch]
	if g == nil {
		m.refusedAt(c, op.Tag, core.ErrNoBatch, m.batchCommit(nil))
		return
	}
	info := g.info()
	m.reply(c, core.Reply{Kind: core.BatchReply, Tag: op.Tag, Seq: g.number, Commit: m.batchCommit(g), Batch: &info})
}

// info describes a batch to clients.
func (g *batch) info() core.BatchInfo {
	return core.BatchInfo{
		Number: g.number, Parent: g.Parent, Description: g.Description, Owner: g.Owner, CreatedAt: g.CreatedAt, Until: g.Until, Total: g.Total,
		Pending: g.members + g.Lost, Failed: g.failing + g.Lost, Lost: g.Lost, Children: g.children.all, Committed: g.Committed,
		Complete: g.CompleteLost.shown(g.Complete), Success: g.SuccessLost.shown(g.Success),
		CompleteJob: g.CompleteJob, SuccessJob: g.SuccessJob,
	}
}

// listBatches walks the list of batches from a number, which may be that of a batch that is gone.
func (m *Machine) listBatches(c *client, op *core.ListBatches) {
	start, next := m.lastBatch, func(g *batch) *batch { return g.older }
	beyond := func(g *batch) bool { return g.number >= op.From }
	if op.Oldest {
		start, next = m.firstBatch, func(g *batch) *batch { return g.newer }
		beyond = func(g *batch) bool { return g.number <= op.From }
	}
	if g := m.batches[op.From]; g != nil {
		start = next(g)
	}
	answer, commit := &core.Answer{Batches: []core.BatchInfo{}}, m.batchCommit(nil)
	limit := pageLimit(op.Limit)
	for g := start; g != nil; g = next(g) {
		if op.From != 0 && beyond(g) {
			continue
		}
		if len(answer.Batches) == limit {
			answer.NextBatch = answer.Batches[limit-1].Number
			break
		}
		answer.Batches = append(answer.Batches, g.info())
		commit = max(commit, m.batchCommit(g))
	}
	m.reply(c, core.Reply{Kind: core.Answered, Tag: op.Tag, Commit: commit, Answer: answer})
}
