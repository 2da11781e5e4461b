package machine

import (
	"fmt"

	"broker/core"
	"broker/core/internal/plan"
	"broker/core/internal/table"
)

// apply decides one operation. The operations that every job needs come first: a switch over all operations takes
// longer.
func (m *Machine) apply(c *client, op core.Op) {
	switch op := op.(type) {
	case *core.Submit:
		m.submit(c, op)
	case *core.Lease:
		m.lease(c, op)
	case *core.Complete:
		m.complete(c, op)
	default:
		m.applyOther(c, op)
	}
}

//nolint:funlen // a flat table
func (m *Machine) applyOther(c *client, op core.Op) {
	switch op := op.(type) {
	case *core.Fail:
		m.fail(c, op)
	case *core.Report:
		m.report(c, op)
	case *core.SendData:
		m.sendData(c, op)
	case *core.Await:
		m.await(c, op)
	case *core.Register:
		m.register(c, op)
	case *core.Unregister:
		m.unregister(c, op)
	case *core.Sleep:
		m.sleep(c, op)
	case *core.CancelLease:
		m.cancelLease(c)
	case *core.CancelWaits:
		m.cancelWaits(c)

	case *core.Resubmit:
		m.resubmit(c, op)
	case *core.Rerun:
		m.rerun(c, op)
	case *core.Release:
		m.releaseOp(c, op)
	case *core.Update:
		m.update(c, op)
	case *core.Move:
		m.moveJob(c, op)
	case *core.Atomic:
		m.atomic(c, op)
	case *core.PutSchedule:
		m.putSchedule(c, op)
	case *core.PauseSchedule:
		m.pauseSchedule(c, op)
	case *core.RemoveSchedule:
		m.removeSchedule(c, op)
	case *core.RunSchedule:
		m.runSchedule(c, op)
	case *core.ListSchedules:
		m.listSchedules(c, op)
	case *core.LeaseJob:
		m.leaseJob(c, op)
	case *core.AppendLog:
		m.appendLog(c, op)
	case *core.TransferLease:
		m.transferLease(c, op)
	case *core.Cancel:
		m.cancel(c, op)
	case *core.Enqueue:
		m.enqueue(c, op)
	case *core.Bury:
		m.bury(c, op)

	case *core.HoldQueue:
		m.holdQueue(c, op)
	case *core.CreateQueue:
		m.createQueue(c, op)
	case *core.DropQueue:
		m.dropQueue(c, op)
	case *core.PauseQueue:
		m.pauseQueue(c, op)
	case *core.SetQueueMax:
		m.setQueueMax(c, op)
	case *core.MoveSpent:
		m.moveSpent(c, op)
	case *core.KeepDone:
		m.keepDone(c, op)
	case *core.PutLimit:
		m.putLimit(c, op)
	case *core.RemoveLimit:
		m.removeLimit(c, op)
	case *core.ShareQueue:
		m.shareQueue(c, op)
	case *core.ListLimits:
		m.listLimits(c, op)
	case *core.PutPolicy:
		m.putPolicy(c, op)
	case *core.ListPolicies:
		m.listPolicies(c, op)
	case *core.Drain:
		m.drain(c, op)
	case *core.Purge:
		m.purge(c, op)
	case *core.ResetCounters:
		m.resetCounters(c, op)
	case *core.Inspect:
		m.inspect(c, op)
	case *core.ListJobs:
		m.listJobs(c, op)
	case *core.ListQueues:
		m.listQueues(c, op)
	case *core.ListQueueValues:
		m.listQueueValues(c, op)
	case *core.InspectQueue:
		m.inspectQueue(c, op)
	case *core.LastCommit:
		m.reply(c, core.Reply{Kind: core.Accepted, Tag: op.Tag, Commit: m.lastCommit()})
	case *core.ReadStats:
		m.reply(c, core.Reply{Kind: core.Counted, Tag: op.Tag, Stats: m.Stats()})
	case *core.ReadMeta:
		m.reply(c, core.Reply{
			Kind: core.MetaReply, Tag: op.Tag, Data: m.table.MetaValue(op.Name), Commit: m.table.MetaCommit(),
		})
	case *core.WriteMeta:
		m.writeEntries(c, op)
	case *core.WriteDocuments:
		m.writeDocuments(c, op)
	case *core.ReadDocuments:
		m.readDocuments(c, op)
	case *core.OpenBatch:
		m.openBatch(c, op)
	case *core.CloseBatch:
		m.closeBatch(c, op)
	case *core.InspectBatch:
		m.inspectBatch(c, op)
	case *core.ListBatches:
		m.listBatches(c, op)
	case *core.PurgeBatches:
		m.purgeBatches(c, op)

	case *core.ListClients:
		m.listClients(c, op)
	case *core.ListWorkers:
		m.listWorkers(c, op)
	case *core.Subscribe:
		m.subscribe(c, op)
	case *core.ReadSeries:
		m.readSeries(c, op)
	case *core.ReadHistograms:
		m.readHistograms(c, op)
	case *core.Find:
		m.findJobs(c, op)
	case *core.ListFinished:
		m.listFinished(c, op)
	case *core.DisconnectClient:
		m.disconnect(c, op)
	case *core.NameClient:
		c.name = op.Name
	default:
		panic(fmt.Sprintf("machine: unknown operation %T", op))
	}
}

// atomic applies all operations of a list or none.
func (m *Machine) atomic(c *client, op *core.Atomic) {
	r := core.Reply{Kind: core.Failed, Tag: op.Tag, Err: core.ErrInvalid}
	if len(op.Ops) > core.MaxAtomic {
		m.reply(c, r)
		return
	}
	m.list = plan.New(m.table, c.slot)
	defer func() { m.list = nil }()
	index := m.checkAll(c, op.Ops)
	if c.mustFetch() {
		return
	}
	list := m.list
	if index < len(op.Ops) {
		m.list = nil
		r.Answer, r.Err, r.Commit = &core.Answer{Index: index}, list.Err, m.newest()
		if list.Entry != nil {
			r.Seq = list.Entry.Seq
		}
		m.reply(c, r)
		return
	}
	list.Apply()
	for _, one := range op.Ops {
		m.apply(c, one)
	}
	m.list = nil
	m.reply(c, core.Reply{
		Kind: core.Accepted, Tag: op.Tag, Commit: list.Commit(), Answer: &core.Answer{Replies: list.Replies},
	})
}

// checkAll returns the index of the first operation that is refused, or the number of operations.
func (m *Machine) checkAll(c *client, ops []core.Op) int {
	list := m.list
	for i, one := range ops {
		if list.Err = m.formatRefusal(one); list.Err == nil {
			list.Err = list.Next(one)
		}
		if list.Err == nil {
			m.apply(c, one)
		}
		if list.Err != nil {
			return i
		}
		list.Note(one)
	}
	return len(ops)
}

// stopsInList reports whether an operation of a list ends here: every operation does during the check, and later
// operations whose job is gone do.
func (m *Machine) stopsInList(c *client, tag uint64, e *table.Entry, err error) bool {
	if m.list.IsChecked() {
		m.list.Err, m.list.Entry = err, e
		return true
	}
	if e == nil {
		m.reply(c, core.Reply{Kind: core.Accepted, Tag: tag, Commit: m.table.Promise()})
	}
	return e == nil
}
