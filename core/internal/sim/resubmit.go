package sim

import (
	"cmp"
	"fmt"
	"slices"

	"broker/core"
)

// resubmit submits a job again, if it has ended. The model computes the new job from the old job as the broker shows
// it.
func (w *world) resubmit() error {
	p := w.endedJob()
	if p == nil {
		return nil
	}
	old, is := w.look(p.seq), w.condition()
	c, op := w.anyClient(), &core.Resubmit{Tag: w.newTag(), Ref: core.Ref{Seq: p.seq}, If: is}
	asked := &core.Submit{Tag: op.Tag}
	lossy := false
	if old != nil && old.Job != nil {
		asked.Job = w.copyOf(old)
		lossy = w.losesNew(asked)
	}
	var wrong error
	err := w.do(c, op, op.Tag, func(r core.Reply) {
		if r.Kind != core.Submitted {
			w.note("resubmit %d refused: %v", p.seq, r.Err)
			return
		}
		if wrong = wronglyAccepted(p.seq, old, is); wrong != nil {
			return
		}
		if old.State != core.Done {
			wrong = fmt.Errorf("job %d was submitted again while it was %v", p.seq, old.State)
			return
		}
		w.note("resubmit %d", p.seq)
		if !r.Existing {
			wrong = w.sameAs(asked.Job, r.Seq, p.damaged)
		}
		w.submitted(c, asked, lossy, r)
		if made := w.model.jobs[r.Seq]; !r.Existing && made != nil {
			made.rerunOf = p.seq
		}
	})
	return cmp.Or(err, wrong)
}

// endedJob returns a job that has ended and is kept, or sometimes any job.
func (w *world) endedJob() *promise {
	var ended []uint64
	for _, i := range w.ask(&core.ListJobs{State: core.Done, Limit: 100, Brief: true}).Jobs {
		if w.model.jobs[i.Seq] != nil {
			ended = append(ended, i.Seq)
		}
	}
	if len(ended) == 0 || w.rng.IntN(5) == 0 {
		return w.anyJob()
	}
	slices.Sort(ended)
	return w.model.jobs[ended[w.rng.IntN(len(ended))]]
}

// copyOf returns the expected copy when a job is submitted again.
func (w *world) copyOf(old *core.JobInfo) *core.Job {
	o, now := old.Job, w.clk.Now()
	j := &core.Job{
		Queue: old.Queue, Type: old.Type, Body: o.Body, Tags: o.Tags, Origin: o.Origin, Priority: old.Priority,
		Format: o.Format,
		Own:    o.Own, MaxAttempts: o.MaxAttempts, MaxFails: o.MaxFails, Exhausted: o.Exhausted, LeaseFor: o.LeaseFor,
		SeqOrder: o.SeqOrder,
		Tallies:  o.Tallies, Unique: o.Unique, UniqueKey: o.UniqueKey, Cost: o.Cost,
		Rare: &core.RareFields{RerunOf: old.Seq},
	}
	if o.ExpiresAt != 0 {
		j.ExpiresAt = now.Add(max(o.ExpiresAt.Sub(o.CreatedAt), 1))
	}
	if o.StartBefore != 0 {
		j.StartBefore = now.Add(max(o.StartBefore.Sub(o.CreatedAt), 1))
	}
	j.ExpiresAt = w.expiryOf(j)
	return j
}

// sameAs compares a new job with the expected job.
func (w *world) sameAs(want *core.Job, seq uint64, damaged bool) error {
	i := w.look(seq)
	if i == nil || i.Job == nil {
		return fmt.Errorf("job %d was submitted again as %d, which is not there", want.Rare.RerunOf, seq)
	}
	got := i.Job
	if i.Queue != want.Queue || i.Type != want.Type || string(got.Body) != string(want.Body) && !damaged ||
		!slices.Equal(got.Tags, want.Tags) ||
		got.Origin != want.Origin || i.Priority != want.Priority || got.Format != want.Format || got.Own != want.Own ||
		got.MaxAttempts != want.MaxAttempts || got.MaxFails != want.MaxFails || got.Exhausted != want.Exhausted ||
		got.LeaseFor != want.LeaseFor ||
		got.SeqOrder != want.SeqOrder || got.Tallies != want.Tallies || got.Unique != want.Unique ||
		got.UniqueKey != want.UniqueKey ||
		got.Cost != want.Cost || got.Rares() != want.Rares() || got.StartBefore != want.StartBefore || got.ID != "" ||
		got.Parent != 0 || got.After != nil ||
		got.Batch != 0 || got.Schedule != "" || got.CallbackFor != 0 || i.Fails != 0 {
		return fmt.Errorf("job %d was submitted again as %+v of %+v, and should be %+v", want.Rare.RerunOf, got, i, want)
	}
	if i.State.Unfinished() && i.ExpiresAt != want.ExpiresAt {
		return fmt.Errorf("job %d expires at %d and not at %d", seq, i.ExpiresAt, want.ExpiresAt)
	}
	return nil
}
