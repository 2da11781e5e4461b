package sim

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"broker/core"
)

// lease requests a job, or sleeps.
func (w *world) lease() error {
	c := w.anyClient()
	op := &core.Lease{
		Tag: w.newTag(), Queues: []string{queueName(w.rng.IntN(5)), queueName(w.rng.IntN(5))},
		Pick: core.Pick(w.rng.IntN(4)),
	}
	if w.rng.IntN(5) == 0 {
		op.Queues = []string{completeQueue, successQueue}
	}
	op.Holder = styles[c.kind].holder
	switch op.Holder {
	case core.HeldByNobody:
	case core.HeldByConn:
		if w.rng.IntN(2) == 0 {
			op.Queues, op.Pick = nil, core.PickByPriority
		}
		if w.rng.IntN(3) == 0 {
			w.note("client %d sleeps", c.id)
			c.tag = op.Tag
			return w.do(c, &core.Sleep{Tag: op.Tag}, 0, nil)
		}
	case core.HeldByWorker:
		op.Worker = fmt.Sprint("worker ", w.rng.IntN(3))
	}
	if w.rng.IntN(2) == 0 {
		op.Deadline = w.clk.Now().Add(2 * time.Second)
	}
	if w.rng.IntN(3) == 0 {
		op.Max = 1 + w.rng.IntN(6)
		op.Min = w.rng.IntN(op.Max + 1)
	}
	if op.Holder != core.HeldByConn && w.rng.IntN(6) == 0 { // a sleeping connection gives up such a limit
		op.LeaseFor = time.Duration(1+w.rng.IntN(9)) * time.Second
	}
	c.holds, c.tag = op.Holder, 0
	w.note("lease by %v client %d of %v, at most %d, at least %d", c.kind, c.id, op.Queues, op.Max, op.Min)
	w.recordRequest(op)
	return w.do(c, op, op.Tag, nil)
}

// abilities changes the registrations of a Gearman worker. Its jobs from revoked queues are released.
func (w *world) abilities() error {
	c := w.anyClient()
	if c.kind != core.Gearman {
		return nil
	}
	i, all := w.rng.IntN(len(c.able)), w.rng.IntN(4) == 0
	q := queueName(i)
	if c.able[i] = w.rng.IntN(2) == 0; c.able[i] {
		w.note("client %d can do %s", c.id, q)
		return w.do(c, &core.Register{Queue: q}, 0, nil)
	}
	w.note("client %d cannot do %s any more, or anything %v", c.id, q, all)
	if all {
		clear(c.able)
	}
	w.model.leasesReleased(c.id, func(seq uint64) bool {
		info := w.look(seq)
		return all || info != nil && info.Queue == q
	})
	return w.do(c, &core.Unregister{Queue: q, All: all}, 0, nil)
}

// finish completes or fails a job, by the right or the wrong client.
func (w *world) finish() error {
	p := w.anyJob()
	if p == nil {
		return nil
	}
	c := w.workerOf(p)
	tag, failed := w.newTag(), w.rng.IntN(3) == 0
	again := false
	before := w.look(p.seq)
	if before != nil {
		again = before.Rerun
	}
	var op core.Op = &core.Complete{
		Tag: tag, Ref: core.Ref{Seq: p.seq}, Authority: styles[c.kind].authority, Result: []byte("done"),
	}
	if failed {
		op = &core.Fail{
			Tag: tag, Ref: core.Ref{Seq: p.seq}, Authority: styles[c.kind].authority,
			Failure: &core.Failure{Type: "Oops", Message: "no"},
		}
	}
	var wrong error
	err := w.do(c, op, tag, func(r core.Reply) {
		if r.Kind != core.Accepted {
			return
		}
		if lost := c.kind == core.Faktory && before != nil && before.State == core.Ready; lost && p.seen {
			wrong = fmt.Errorf("job %d was not leased, and its end was accepted", p.seq)
		} else if lost {
			before.Attempts++ // a lease that the crash has lost counts too
		}
		if failed {
			wrong = cmp.Or(wrong, w.checkFailure(p, before))
		}
		w.note("finish %d by %v, failed %v, commit %d", p.seq, c.kind, failed, r.Commit)
		p.leased, p.mayEnd = false, p.mayEnd || !again
		if !failed && !again {
			p.recordEnd(w.commitOf(r, w.stores(p)))
		}
	})
	if err = cmp.Or(err, wrong); err != nil {
		return err
	}
	return w.checkNotified(p.seq)
}

// workerOf returns the client that holds a job, or sometimes another client.
func (w *world) workerOf(p *promise) *client {
	for _, c := range w.clients {
		if c.id == p.holder && w.rng.IntN(8) != 0 {
			return c
		}
	}
	return w.anyClient()
}

