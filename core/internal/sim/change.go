package sim

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"broker/core"
)

// control cancels, buries or enqueues a random job.
func (w *world) control() error {
	p := w.anyJob()
	if p == nil {
		return nil
	}
	before := w.look(p.seq)
	tag, ref, is := w.newTag(), core.Ref{Seq: p.seq}, w.condition()
	var op core.Op
	var accepted func(core.Reply)
	refused := func() {}
	var against error
	switch w.rng.IntN(6) {
	case 4, 5:
		return w.stop(p)
	case 0:
		op = &core.Cancel{Tag: tag, Ref: ref, If: is}
		accepted = func(r core.Reply) { p.recordEnd(w.commitOf(r, w.stores(p))) }
	case 1:
		op = &core.Bury{Tag: tag, Ref: ref, If: is}
		accepted = func(r core.Reply) {
			p.leased, p.forced = false, p.forced || before.State == core.Blocked // it has no dependencies left
			w.clearStop(p, r)
		}
	case 2:
		return w.cancelSet(p, is)
	default:
		op = &core.Enqueue{Tag: tag, Ref: ref, If: is}
		kicks, was := w.kicksOf(p), p.forced
		p.forced = true // a waiting client may get it at once
		refused = func() { p.forced = was }
		accepted = func(core.Reply) {
			against = cmp.Or(against, w.rejoined(p, before, was), w.kicked(p, kicks))
		}
	}
	err := w.do(w.anyClient(), op, tag, func(r core.Reply) {
		if r.Kind == core.Accepted {
			w.note("%T %d, commit %d", op, p.seq, r.Commit)
			against = wronglyAccepted(p.seq, before, is)
			accepted(r)
		} else {
			refused()
		}
	})
	if err != nil || against != nil {
		return cmp.Or(err, against)
	}
	return w.checkNotified(p.seq)
}

// condition returns a condition, usually an empty one.
func (w *world) condition() (is core.Condition) {
	switch w.rng.IntN(9) {
	case 0:
		is = core.InState(core.States[w.rng.IntN(len(core.States))], core.Ready)
	case 1:
		is.Epoch, is.HasEpoch = uint32(w.rng.IntN(3)), true
	case 2:
		is.Queue = queueName(w.rng.IntN(4))
	case 3:
		is.Worker = fmt.Sprint("worker ", w.rng.IntN(3))
	case 4:
		is.Unended = true
	}
	return is
}

// broken reports an operation that was accepted although its condition did not match.
func wronglyAccepted(seq uint64, i *core.JobInfo, is core.Condition) error {
	if i == nil || len(is.States) > 0 && !slices.Contains(is.States, i.State) || is.HasEpoch && is.Epoch != i.Epoch ||
		is.Queue != "" && is.Queue != i.Queue || is.Worker != "" && is.Worker != i.Worker ||
		is.Unended && i.State != core.Leased {
		return fmt.Errorf("an operation on job %d was accepted under %+v, the job was %+v", seq, is, i)
	}
	return nil
}

// cancelSet cancels some jobs together, if no other job depends on them.
func (w *world) cancelSet(p *promise, is core.Condition) error {
	set := []*promise{p}
	op := &core.Cancel{Tag: w.newTag(), Ref: core.Ref{Seq: p.seq}, If: is, Dependents: core.DependentsRefuse}
	for range w.rng.IntN(3) {
		also := w.anyJob()
		set, op.Also = append(set, also), append(op.Also, core.Ref{Seq: also.seq})
	}
	waiting := w.waitingFor(set)
	before := w.look(p.seq)
	var against error
	err := w.do(w.anyClient(), op, op.Tag, func(r core.Reply) {
		if r.Kind != core.Accepted {
			return
		}
		w.note("cancel %d and %v, %d jobs, commit %d", p.seq, op.Also, r.N, r.Commit)
		if against = wronglyAccepted(p.seq, before, is); against == nil && len(waiting) > 0 {
			against = fmt.Errorf("job %d and %v were cancelled though jobs %v wait for them", p.seq, op.Also, waiting)
		}
		for _, one := range set {
			if w.look(one.seq) != nil {
				against = cmp.Or(against, fmt.Errorf("job %d was cancelled with %d and is there", one.seq, p.seq))
			}
			one.recordEnd(w.commitOf(r, w.stores(one)))
		}
	})
	for _, one := range set {
		err = cmp.Or(err, w.checkNotified(one.seq))
	}
	return cmp.Or(err, against)
}

