package access

import (
	"math"

	"broker/core"
)

// lookups are the jobs and batches that the operation being checked names. The rights are checked before the core runs
// the operation, so another client could meanwhile give the name to another job. Therefore an operation is bound to
// what was checked before it runs: to the number of the job, or to a number that no job has.
type lookups struct {
	jobs    []lookup
	batches []*uint64 // that do not exist
	missing bool      // one of them does not exist
}

// lookup is a job that an operation names.
type lookup struct {
	ref *core.Ref
	seq uint64
}

// Nowhere is a number that no job and no batch has.
const Nowhere = math.MaxUint64

// bind binds the operation to what was checked.
func (l *lookups) bind() {
	for _, j := range l.jobs {
		*j.ref = core.Ref{Seq: j.seq}
	}
	for _, b := range l.batches {
		*b = Nowhere
	}
}

// reset prepares for the next check.
func (l *lookups) reset() {
	clear(l.jobs)
	clear(l.batches)
	*l = lookups{jobs: l.jobs[:0], batches: l.batches[:0]}
}

// queueOf returns the queue that a job is in. Nothing waits for the commit of what it reads: a refusal promises
// nothing, and an operation that is allowed is answered by the core, also if there is no such job.
func (c *client) queueOf(b core.Broker, ref *core.Ref) (queue string, found bool) {
	for _, reply := range core.DoOnce(b, core.Internal, &core.Inspect{Ref: *ref, Brief: true}) {
		if reply.Kind == core.Inspected {
			c.lookups.jobs = append(c.lookups.jobs, lookup{ref, reply.Seq})
			return reply.Info.Queue, true
		}
	}
	c.lookups.jobs, c.lookups.missing = append(c.lookups.jobs, lookup{ref, Nowhere}), true
	return "", false
}

// mayJob reports whether a principal has a role for the queue that a job is in.
func (c *client) mayJob(b core.Broker, p *Principal, ref *core.Ref, r Role) bool {
	if p.MayAll(r) {
		return true
	}
	if !p.MaySome(r) {
		return false
	}
	queue, found := c.knownQueueOf(b, p, ref)
	return !found || p.May(r, queue)
}

// knownQueueOf is queueOf for a principal. A job in a queue for which the principal has no role is not found: the
// operation is bound to a job that does not exist, so its reply does not tell whether this one does.
func (c *client) knownQueueOf(b core.Broker, p *Principal, ref *core.Ref) (queue string, found bool) {
	queue, found = c.queueOf(b, ref)
	if found && !p.Knows(queue) {
		c.lookups.jobs[len(c.lookups.jobs)-1].seq = Nowhere
		return "", false
	}
	return queue, found
}

// mayLinkTo is mayJob for a job that another one is to wait for. Its number stays in the submission.
func (c *client) mayLinkTo(b core.Broker, p *Principal, seq uint64) bool {
	queue, found := c.queueOf(b, &core.Ref{Seq: seq})
	return p.MaySome(Produce) && (!found || p.May(Produce, queue))
}

// mayBatch is MayBatch for the batch that an operation names.
func (c *client) mayBatch(b core.Broker, p *Principal, r Role, number *uint64) bool {
	may, found := MayBatch(b, p, r, *number)
	if may && !found {
		c.lookups.batches, c.lookups.missing = append(c.lookups.batches, number), true
	}
	return may
}

// MayBatch reports whether a principal may use a batch in a role. It may if it opened the batch, or if it has the role
// for the queues of the callbacks, because the time at which a batch is committed, reopened or filled decides when its
// callbacks run. The same must hold for the parents of the batch. If the batch does not exist, may is true for a
// principal that has the role for some queue, which then learns that there is no such batch.
func MayBatch(b core.Broker, p *Principal, r Role, number uint64) (may, found bool) {
	if p.MayAll(r) {
		return true, true
	}
	if !p.MaySome(r) {
		return false, true
	}
	for callbacks := false; ; found = true {
		batch := inspectBatch(b, number)
		if batch == nil || batch.Owner != "" && batch.Owner == p.Name() {
			return true, found || batch != nil
		}
		for _, job := range []uint64{batch.CompleteJob, batch.SuccessJob} {
			if job == 0 {
				continue
			}
			if callbacks = true; !mayHaveJob(b, p, job, r) {
				return false, true
			}
		}
		if number = batch.Parent; number == 0 {
			return callbacks, true
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

// mayHaveJob reports whether a principal has a role for the queue of a callback.
func mayHaveJob(b core.Broker, p *Principal, seq uint64, r Role) bool {
	queue, found := new(client).queueOf(b, &core.Ref{Seq: seq})
	return !found || p.May(r, queue)
}
