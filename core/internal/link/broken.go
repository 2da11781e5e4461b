package link

import (
	"broker/core"
	"broker/core/internal/table"
)

// Jobs that wait for a dead job, or for a job that ended without being done, are collected while links change. The machine handles them at
// the end of the operation, in the same batch.

// Breach is a broken dependency: job Seq waits for job Pred, and Pred or a child of Pred is dead or ended without
// being done.
type Breach struct{ Seq, Pred uint64 }

// breaks records that a dependency of a job has ended. If the dependency was not done, it marks the job as broken, unless the job
// runs without it. It returns true if the job's status changes.
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

// breakIfDead records a new dependency that is dead.
func (l *Links) breakIfDead(e *table.Entry, x *table.Optional, p uint32) {
	if pred := l.table.At(p); x.OnBroken != core.BrokenWaits && pred.State == core.Dead {
		l.breaking = append(l.breaking, Breach{e.Seq, pred.Seq})
	}
}

// Died records the jobs that wait for a job that has died, and the jobs that wait until one of its ancestors is
// closed.
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

// breakAll records the jobs of a list that wait for pred and must not wait for a dead job.
func (l *Links) breakAll(seqs []uint64, pred uint64) {
	for _, seq := range seqs {
		if x := l.table.Optional(l.table.Handle(seq)); x != nil && x.OnBroken != core.BrokenWaits && l.waits(seq, pred) {
			l.breaking = append(l.breaking, Breach{seq, pred})
		}
	}
}

// NextBroken takes the first recorded job; false: there is none.
func (l *Links) NextBroken() (Breach, bool) {
	if len(l.breaking) == 0 {
		l.breaking = nil
		return Breach{}, false
	}
	b := l.breaking[0]
	l.breaking = l.breaking[1:]
	return b, true
}

// HasBroken reports whether there are recorded jobs.
func (l *Links) HasBroken() bool { return len(l.breaking) > 0 }
