package sim

import (
	"fmt"
	"slices"

	"broker/core"
)

// order cancels, buries or enqueues some job.
func (w *world) order() error {
	p := w.anyJob()
	if p == nil {
		return nil
	}
	tag, ref, is := w.newTag(), core.Ref{Seq: p.seq}, w.condition()
	var op core.Op
	var accepted func(core.Reply)
	switch w.rng.IntN(4) {
	case 0:
		op = &core.Cancel{Tag: tag, Ref: ref, If: is}
		accepted = func(r core.Reply) { p.over(w.commitOf(r, !p.ephemeral)) }
	case 1:
		op = &core.Bury{Tag: tag, Ref: ref, If: is}
		accepted = func(core.Reply) { p.leased = false }
	case 2:
		return w.cancelSet(p, is)
	default:
		op = &core.Enqueue{Tag: tag, Ref: ref, If: is}
		p.forced = true
		accepted = func(core.Reply) {}
	}
	before := w.look(p.seq)
	var against error
	err := w.do(w.anyClient(), op, tag, func(r core.Reply) {
		if r.Kind == core.Accepted {
			w.note("%T %d, commit %d", op, p.seq, r.Commit)
			against = broken(p.seq, before, is)
			accepted(r)
		}
	})
	if err != nil || against != nil {
		return errorOr(err, against)
	}
	return w.told(p.seq)
}

// condition is mostly none.
func (w *world) condition() (is core.Condition) {
	switch w.rng.IntN(9) {
	case 0:
		is = core.InState(core.States[w.rng.IntN(len(core.States))], core.Ready)
	case 1:
		is.Epoch, is.HasEpoch = uint32(w.rng.IntN(3)), true //nolint:gosec // small
	case 2:
		is.Queue = queueName(w.rng.IntN(4))
	case 3:
		is.Worker = fmt.Sprint("worker ", w.rng.IntN(3))
	}
	return is
}

// broken says that an operation was accepted though its condition did not hold of the job before.
func broken(seq uint64, i *core.JobInfo, is core.Condition) error {
	if i == nil || len(is.States) > 0 && !slices.Contains(is.States, i.State) || is.HasEpoch && is.Epoch != i.Epoch ||
		is.Queue != "" && is.Queue != i.Queue || is.Worker != "" && is.Worker != i.Worker {
		return fmt.Errorf("an operation on job %d was accepted under %+v, the job was %+v", seq, is, i)
	}
	return nil
}

func errorOr(err, otherwise error) error {
	if err != nil {
		return err
	}
	return otherwise
}

// cancelSet cancels some jobs together, provided that no other one waits for them.
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
		if against = broken(p.seq, before, is); against == nil && len(waiting) > 0 {
			against = fmt.Errorf("job %d and %v were cancelled though jobs %v wait for them", p.seq, op.Also, waiting)
		}
		for _, one := range set {
			if w.look(one.seq) != nil {
				against = errorOr(against, fmt.Errorf("job %d was cancelled with %d and is there", one.seq, p.seq))
			}
			one.over(w.commitOf(r, !one.ephemeral))
		}
	})
	for _, one := range set {
		err = errorOr(err, w.told(one.seq))
	}
	return errorOr(err, against)
}

// waitingFor lists the jobs outside of a set that wait for one of it which has not ended.
func (w *world) waitingFor(set []*promise) (waiting []uint64) {
	in := map[uint64]bool{}
	for _, p := range set {
		if i := w.look(p.seq); i != nil && i.State != core.Done {
			in[p.seq] = true
		}
	}
	for _, seq := range w.model.seqs {
		p := w.model.jobs[seq]
		if in[seq] || !in[p.parent] && !slices.ContainsFunc(p.after, func(s uint64) bool { return in[s] }) {
			continue
		}
		if i := w.look(seq); i != nil && i.State == core.Blocked {
			waiting = append(waiting, seq)
		}
	}
	return waiting
}
