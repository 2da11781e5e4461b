package sim

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"broker/core"
)

// handleReply handles a reply that is not the immediate reply to an operation.
func (w *world) handleReply(c *client, r core.Reply) error {
	switch wt := w.model.waits[r.Tag]; {
	case r.Kind == core.Woken && r.Tag == c.tag:
		w.note("client %d is woken", c.id)
		c.tag = 0
	case r.Kind == core.Assigned:
		if err := w.leaseReply(c, &r); err != nil {
			return err
		}
		return w.assigned(c, r)
	case r.Kind == core.TimedOut && r.Seq != 0 &&
		w.model.requests[r.Tag] != nil: // a leased job whose body could not be read
		return w.leaseReply(c, &r)
	case r.Kind == core.Ended:
		return w.waitOver(c, r, r.Seq)
	case r.Kind == core.TimedOut && wt != nil: // otherwise it is a lease
		return w.waitOver(c, r, wt.seq)
	}
	return nil
}

// waitOver removes a wait that has ended. It checks that the wait ends only once, and for the right client.
func (w *world) waitOver(c *client, r core.Reply, seq uint64) error {
	wt := w.model.waits[r.Tag]
	if wt == nil || wt.client != c.id || wt.seq != seq {
		return fmt.Errorf("client %d was notified of the end of job %d under tag %d, for which it does not wait", c.id,
			seq, r.Tag)
	}
	w.note("wait for %d is over, ended %v", seq, r.Kind == core.Ended)
	delete(w.model.waits, r.Tag)
	return nil
}

// assigned checks a lease against the model.
func (w *world) assigned(c *client, r core.Reply) error {
	m := w.model
	p := m.jobs[r.Seq]
	if p == nil && r.Job != nil && r.Job.CallbackFor != 0 { // it was submitted by its batch
		// it may end with the batch
		p = &promise{seq: r.Seq, id: r.Job.ID, leaseFor: r.Job.LeaseFor, limited: true, unknown: true}
		write(&p.bodies, string(r.Job.Body), 1)
		write(&p.queues, r.Job.Queue, 1)
		m.add(p)
	}
	now, i := w.clk.monotonic.Now(), w.look(r.Seq)
	if i == nil || i.State != core.Leased || i.Attempts != r.Lease.Attempts {
		return nil // the reply is late: the lease has ended, and another client may have the job
	}
	switch {
	case p == nil:
		return fmt.Errorf("job %d was handed out and never submitted", r.Seq)
	case r.Lease.Epoch < p.epoch:
		return nil
	case p.damaged:
		return fmt.Errorf("job %d was handed out, and is damaged", r.Seq)
	case p.asked() && r.Lease.Epoch > p.askedFor:
		return fmt.Errorf("job %d was handed out after its worker was asked to stop", r.Seq)
	case p.endAccepted:
		return fmt.Errorf("job %d was handed out after its end was accepted", r.Seq)
	case p.leased && (p.leaseUntil == 0 || now < p.leaseUntil):
		return fmt.Errorf("job %d was handed out twice: leased until %d, now %d", r.Seq, p.leaseUntil, now)
	case r.Job == nil || !may(p.bodies, string(r.Job.Body), 0): // it may have changed since it was leased
		return fmt.Errorf("job %d was handed out with another body", r.Seq)
	}
	w.note("job %d goes to %v, epoch %d", r.Seq, c.kind, r.Lease.Epoch)
	since := min(now, c.unreadSince)
	span := cmp.Or(m.requests[r.Tag].span, w.leaseLength(p, i.Queue, c.holds))
	if m.changedSince(i.Queue, since) {
		span = r.Lease.LeaseFor // from a policy that is no longer set
	}
	if err := cmp.Or(w.checkLease(p, i, since), w.granted(p, i, r.Lease, span, since)); err != nil {
		return err
	}
	if c.holds == core.HeldByConn {
		p.holder = c.id
	}
	// otherwise, since the hand-out, earlier jobs may have come back or limits may have changed
	if c.unreadSince > now {
		if err := w.withinShared(p, i.Queue); err != nil {
			return err
		}
		if err := w.inOrder(p, i.Queue, r.Tag); err != nil {
			return err
		}
		p.request = r.Tag
	}
	return w.dependenciesMet(p, r.Job)
}

// dependenciesMet checks that the job waits for no other job.
func (w *world) dependenciesMet(p *promise, j *core.Job) error {
	if p.forced {
		return nil
	}
	for _, l := range p.after {
		seq := l.seq
		if i := w.look(seq); i != nil && seq != p.parent && !w.ignores(p, i) &&
			(i.State.Unfinished() || i.State == core.Dead) {
			return fmt.Errorf("job %d was handed out before job %d, which is %v", p.seq, seq, i.State)
		}
	}
	if i := w.look(p.parent); p.parent != 0 && i != nil && !w.ignores(p, i) &&
		(i.State.Unfinished() || i.State == core.Dead) {
		return fmt.Errorf("job %d was handed out before its parent %d, which is %v", p.seq, p.parent, i.State)
	}
	b := w.model.batches[j.CallbackFor]
	if b == nil || b.reopened {
		return nil
	}
	for _, seq := range b.members {
		i, member := w.look(seq), w.model.jobs[seq]
		if i == nil {
			continue
		}
		// after a rerun, or a move by a policy, it is like new
		tried := i.Fails > 0 || member.again || w.model.movedBy(member, i.Queue)
		if i.State.Unfinished() && !tried || j.Queue == successQueue && i.State != core.Done {
			return fmt.Errorf("%s callback %d of batch %d was handed out though member %d is %v", j.Queue, p.seq,
				j.CallbackFor, seq, i.State)
		}
	}
	return nil
}

// checkNotified checks that no client still waits for a job that has ended, except clients that do not read replies.
func (w *world) checkNotified(seq uint64) error {
	i := w.look(seq)
	if i != nil && i.State != core.Done && i.State != core.Dead {
		return nil
	}
	for _, tag := range slices.Sorted(maps.Keys(w.model.waits)) {
		if wt := w.model.waits[tag]; wt.seq == seq && !w.isNotReading(wt.client) {
			return fmt.Errorf("client %d waits for job %d, which has ended, under tag %d", wt.client, seq, tag)
		}
	}
	return nil
}

// toggleReads makes a client stop reading, or read again.
func (w *world) toggleReads() error {
	c := w.anyClient()
	if c.notReading {
		c.notReading = false
	} else {
		w.stopReading(c)
	}
	w.note("%v client %d notReading: %v", c.kind, c.id, c.notReading)
	return w.collect()
}

// stopReading makes a client stop reading.
func (w *world) stopReading(c *client) {
	if !c.notReading {
		c.notReading, c.unreadSince = true, w.clk.monotonic.Now()
	}
}
