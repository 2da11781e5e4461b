package access

import (
	"slices"

	"broker/core"
)

// allows reports whether a principal may run an operation. An operation on a job needs rights for the queue of the job.
// If the job does not exist, the operation passes and the core refuses it: see lookups.
func (c *client) allows(b core.Broker, p *Principal, op core.Op) bool {
	switch op := op.(type) {
	case *core.Submit:
		return p.May(Produce, op.Job.Queue) && c.mayLink(b, p, op.Job)
	case *core.Await:
		return c.mayJob(b, p, &op.Ref, Produce)
	case *core.OpenBatch:
		op.Owner = p.Name()
		return p.MaySome(Produce) && (op.Complete == nil || p.May(Produce, op.Complete.Queue)) &&
			(op.Success == nil || p.May(Produce, op.Success.Queue)) &&
			(op.Parent == 0 || c.mayBatch(b, p, Produce, &op.Parent))
	case *core.CloseBatch:
		return c.mayBatch(b, p, Produce, &op.Batch)
	case *core.InspectBatch:
		return c.mayBatch(b, p, Produce, &op.Batch) || c.mayBatch(b, p, Read, &op.Batch)
	case *core.Inspect:
		return c.mayInspect(b, p, op)
	case *core.Register:
		if !p.May(Consume, op.Queue) {
			return false
		}
		c.registered(op.Queue)
		return true
	case *core.Unregister:
		c.unregistered(op)
		return true
	case *core.Lease:
		c.leaseBy = c.table
		return !slices.ContainsFunc(op.Queues, func(queue string) bool { return !p.May(Consume, queue) })
	case *core.Complete:
		return op.Authority == core.ByHolder || c.mayJob(b, p, &op.Ref, Consume)
	case *core.Fail:
		return op.Authority == core.ByHolder || c.mayJob(b, p, &op.Ref, Consume)
	case *core.Report:
		return op.Authority == core.ByHolder || c.mayJob(b, p, &op.Ref, Consume)
	case *core.AppendLog:
		return op.Authority == core.ByHolder || c.mayJob(b, p, &op.Ref, Consume)
	case *core.TransferLease:
		return c.mayJob(b, p, &op.Ref, Consume)
	case *core.Rerun:
		return c.mayJob(b, p, &op.Ref, Produce)
	case *core.SendData, *core.Release, *core.Sleep, *core.CancelLease, *core.CancelWaits, *core.NameClient,
		*core.ReadMeta, *core.WriteMeta, *core.LastCommit:
		return true // concerns only the client's own jobs, or the front-end itself
	case *core.HoldQueue: // it only keeps a queue name, which takes memory, and reveals nothing
		return op.Free || p.May(Produce, op.Queue) || p.May(Consume, op.Queue) || p.May(Read, op.Queue)
	case *core.Move:
		return givesBack(op) && c.mayJob(b, p, &op.Ref, Consume) || p.MayAll(Operate)
	case *core.Update:
		return ofWorker(&op.Set, &op.If) && c.mayJob(b, p, &op.Ref, Consume) || p.MayAll(Operate)
	case *core.LeaseJob:
		return op.ByConn && c.mayJob(b, p, &op.Ref, Consume) || p.MayAll(Operate)
	case *core.Atomic:
		return !slices.ContainsFunc(op.Ops, func(op core.Op) bool { return !c.allows(b, p, op) })
	}
	return c.allowsOperator(b, p, op)
}

// allowsOperator is allows for operations that list or change the work of other clients.
func (c *client) allowsOperator(b core.Broker, p *Principal, op core.Op) bool {
	switch op := op.(type) {
	case *core.CreateQueue:
		return p.May(Operate, op.Queue)
	case *core.DropQueue:
		return p.May(Operate, op.Queue)
	case *core.PauseQueue:
		return p.May(Operate, op.Queue)
	case *core.SetQueueMax:
		return p.May(Operate, op.Queue)
	case *core.Purge:
		return op.Queue != "" && p.May(Operate, op.Queue) || p.MayAll(Operate)
	case *core.InspectQueue:
		return p.May(Read, op.Queue)
	case *core.ListJobs:
		return op.Queue != "" && p.May(Read, op.Queue) || p.MayAll(Read)
	case *core.Cancel:
		for i := range op.Also {
			if !c.mayJob(b, p, &op.Also[i], Operate) {
				return false
			}
		}
		return c.mayJob(b, p, &op.Ref, Operate)
	case *core.Resubmit:
		return c.mayJob(b, p, &op.Ref, Operate)
	case *core.Enqueue:
		return c.mayJob(b, p, &op.Ref, Operate)
	case *core.Bury:
		return c.mayJob(b, p, &op.Ref, Operate)
	}
	if op.ReadOnly() {
		return p.MayAll(Read)
	}
	return p.MayAll(Operate)
}

// givesBack reports whether a move only returns a job from its worker to its queue.
func givesBack(op *core.Move) bool {
	return op.Authority == core.ByHolder && op.Queue == "" && op.After == nil && ofWorker(&op.Set, &op.If)
}

// ofWorker reports whether a worker may make this change to its leased job when it returns the job.
func ofWorker(set *core.JobChange, is *core.Condition) bool {
	rest := *set
	rest.Priority, rest.Exhausted, rest.Attributes = nil, nil, nil
	return rest == (core.JobChange{}) && len(is.States) == 1 && is.States[0] == core.Leased
}

func (c *client) registered(queue string) {
	if c.queues == nil {
		c.queues = make(map[string]bool)
	}
	c.queues[queue] = true
}

func (c *client) unregistered(op *core.Unregister) {
	if op.All {
		clear(c.queues)
	}
	delete(c.queues, op.Queue)
}

// mayInspect: producers and workers may ask for the state of a job. Only readers and producers may see its body.
func (c *client) mayInspect(b core.Broker, p *Principal, op *core.Inspect) bool {
	if p.MayAll(Read) || p.MayAll(Produce) {
		return true
	}
	if !p.MaySome(Read) && !p.MaySome(Produce) && !p.MaySome(Consume) {
		return false
	}
	queue, found := c.knownQueueOf(b, p, &op.Ref)
	return !found || p.May(Read, queue) || p.May(Produce, queue) || op.Brief && p.May(Consume, queue)
}

// mayLink reports whether a principal may make a job wait for other jobs, and a batch wait for the job.
func (c *client) mayLink(b core.Broker, p *Principal, job *core.Job) bool {
	if p.MayAll(Produce) {
		return true
	}
	return (job.Parent == 0 || c.mayLinkTo(b, p, job.Parent)) &&
		!slices.ContainsFunc(job.After, func(seq uint64) bool { return !c.mayLinkTo(b, p, seq) }) &&
		(job.Batch == 0 || c.mayBatch(b, p, Produce, &job.Batch))
}
