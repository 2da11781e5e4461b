package link

import (
	"broker/core"
	"broker/core/internal/table"
)

// Jobs that wait for one that is gone without being done, or dead, are noted while links change. The machine decides about them at the end
// of the operation, in the same batch.

// Breach is a job that waits for another, which is dead or gone without being done, or has a child that is.
type Breach struct{ Seq, Pred uint64 }

// breaks notes that a dependency of a job has ended. It returns true if that changes the job's status: one that was not done marks
// the job as broken, unless the job runs without it.
func (l *Links) breaks(e *table.Entry, x *table.Optional, pred uint64, success bool) bool {
	if success || x.OnBroken == core.BrokenReleases {
		return false
	}
	if x.OnBroken != core.BrokenWaits {
		l.breaking = append(l.breaking, Breach{e.Seq, pred})
	}
	if e.Has(table.Broken) {
		return false
	}
	e.Set(table.Broken)
	return true
}

// breakIfDead notes a new dependency that is dead.
func (l *Links) breakIfDead(e *table.Entry, x *table.Optional, p uint32) {
	if pred := l.table.At(p); x.OnBroken != core.BrokenWaits && pred.State == core.Dead {
		l.breaking = append(l.breaking, Breach{e.Seq, pred.Seq})
	}
}

// Died notes the jobs that wait for a job that has died, and those that wait for one of its ancestors to be closed.
func (l *Links) Died(h uint32) {
	x := l.table.Optional(h)
	if x == nil {
		return
	}
	seq := l.table.At(h).Seq
	l.breakAll(x.Children, seq)
	for {
		l.breakAll(x.Successors, seq)
		p := l.table.Handle(x.Parent)
		if x.Parent == 0 || p == 0 || x.IsClosed {
			return
		}
		if seq, x = x.Parent, l.table.Optional(p); x == nil {
			return
		}
	}
}

// breakAll notes the jobs of a list that wait for pred and do not want to wait for a dead one.
func (l *Links) breakAll(seqs []uint64, pred uint64) {
	for _, seq := range seqs {
		if x := l.table.Optional(l.table.Handle(seq)); x != nil && x.OnBroken != core.BrokenWaits && l.waits(seq, pred) {
			l.breaking = append(l.breaking, Breach{seq, pred})
		}
	}
}

// NextBroken takes the first job that was noted; false: there is none.
func (l *Links) NextBroken() (Breach, bool) {
	if len(l.breaking) == 0 {
		l.breaking = nil
		return Breach{}, false
	}
	b := l.breaking[0]
	l.breaking = l.breaking[1:]
	return b, true
}

// HasBroken reports whether there are jobs to decide about.
func (l *Links) HasBroken() bool { return len(l.breaking) > 0 }
