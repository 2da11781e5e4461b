package service

import (
	"context"
	"errors"

	"broker/access"
	"broker/core"
)

// pageResult is the result of the operations of a page.
type pageResult struct {
	changed, skipped int
	made             []uint64  // new jobs
	full             []core.Op // refused because the open commit is too large, or the disk is full
	latest           core.Commit
}

// applyPage applies the operations of one page and waits for their commit. Jobs that have changed in the meantime are
// skipped. Operations that did not fit into the commit are repeated in the next one.
func (s *Service) applyPage(ctx context.Context, c *session, op *operation, ops []core.Op) error {
	for len(ops) > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		r, err := c.applyOps(ops)
		if err != nil {
			return err
		}
		if len(r.full) == len(ops) {
			return core.ErrDiskFull
		}
		if err := c.committed(context.WithoutCancel(ctx), r.latest); err != nil {
			return err
		}
		created := s.namesOf(c, r.made, maxCreated-len(op.snapshot().Created))
		op.update(func(v *Operation) {
			v.Changed += r.changed
			v.Skipped += r.skipped
			v.Created = append(v.Created[:len(v.Created):len(v.Created)], created...)
			v.Matched = max(v.Matched, v.Changed+v.Skipped)
			v.Progress = float64(v.Changed+v.Skipped) / float64(v.Matched)
		})
		s.saveOperation(c, op)
		ops = r.full
	}
	return nil
}

// applyOps applies operations.
func (c *session) applyOps(ops []core.Op) (p pageResult, err error) {
	replies := c.AskAll(ops...)
	for i := range replies {
		r := &replies[i]
		switch {
		case r.Kind == core.Submitted && r.Existing: // its unique key is taken
			p.skipped++
		case r.Kind != core.Failed:
			if p.changed++; r.Kind == core.Submitted {
				p.made = append(p.made, r.Seq)
			}
		case errors.Is(r.Err, core.ErrStopped), errors.Is(r.Err, core.ErrShutdown):
			return p, r.Err
		case errors.Is(r.Err, core.ErrDiskFull) && i < len(ops):
			p.full = append(p.full, ops[i])
		default:
			p.skipped++
		}
		p.latest = max(p.latest, r.Commit)
	}
	return p, nil
}

// maxCreated is the maximum number of new jobs that an operation names.
const maxCreated = 100

// namesOf returns the ids of the first limit jobs of a list.
func (s *Service) namesOf(c *session, seqs []uint64, limit int) (names []string) {
	for _, seq := range seqs[:min(max(limit, 0), len(seqs))] {
		name := seqName(seq)
		if r, err := c.ask(&core.Inspect{Ref: core.Ref{Seq: seq}, Brief: true}); err == nil {
			name = core.MintedID(seq, r.Info.CreatedAt)
		}
		names = append(names, name)
	}
	return names
}

// Rerun submits a copy of a job that has ended, and returns its id.
func (s *Service) Rerun(ctx context.Context, caller Caller, name string) (string, error) {
	c := s.open(caller)
	defer c.Close()
	info, err := s.inspect(ctx, c, access.Operate, name, true)
	if err != nil {
		return "", err
	}
	a := Action{Action: ActionRerun}
	r, err := c.ask(a.op(core.Ref{Seq: info.Seq}, core.Condition{Queue: info.Queue}))
	if err != nil {
		return "", c.after(ctx, r.Commit, err)
	}
	commit := s.note(c, a.entry(name, info))
	return s.namesOf(c, []uint64{r.Seq}, 1)[0], c.committed(ctx, max(r.Commit, commit))
}