// report reports progress, sends data, or extends a lease.
func (w *world) report() error {
	p := w.anyJob()
	if p == nil {
		return nil
	}
	c, tag, ref := w.workerOf(p), w.newTag(), core.Ref{Seq: p.seq}
	if w.rng.IntN(2) == 0 {
		return w.do(c, &core.SendData{
			Tag: tag, Ref: ref, Authority: styles[c.kind].authority, Data: []byte("chunk"),
		}, tag, nil)
	}
	op := &core.Report{
		Tag: tag, Ref: ref, Authority: styles[c.kind].authority,
		Progress: core.Progress{Num: uint32(w.number), Den: steps},
	}
	by := time.Duration(w.rng.IntN(30)) * time.Second
	shorter := w.rng.IntN(3) == 0
	if op.ExtendUntil = w.clk.Now().Add(by); shorter {
		op.ExtendUntil, op.LeaseUntil = 0, op.ExtendUntil
	}
	var wrong error
	err := w.do(c, op, tag, func(r core.Reply) {
		if r.Kind == core.Accepted && shorter && by == 0 {
			w.note("report ends the lease of %d", p.seq)
			p.leased = false
			return
		}
		if i := w.look(p.seq); r.Kind == core.Accepted && i != nil && i.State == core.Leased {
			w.note("report on %d", p.seq)
			if asked := i.CancelRequestedAt != 0; r.CancelRequested != asked || asked != p.asked() && !p.again {
				wrong = fmt.Errorf("the worker of job %d is told to stop: %v, and should be: %v", p.seq,
					r.CancelRequested, p.asked())
			}
			if shorter {
				p.spans, p.leaseUntil = append(p.spans, max(by, time.Millisecond)), w.clk.monotonic.Now().Add(by)
				return
			}
			w.extended(p, by)
		}
	})
	return cmp.Or(err, wrong)
}

// rerun makes a leased job run again.
func (w *world) rerun() error {
	p := w.anyJob()
	if p == nil {
		return nil
	}
	op := &core.Rerun{Tag: w.newTag(), Ref: core.Ref{Seq: p.seq}, If: core.InState(core.Leased)}
	return w.do(w.anyClient(), op, op.Tag, func(r core.Reply) {
		if r.Kind == core.Accepted {
			w.note("rerun %d, commit %d", p.seq, r.Commit)
			p.again = true
		}
	})
}

// release gives a lease back.
func (w *world) release() error {
	p := w.anyJob()
	if p == nil {
		return nil
	}
	op := &core.Release{Tag: w.newTag(), Ref: core.Ref{Seq: p.seq}, Epoch: p.epoch}
	err := w.do(w.anyClient(), op, op.Tag, func(r core.Reply) {
		if r.Kind == core.Accepted {
			w.note("release %d", p.seq)
			p.leased = false
		}
	})
	if err != nil {
		return err
	}
	return w.checkNotified(p.seq)
}

// await waits for the outcome of a random job.
func (w *world) await() error {
	p := w.anyJob()
	if p == nil {
		return nil
	}
	c := w.anyClient()
	until := time.Duration(w.rng.IntN(10_000)) * time.Millisecond
	op := &core.Await{Tag: w.newTag(), Ref: core.Ref{Seq: p.seq}, Deadline: w.clk.Now().Add(until)}
	w.model.waits[op.Tag] = &wait{client: c.id, seq: p.seq, until: w.clk.monotonic.Now().Add(until)}
	w.note("client %d awaits %d for %v", c.id, p.seq, until)
	err := w.do(c, op, op.Tag, func(r core.Reply) {
		if r.Kind == core.Failed {
			delete(w.model.waits, op.Tag)
		}
	})
	if err != nil {
		return err
	}
	return w.checkNotified(p.seq)
}

// withdraw ends a client's waiting lease, if it has one, or everything that it waits for.
func (w *world) withdraw() error {
	c := w.anyClient()
	if w.rng.IntN(2) == 0 {
		return w.do(c, &core.CancelLease{}, 0, nil)
	}
	w.note("client %d stops waiting", c.id)
	w.model.waitsOver(c.id)
	c.tag = 0
	if err := w.do(c, &core.CancelWaits{}, 0, nil); err != nil || !c.notReading {
		return err
	}
	return w.audit() // jobs whose lease it did not know of must be free again
}

// disconnectUnread closes a worker that has just been given a job, before it reads the reply.
func (w *world) disconnectUnread() error {
	c, op := w.anyClient(), &core.Lease{
		Tag: w.newTag(), Queues: []string{queueName(4)}, Deadline: w.clk.Now().Add(time.Hour),
	}
	op.Holder = styles[c.kind].holder // like its earlier leases, which it may not know of either
	if op.Holder == core.HeldByWorker {
		op.Worker = "worker 0"
	}
	w.note("client %d waits at %s", c.id, op.Queues)
	c.holds, c.tag = op.Holder, 0
	w.recordRequest(op)
	if err := w.do(c, op, op.Tag, nil); err != nil {
		return err
	}
	w.stopReading(c)
	if err := w.submitTo(queueName(4)); err != nil {
		return err
	}
	return w.leave(c)
}

func (w *world) reconnect() error { return w.leave(w.anyClient()) }

// leave replaces a client with a new one.
func (w *world) leave(c *client) error {
	w.note("%v client %d leaves", c.kind, c.id)
	w.engine.Close(c.id)
	w.model.clientLeft(c.id)
	w.clients = slices.DeleteFunc(w.clients, func(o *client) bool { return o == c })
	w.connect()
	if c.notReading {
		return w.audit() // jobs whose lease it did not know of must be free again
	}
	return w.collect()
}