// waitingFor lists the unfinished jobs outside a set that depend on a job in it.
func (w *world) waitingFor(set []*promise) (waiting []uint64) {
	in := map[uint64]bool{}
	for _, p := range set {
		if i := w.look(p.seq); i != nil && i.State != core.Done {
			in[p.seq] = true
		}
	}
	for _, seq := range w.model.seqs {
		p := w.model.jobs[seq]
		if in[seq] || !in[p.parent] && !slices.ContainsFunc(p.after, func(l link) bool { return in[l.seq] }) {
			continue
		}
		released := func(i *core.JobInfo) bool { // from one that was dead
			return p.onBroken == core.BrokenReleases &&
				!slices.ContainsFunc(i.Waiting, func(s uint64) bool { return in[s] })
		}
		if i := w.look(seq); i != nil && i.State == core.Blocked && !released(i) {
			waiting = append(waiting, seq)
		}
	}
	return waiting
}

// change changes a job: its fields, queue, dependencies or holder.
func (w *world) change() error {
	p := w.anyJob()
	if p == nil {
		return nil
	}
	var err error
	switch w.rng.IntN(7) {
	case 0, 1, 2:
		err = w.move(p)
	case 3:
		err = w.transfer(p)
	case 4:
		err = w.leaseJob(p)
	default:
		err = w.update(p)
	}
	return cmp.Or(err, w.checkNotified(p.seq))
}

// set returns a change of body and tag together; jobs can be found by both.
func (w *world) set() (set core.JobChange) {
	if w.rng.IntN(3) != 0 {
		text := fmt.Sprint("body from step ", w.number)
		tags := tagsOf(text)
		set.Tags = &tags
		if w.rng.IntN(3) == 0 {
			text += strings.Repeat(".", 1500) // large enough for a key of its own
			set.Tags = &[]string{}
		}
		set.Body = &core.Body{Bytes: []byte(text)}
	}
	if w.rng.IntN(2) == 0 {
		priority := w.priority()
		set.Priority = &priority
	}
	if w.rng.IntN(3) == 0 {
		fails := uint32(10)
		set.MaxFails = &fails
	}
	return set
}

// changed compares a job with the requested change and records it.
func (w *world) changed(p *promise, set core.JobChange, r core.Reply) error {
	i := w.look(p.seq)
	switch {
	case i == nil:
		return nil // it was due to be removed
	case i.Epoch < r.Lease.Epoch:
		return fmt.Errorf("job %d has epoch %d after a change to %d", p.seq, i.Epoch, r.Lease.Epoch)
	case set.Priority != nil && i.Priority != *set.Priority:
		return fmt.Errorf("job %d has priority %d after a change to %d", p.seq, i.Priority, *set.Priority)
	case set.Body != nil && string(i.Job.Body) != string(set.Body.Bytes):
		return fmt.Errorf("job %d has body %q after a change to %q", p.seq, i.Job.Body, set.Body.Bytes)
	}
	if set.MaxFails != nil {
		p.own, p.maxFails, p.retries = p.own|core.PolicyMaxFails, *set.MaxFails, w.commitOf(r, w.stores(p))
	}
	if set.Body != nil {
		write(&p.bodies, string(set.Body.Bytes), w.commitOf(r, w.stores(p)))
	}
	return p.recordHistory(i, w.commitOf(r, w.stores(p)))
}

// doIf runs an operation with a condition on a job; accepted checks the result.
func (w *world) doIf(p *promise, op core.Op, is core.Condition, accepted func(core.Reply) error) error {
	return w.doIfBy(w.workerOf(p), p, op, is, accepted)
}

// doIfBy is doIf by a client.
func (w *world) doIfBy(c *client, p *promise, op core.Op, is core.Condition, accepted func(core.Reply) error) error {
	before := w.look(p.seq)
	var against error
	err := w.do(c, op, op.TagOf(), func(r core.Reply) {
		if r.Kind != core.Accepted {
			return
		}
		w.note("%T %d, epoch %d, commit %d", op, p.seq, r.Lease.Epoch, r.Commit)
		if against = wronglyAccepted(p.seq, before, is); against == nil {
			against = accepted(r)
		}
	})
	return cmp.Or(err, against)
}

func (w *world) update(p *promise) error {
	is, set := w.condition(), w.set()
	if w.rng.IntN(4) == 0 {
		at := w.clk.Now().Add(time.Duration(w.rng.IntN(8000)-3000) * time.Millisecond)
		set.ReadyAt = &at
	}
	op := &core.Update{Tag: w.newTag(), Ref: core.Ref{Seq: p.seq}, If: is, Set: set}
	return w.doIf(p, op, is, func(r core.Reply) error { return w.changed(p, set, r) })
}

