package access

import (
	"slices"

	"broker/core"
)

// allows reports whether a principal may run an operation. An operation on a job needs rights for the queue of the job. If the
// job does not exist, the operation passes and the core rejects it.
func (c *client) allows(b core.Broker, p *Principal, op core.Op) bool {
	switch op := op.(type) {
	case *core.Submit:
		return p.May(Produce, op.Job.Queue) && mayLink(b, p, op.Job)
	case *core.Await:
		return mayJob(b, p, op.Ref, Produce)
	case *core.OpenBatch:
		op.Owner = p.Name()
		return p.MaySome(Produce) && (op.Complete == nil || p.May(Produce, op.Complete.Queue)) &&
			(op.Success == nil || p.May(Produce, op.Success.Queue)) && (op.Parent == 0 || MayBatch(b, p, Produce, op.Parent))
	case *core.CloseBatch:
		return MayBatch(b, p, Produce, op.Batch)
	case *core.InspectBatch:
		return MayBatch(b, p, Produce, op.Batch) || MayBatch(b, p, Read, op.Batch)
	case *core.Inspect:
		return mayInspect(b, p, op)
	case *core.Register:
		return c.register(p, op.Queue)
	case *core.Unregister:
		if op.All {
			clear(c.able)
		}
		delete(c.able, op.Queue)
		return true
	case *core.Lease:
		c.asked = c.seen
		return !slices.ContainsFunc(op.Queues, func(queue string) bool { return !p.May(Consume, queue) })
	case *core.Complete:
		return op.Authority == core.ByHolder || mayJob(b, p, op.Ref, Consume)
	case *core.Fail:
		return op.Authority == core.ByHolder || mayJob(b, p, op.Ref, Consume)
	case *core.Report:
		return op.Authority == core.ByHolder || mayJob(b, p, op.Ref, Consume)
	case *core.AppendLog:
		return op.Authority == core.ByHolder || mayJob(b, p, op.Ref, Consume)
	case *core.TransferLease:
		return mayJob(b, p, op.Ref, Consume)
	case *core.Rerun:
		return mayJob(b, p, op.Ref, Produce)
	case *core.SendData, *core.Release, *core.Sleep, *core.CancelLease, *core.NameClient, *core.ReadMeta, *core.WriteMeta:
		return true // concerns only the client's own jobs, or the front-end itself
	case *core.HoldQueue: // it only keeps a queue name, which takes memory, and reveals nothing
		return op.Free || p.May(Produce, op.Queue) || p.May(Consume, op.Queue) || p.May(Read, op.Queue)
	case *core.Move:
		return givesBack(op) && mayJob(b, p, op.Ref, Consume) || p.MayAll(Operate)
	case *core.Update:
		return ofWorker(&op.Set, &op.If) && mayJob(b, p, op.Ref, Consume) || p.MayAll(Operate)
	case *core.LeaseJob:
		return op.ByConn && mayJob(b, p, op.Ref, Consume) || p.MayAll(Operate)
	case *core.Atomic:
		return !slices.ContainsFunc(op.Ops, func(op core.Op) bool { return !c.allows(b, p, op) })
	}
	return allowsOperator(b, p, op)
}

