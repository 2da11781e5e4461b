package qless

import (
	"errors"
	"slices"

	"broker/core"
)

// atomicOps limits the operations in one Atomic, which also holds the documents.
const atomicOps = core.MaxAtomic - 1

// commit makes a command durable: it sends its operations and documents to the broker together.
func (t *tx) commit() error {
	docs := t.documents()
	err := t.apply(t.plan(false), docs)
	if errors.Is(err, core.ErrInvalid) && t.hasDependencies() { // jobs that wait for each other
		err = t.apply(t.plan(true), docs)
	}
	if err == nil {
		t.dropEmpty()
		t.front.follow(t)
	}
	return err
}

func (t *tx) hasDependencies() bool {
	return slices.ContainsFunc(t.touched, func(j *job) bool { return len(j.dependencies) > 0 })
}

// apply sends a plan in one call of the broker, so that all of it is in one commit.
func (t *tx) apply(p *plan, docs []core.MetaEntry) error {
	var lists []*core.Atomic
	var steps [][]step
	add := func(all []step) {
		for part := range slices.Chunk(all, atomicOps) {
			a := &core.Atomic{}
			for i := range part {
				if part[i].op != nil {
					a.Ops = append(a.Ops, part[i].op)
				}
			}
			lists, steps = append(lists, a), append(steps, part)
		}
	}
	add(p.submits)
	add(p.rest)
	if len(docs) > 0 {
		if len(lists) == 0 {
			lists, steps = append(lists, &core.Atomic{}), append(steps, nil)
		}
		last := lists[len(lists)-1]
		last.Ops = append(last.Ops, &core.WriteDocuments{Documents: docs})
	}
	ops := make([]core.Op, 0, len(lists)+len(t.pauses))
	for _, a := range lists {
		ops = append(ops, a)
	}
	replies := t.front.do(append(ops, t.pauses...))
	replies = replies[:len(lists)]
	refused := slices.IndexFunc(replies, func(r core.Reply) bool { return r.Kind == core.Failed })
	for i := range replies {
		switch r := &replies[i]; {
		case refused < 0:
			t.applied(steps[i], r.Replies)
		case r.Kind == core.Failed:
			t.front.markDirty(r.Seq)
		default:
			t.undoAccepted(steps[i], r.Replies)
		}
	}
	if refused >= 0 {
		return replies[refused].Err
	}
	return nil
}

// applied records the new state of the jobs in the broker.
func (t *tx) applied(steps []step, replies []core.Reply) {
	for i := range steps {
		s := &steps[i]
		then := s.then
		if s.op != nil {
			r := &replies[0]
			replies = replies[1:]
			switch s.op.(type) {
			case *core.Submit:
				then.seq = r.Seq
			case *core.LeaseJob:
				then.seq, then.epoch = r.Seq, r.Lease.Epoch
			case *core.Update:
				if then.leased {
					then.epoch = r.Lease.Epoch
				}
			}
		}
		if was := s.j.broker.seq; was != 0 && was != then.seq {
			erase(t, t.m.jobs.jids, was)
		}
		if then.seq != 0 {
			then.priority = corePriority(s.j.priority)
			assign(t, t.m.jobs.jids, then.seq, s.j.jid)
		}
		s.j.broker = then
	}
}

// undoAccepted undoes accepted operations after the broker has refused another part of the command. It cancels
// submitted jobs and marks all others for the next sync.
func (t *tx) undoAccepted(steps []step, replies []core.Reply) {
	var cancels []core.Op
	for i := range steps {
		if steps[i].op == nil {
			continue
		}
		seq := replies[0].Seq
		replies = replies[1:]
		if _, submitted := steps[i].op.(*core.Submit); submitted {
			cancels = append(cancels, &core.Cancel{Ref: core.Ref{Seq: seq}})
		} else {
			t.front.markDirty(seq)
		}
	}
	if len(cancels) > 0 {
		t.front.do(cancels)
	}
}

// do runs operations. It returns one reply for each, and keeps the events that the broker returns with them.
func (f *Frontend) do(ops []core.Op) []core.Reply {
	f.replies = f.client.Do(ops, f.replies[:0])
	answers := make([]core.Reply, 0, len(ops))
	for i := range f.replies {
		r := &f.replies[i]
		if r.Kind == core.EventReply {
			f.noteEvent(&r.Event)
			continue
		}
		answers = append(answers, *r)
	}
	clear(f.replies)
	if len(answers) < len(ops) { // the broker has stopped
		return slices.Repeat([]core.Reply{{Kind: core.Failed, Err: core.ErrStopped}}, len(ops))
	}
	return answers
}

// one runs one operation.
func (f *Frontend) one(op core.Op) core.Reply { return f.do([]core.Op{op})[0] }
