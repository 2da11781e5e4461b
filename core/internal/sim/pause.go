package sim

import (
	"errors"
	"fmt"
	"slices"

	"broker/core"
)

// pause is what clients may rely on about a paused queue.
type pause struct {
	until core.Instant // of the monotonic clock; zero: until it is resumed
}

// pausedBy records an accepted operation that paused or resumed a queue.
func (w *world) pausedBy(op *core.PauseQueue) {
	delete(w.model.pauses, op.Queue)
	if r := w.ask(&core.InspectQueue{Queue: op.Queue}); r.Kind != core.Queues || !op.Paused {
		return // the pause of an unknown queue is not stored
	}
	p := pause{}
	if op.For > 0 {
		p.until = w.clk.monotonic.Now().Add(op.For)
	}
	w.model.pauses[op.Queue] = p
}

// auditPauses checks that each pause lasts as long as requested, regardless of changes of the wall clock.
func (w *world) auditPauses() error {
	w.engine.Tick()
	if err := w.collect(); err != nil {
		return err
	}
	now := w.clk.monotonic.Now()
	for _, q := range w.ask(&core.ListQueues{}).Queues {
		p, paused := w.model.pauses[q.Name]
		over := p.until != 0 && now >= p.until
		if q.Paused != (paused && !over) {
			return fmt.Errorf("queue %s is paused: %v, was asked to be: %v until %d, now %d", q.Name, q.Paused, paused,
				p.until, now)
		}
	}
	return nil
}

// pausesAfterCrash updates the model to the recovered pauses, which the comparison of commits has checked.
func (w *world) pausesAfterCrash() {
	w.model.pauses = map[string]pause{}
	for _, q := range w.ask(&core.ListQueues{}).Queues {
		if q.Paused {
			w.model.pauses[q.Name] = pause{w.clk.toMonotonic(q.PausedUntil)}
		}
	}
}

// samePause reports whether the pause of a queue is the same as before a restart, or has ended in the meantime.
func (w *world) samePause(was, is *core.QueueInfo) bool {
	return is.Paused == was.Paused && is.PausedUntil == was.PausedUntil && is.PausedFor == was.PausedFor ||
		!is.Paused && was.PausedUntil != 0 && was.PausedUntil <= w.clk.most
}

// refuse refuses new jobs, or admits them again.
func (w *world) refuse() error {
	op := &core.Drain{Tag: w.newTag(), RefuseJobs: w.rng.IntN(4) == 0}
	w.note("jobs are refused: %v", op.RefuseJobs)
	return w.do(w.anyClient(), op, op.Tag, func(core.Reply) { w.refusing = op.RefuseJobs })
}

// checkRefusal checks whether a submission was rightly refused or admitted.
func (w *world) checkRefusal(r *core.Reply) error {
	draining := r.Kind == core.Failed && errors.Is(r.Err, core.ErrDraining)
	if draining && !w.refusing || w.refusing && r.Kind == core.Submitted && !r.Existing {
		return fmt.Errorf("new jobs are refused: %v, and the reply to a submission is %v: %w", w.refusing, r.Kind,
			r.Err)
	}
	return nil
}

// hold makes a client keep an empty queue, or let it go.
func (w *world) hold() error {
	c, queue := w.anyClient(), fmt.Sprint("held-", w.rng.IntN(2))
	op := &core.HoldQueue{Queue: queue, Free: w.rng.IntN(2) == 0}
	w.note("client %d holds %s: %v", c.id, queue, !op.Free)
	if !op.Free {
		c.held = append(c.held, queue)
	} else if i := slices.Index(c.held, queue); i >= 0 {
		c.held = append(c.held[:i], c.held[i+1:]...)
	}
	if err := w.do(c, op, 0, nil); err != nil {
		return err
	}
	return w.heldAreKnown()
}

// heldAreKnown checks that empty queues exist exactly if clients hold them.
func (w *world) heldAreKnown() error {
	w.engine.Tick() // steps that the ends of clients have left
	for n := range 2 {
		queue, held := fmt.Sprint("held-", n), false
		for _, c := range w.clients {
			held = held || slices.Index(c.held, queue) >= 0
		}
		if r := w.ask(&core.InspectQueue{Queue: queue}); (r.Kind == core.Queues) != held {
			return fmt.Errorf("queue %s is held: %v, known: %v", queue, held, !held)
		}
	}
	return nil
}

// kicksOf returns how often Enqueue made a job ready.
func (w *world) kicksOf(p *promise) uint32 {
	if i := w.look(p.seq); i != nil {
		return i.Tally.Kicks
	}
	return 0
}

// kicked checks that an Enqueue was counted, if the job counts them.
func (w *world) kicked(p *promise, before uint32) error {
	want := before
	if p.tallied {
		want++
	}
	if now := w.kicksOf(p); w.look(p.seq) != nil && now != want {
		return fmt.Errorf("job %d was kicked %d times, and counts %d", p.seq, want, now)
	}
	return nil
}