// allowsOperator is allows for operations that list or change the work of other clients.
func allowsOperator(b core.Broker, p *Principal, op core.Op) bool {
	switch op := op.(type) {
	case *core.CreateQueue:
		return p.May(Operate, op.Queue)
	case *core.DropQueue:
		return p.May(Operate, op.Queue)
	case *core.PauseQueue:
		return p.May(Operate, op.Queue)
	case *core.LimitQueue:
		return p.May(Operate, op.Queue)
	case *core.Purge:
		return op.Queue != "" && p.May(Operate, op.Queue) || p.MayAll(Operate)
	case *core.InspectQueue:
		return p.May(Read, op.Queue)
	case *core.ListJobs:
		return op.Queue != "" && p.May(Read, op.Queue) || p.MayAll(Read)
	case *core.Cancel:
		return mayJob(b, p, op.Ref, Operate) &&
			!slices.ContainsFunc(op.Also, func(ref core.Ref) bool { return !mayJob(b, p, ref, Operate) })
	case *core.Resubmit:
		return mayJob(b, p, op.Ref, Operate)
	case *core.Enqueue:
		return mayJob(b, p, op.Ref, Operate)
	case *core.Bury:
		return mayJob(b, p, op.Ref, Operate)
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

// register records that a client works for a queue, if its principal may.
func (c *client) register(p *Principal, queue string) bool {
	if !p.May(Consume, queue) {
		return false
	}
	if !p.MayAll(Consume) {
		if c.able == nil {
			c.able = make(map[string]bool)
		}
		c.able[queue] = true
	}
	return true
}

// mayInspect: producers and workers may ask for the state of a job. Only readers and producers may see its body.
func mayInspect(b core.Broker, p *Principal, op *core.Inspect) bool {
	if p.MayAll(Read) || p.MayAll(Produce) {
		return true
	}
	if !p.MaySome(Read) && !p.MaySome(Produce) && !p.MaySome(Consume) {
		return false
	}
	look := *op
	look.Tag, look.Brief = 0, true
	for _, r := range core.DoOnce(b, core.Internal, &look) {
		if r.Kind == core.Inspected {
			queue := r.Info.Queue
			return p.May(Read, queue) || p.May(Produce, queue) || op.Brief && p.May(Consume, queue)
		}
	}
	return true
}

// mayLink reports whether a principal may make a job wait for other jobs, and a batch wait for the job.
func mayLink(b core.Broker, p *Principal, job *core.Job) bool {
	if p.MayAll(Produce) {
		return true
	}
	return (job.Parent == 0 || mayJob(b, p, core.Ref{Seq: job.Parent}, Produce)) &&
		!slices.ContainsFunc(job.After, func(seq uint64) bool { return !mayJob(b, p, core.Ref{Seq: seq}, Produce) }) &&
		(job.Batch == 0 || MayBatch(b, p, Produce, job.Batch))
}

// MayBatch reports whether a principal may use a batch in a role. It may if it opened the batch, or if it has the role for the
// queues of the callbacks: to commit, reopen or fill a batch decides when its callbacks run. The same must hold for the parents
// of the batch. If the batch does not exist, MayBatch is true and the core rejects the request.
func MayBatch(b core.Broker, p *Principal, r Role, number uint64) bool {
	if p.MayAll(r) {
		return true
	}
	if !p.MaySome(r) {
		return false
	}
	for callbacks := false; ; {
		batch := inspectBatch(b, number)
		if batch == nil || batch.Owner != "" && batch.Owner == p.Name() {
			return true
		}
		for _, job := range []uint64{batch.CompleteJob, batch.SuccessJob} {
			if job == 0 {
				continue
			}
			if callbacks = true; !mayJob(b, p, core.Ref{Seq: job}, r) {
				return false
			}
		}
		if number = batch.Parent; number == 0 {
			return callbacks
		}
	}
}

func inspectBatch(b core.Broker, number uint64) *core.BatchInfo {
	for _, reply := range core.DoOnce(b, core.Internal, &core.InspectBatch{Batch: number}) {
		if reply.Kind == core.BatchReply {
			return reply.Batch
		}
	}
	return nil
}

// mayJob reports whether a principal has a role for the queue that a job is in.
func mayJob(b core.Broker, p *Principal, ref core.Ref, r Role) bool {
	if p.MayAll(r) {
		return true
	}
	if !p.MaySome(r) {
		return false
	}
	for _, reply := range core.DoOnce(b, core.Internal, &core.Inspect{Ref: ref, Brief: true}) {
		if reply.Kind == core.Inspected {
			return p.May(r, reply.Info.Queue)
		}
	}
	return true
}
