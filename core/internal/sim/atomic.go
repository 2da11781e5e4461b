package sim

import (
	"cmp"
	"fmt"
	"slices"

	"broker/core"
)

// atomic changes some jobs together, or none if a condition does not match.
func (w *world) atomic() error {
	p := w.anyJob()
	if p == nil {
		return nil
	}
	c := w.anyClient()
	jobs := []*promise{p}
	for range 1 + w.rng.IntN(2) {
		if also := w.anyJob(); !slices.Contains(jobs, also) {
			jobs = append(jobs, also)
		}
	}
	op := &core.Atomic{Tag: w.newTag()}
	var accepted []func(core.Reply) error
	for _, p := range jobs {
		one, then := w.listed(p)
		op.Ops, accepted = append(op.Ops, one), append(accepted, then)
	}
	body := fmt.Sprint("body ", w.number)
	submit := &core.Submit{
		Tag: w.newTag(),
		Job: &core.Job{Queue: queueName(w.rng.IntN(4)), Origin: core.Faktory, Body: []byte(body), Tags: tagsOf(body)},
	}
	write, written := w.writeDocument()
	entry := &core.WriteMeta{
		Tag: w.newTag(), Entries: []core.MetaEntry{{Name: metaName, Value: fmt.Append(nil, w.number)}},
	}
	if w.rng.IntN(2) == 0 { // placed before operations that may be refused
		op.Ops, accepted = append([]core.Op{entry},
			op.Ops...), append([]func(core.Reply) error{func(core.Reply) error { return nil }}, accepted...)
	}
	seq := uint64(0)
	op.Ops, accepted = append(op.Ops, submit, write), append(accepted, func(r core.Reply) error {
		seq = r.Seq
		w.submitted(c, submit, false, r)
		return nil
	}, func(r core.Reply) error {
		written(r, seq)
		return nil
	})
	before := w.brief(jobs)
	var against error
	err := w.do(c, op, op.Tag, func(r core.Reply) {
		if r.Kind != core.Accepted {
			if after := w.brief(jobs); after != before {
				against = fmt.Errorf("a list was refused with %w and has changed\n%s to\n%s", r.Err, before, after)
			}
			return
		}
		w.note("%d operations together, commit %d", len(op.Ops), r.Commit)
		if len(r.Replies) != len(op.Ops) {
			against = fmt.Errorf("%d operations are answered by %d replies", len(op.Ops), len(r.Replies))
			return
		}
		for i, one := range r.Replies {
			if one.Kind == core.Failed {
				against = cmp.Or(against, fmt.Errorf("operation %d of an accepted list is refused: %w", i, one.Err))
			}
			against = cmp.Or(against, accepted[i](one))
		}
	})
	for _, p := range jobs {
		err = cmp.Or(err, w.checkNotified(p.seq))
	}
	return cmp.Or(err, against)
}

// listed returns one operation of a list, with its effect on the model.
func (w *world) listed(p *promise) (core.Op, func(core.Reply) error) {
	ref, is, before := core.Ref{Seq: p.seq}, w.condition(), w.look(p.seq)
	stored := w.stores(p)
	switch w.rng.IntN(4) {
	case 0:
		return &core.Cancel{Tag: w.newTag(), Ref: ref, If: is}, func(r core.Reply) error {
			p.recordEnd(w.commitOf(r, stored))
			return wronglyAccepted(p.seq, before, is)
		}
	case 1:
		return &core.Bury{Tag: w.newTag(), Ref: ref, If: is}, func(r core.Reply) error {
			p.leased = false
			w.clearStop(p, r)
			return wronglyAccepted(p.seq, before, is)
		}
	}
	set := w.set()
	return &core.Update{Tag: w.newTag(), Ref: ref, If: is, Set: set}, func(r core.Reply) error {
		return cmp.Or(wronglyAccepted(p.seq, before, is), w.changed(p, set, r))
	}
}

// brief describes the state that a refused list must not change.
func (w *world) brief(jobs []*promise) (text string) {
	text = fmt.Sprintf("entry %q; ", w.ask(&core.ReadMeta{Name: metaName}).Data)
	for _, p := range jobs {
		if i := w.look(p.seq); i != nil {
			text += fmt.Sprintf("%d %v in %s, epoch %d; ", p.seq, i.State, i.Queue, i.Epoch)
		}
	}
	return text
}
