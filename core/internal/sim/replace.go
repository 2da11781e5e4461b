package sim

import (
	"fmt"
	"time"

	"broker/core"
)

// draft sometimes makes a submission replace the job with its key, and returns the job that has the key.
func (w *world) draft(op *core.Submit) (holder *core.JobInfo) {
	j := op.Job
	if j.Ephemeral || w.rng.IntN(7) != 0 {
		return nil
	}
	j.Unique, j.UniqueKey, j.UniqueStart = core.UniqueReplace, fmt.Sprint("draft ", w.rng.IntN(2)), w.rng.IntN(4) == 0
	if w.rng.IntN(2) == 0 {
		j.ReadyAt, j.ScheduledOrder, j.SeqOrder = w.clk.Now().Add(
			time.Duration(w.rng.IntN(9000))*time.Millisecond,
		), false, false
	}
	if w.rng.IntN(2) == 0 {
		op.DebounceMs = uint32(1 + w.rng.IntN(15_000))
	}
	holder = w.ask(&core.Inspect{ByUnique: true, Queue: j.Queue, UniqueKey: j.UniqueKey}).Info
	if holder != nil && holder.Job.UniqueUntil != 0 && holder.Job.UniqueUntil <= w.clk.Now() {
		return nil // its reservation has ended
	}
	return holder
}

// checkReplaced checks that a job with the key was changed if it waited, and was not changed if a worker had it. It
// records the change.
func (w *world) checkReplaced(op *core.Submit, asked core.Job, was *core.JobInfo, r *core.Reply) error {
	if was == nil {
		return nil
	}
	if r.Kind == core.Failed {
		if i := w.look(was.Seq); i != nil && i.Epoch != was.Epoch {
			return fmt.Errorf("job %d has changed, and the submission was refused: %w", i.Seq, r.Err)
		}
		return nil
	}
	if was.State == core.Leased || !r.Existing || r.Seq != was.Seq {
		return fmt.Errorf("job %d is %v and has a key; a submission that replaces got job %d", was.Seq, was.State,
			r.Seq)
	}
	p, i := w.model.jobs[r.Seq], w.look(r.Seq)
	if p == nil {
		return nil
	}
	w.note("job %d takes what another submission brings, commit %d", r.Seq, r.Commit)
	due, first := asked.ReadyAt, p.created
	if p.inSeq { // it keeps its place when the clock was set back
		first = was.CreatedAt
	}
	if op.DebounceMs != 0 {
		due = min(due, first.Add(op.Debounce()))
	}
	now := w.clk.Now()
	if i != nil && (i.State == core.Scheduled || i.State == core.Retrying) && i.ReadyAt != due ||
		i != nil && i.State == core.Ready && due > now {
		return fmt.Errorf("job %d is %v and due at %d, should be due at %d, first submitted at %d", r.Seq, i.State,
			i.ReadyAt, due, p.created)
	}
	if i != nil && i.Epoch <= was.Epoch {
		return fmt.Errorf("job %d was changed and keeps epoch %d", r.Seq, i.Epoch)
	}
	set := core.JobChange{Body: &core.Body{Bytes: asked.Body}, Priority: &asked.Priority}
	return w.changed(p, set, *r)
}

// firstOf returns the job of a submission, due as if no other job had its key.
func (w *world) firstOf(op *core.Submit) *core.Job {
	first := *op.Job
	if op.DebounceMs != 0 {
		first.ReadyAt = min(first.ReadyAt, w.clk.Now().Add(op.Debounce()))
	}
	return &first
}