func (w *world) move(p *promise) error {
	is, set := w.condition(), w.set()
	op := &core.Move{
		Tag: w.newTag(), Ref: core.Ref{Seq: p.seq}, If: is, Authority: core.FinishAuthority(w.rng.IntN(3)),
		Queue: queueName(w.rng.IntN(4)), Set: set,
	}
	if w.rng.IntN(4) == 0 {
		op.ReadyAt = w.clk.Now().Add(time.Duration(w.rng.IntN(5000)) * time.Millisecond)
	}
	if w.rng.IntN(3) == 0 {
		op.After = w.refs()
	}
	before := w.look(p.seq)
	return w.doIf(p, op, is, func(r core.Reply) error {
		if o := w.model.inForce(op.Queue, core.PolicyDurability); p.lossy && (o == nil || !o.Unstored) {
			p.lossy, p.made = false, w.commitOf(r, true)
			if i := w.look(p.seq); i != nil && i.Unstored {
				return fmt.Errorf("job %d is in queue %s now, and still in memory only", p.seq, op.Queue)
			}
		}
		made := w.commitOf(r, w.stores(p))
		if op.Queue != before.Queue {
			w.clearStop(p, r)
		}
		p.leased, p.again = false, p.again || before.State == core.Dead
		if before.State != core.Blocked { // it no longer waits for its dependencies
			p.after, p.parent = nil, 0
		}
		write(&p.queues, op.Queue, made)
		if op.After != nil {
			p.after = nil
			for _, ref := range op.After {
				p.after = append(p.after, link{ref.Seq, made})
			}
		}
		if i := w.look(p.seq); i != nil && i.Queue != op.Queue && !w.model.movedBy(p, i.Queue) {
			return fmt.Errorf("job %d is in %s after a move to %s", p.seq, i.Queue, op.Queue)
		}
		return w.changed(p, set, r)
	})
}

func (w *world) refs() (refs []core.Ref) {
	for range 1 + w.rng.IntN(2) {
		refs = append(refs, core.Ref{Seq: w.anyJob().seq})
	}
	return refs
}

func (w *world) transfer(p *promise) error {
	op := &core.TransferLease{
		Tag: w.newTag(), Ref: core.Ref{Seq: p.seq}, Epoch: p.epoch, Worker: fmt.Sprint("worker ", w.rng.IntN(3)),
	}
	return w.doIf(p, op, core.Condition{}, func(r core.Reply) error {
		i := w.look(p.seq)
		if i == nil || i.State != core.Leased || i.Worker != op.Worker || i.Epoch != r.Lease.Epoch {
			return fmt.Errorf("job %d was handed to %q as epoch %d and is %+v", p.seq, op.Worker, r.Lease.Epoch, i)
		}
		return w.granted(p, i, r.Lease, w.leaseLength(p, i.Queue, core.HeldByWorker), w.clk.monotonic.Now())
	})
}

// leaseJob leases a particular job to a named worker, even if another worker has it.
func (w *world) leaseJob(p *promise) error {
	before := w.look(p.seq)
	op := &core.LeaseJob{
		Tag: w.newTag(), Ref: core.Ref{Seq: p.seq}, If: w.condition(), Worker: fmt.Sprint("worker ", w.rng.IntN(3)),
		LeaseFor: 5 * time.Second,
	}
	op.Dead = w.rng.IntN(2) == 0
	c := w.anyClient()
	if c.kind == core.Gearman {
		op.Worker, op.ByConn = "", true
	}
	return w.doIfBy(c, p, op, op.If, func(r core.Reply) error {
		i := w.look(p.seq)
		if i == nil || i.State != core.Leased || i.Worker != op.Worker || i.Epoch != r.Lease.Epoch ||
			i.Attempts != before.Attempts+1 {
			return fmt.Errorf("job %d was given to %q as epoch %d, was %+v and is %+v", p.seq, op.Worker, r.Lease.Epoch,
				before, i)
		}
		if before.State == core.Dead && !op.Dead {
			return fmt.Errorf("job %d was dead and is leased", p.seq)
		}
		p.again, p.leased = p.again || before.State == core.Dead, false
		p.forced = p.forced || before.State == core.Dead // it may have been blocked before
		err := cmp.Or(w.inOrder(p, i.Queue, 0), w.granted(p, i, r.Lease, op.LeaseFor, w.clk.monotonic.Now()))
		p.byName = true
		if op.ByConn {
			p.holder = c.id
		}
		return err
	})
}
