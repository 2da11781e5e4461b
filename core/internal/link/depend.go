package link

import (
	"slices"

	"broker/core"
	"broker/core/internal/table"
)

// Resolve finds the jobs that a job is to depend on. It fails with core.ErrInvalid if the job would depend on itself,
// directly or through other jobs; see wouldCreateCycle.
func (l *Links) Resolve(e *table.Entry, after []core.Ref) ([]uint64, error) {
	if len(after) > core.MaxAfter {
		return nil, core.ErrInvalid
	}
	seqs := make([]uint64, 0, len(after))
	named := make(map[uint64]bool, len(after))
	for _, ref := range after {
		seq := ref.Seq
		switch h := l.table.Find(ref); {
		case h != 0:
			seq = l.table.At(h).Seq
		case seq == 0:
			return nil, core.ErrNotFound
		case seq >= l.table.NextSeq:
			return nil, core.ErrInvalid
		}
		if !named[seq] {
			named[seq] = true
			seqs = append(seqs, seq)
		}
	}
	if len(seqs) > 0 && l.wouldCreateCycle(e.Seq, seqs) {
		return nil, core.ErrInvalid
	}
	return seqs, nil
}

// WaitFor makes a job depend on the jobs in after that are not closed. A job that was closed without being done
// breaks it.
func (l *Links) WaitFor(h uint32, e *table.Entry, after []uint64) {
	x := l.table.EnsureOptional(h)
	waits := make(map[uint64]bool, len(x.Waiting)+len(after))
	for _, seq := range x.Waiting {
		waits[seq] = true
	}
	for _, seq := range after {
		p := l.table.Handle(seq)
		switch {
		case p == 0 || waits[seq]: // long done and gone, or named twice
		case seq == x.Parent: // the parent is closed after its child
		case l.openJob(seq) != 0:
			l.wait(h, x, seq)
			waits[seq] = true
			l.breakIfDead(e, x, p)
		default:
			l.breaks(e, x, seq, !l.table.At(p).Has(table.DoneFailed) &&
				(l.table.Optional(p) == nil || !l.table.Optional(p).ChildrenBroken))
		}
	}
	slices.Sort(x.Waiting)
}

// UnlinkAfter removes all dependencies except the parent.
func (l *Links) UnlinkAfter(h uint32, e *table.Entry) {
	e.Clear(table.Broken)
	if x := l.table.Optional(h); x != nil {
		l.StopWaiting(h, x, func(seq uint64) bool { return seq != x.Parent })
	}
}

// StopWaiting removes the dependencies that drop selects, at both ends.
func (l *Links) StopWaiting(h uint32, x *table.Optional, drop func(seq uint64) bool) {
	x.Waiting = slices.DeleteFunc(x.Waiting, func(seq uint64) bool {
		if !drop(seq) {
			return false
		}
		l.leave(h, x, seq)
		return true
	})
}
