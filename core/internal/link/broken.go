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

// death is the death of a job that may break dependents of the job, and then of its ancestors that are not closed.
type death struct {
	of uint64 // the job; if it leaves the dead set, its death breaks nothing any more
	at uint64 // the job or ancestor whose dependents are next
}

// Died records the death of a job. It breaks the jobs that wait for the job, and the jobs that wait until one of its
// ancestors is closed.
func (l *Links) Died(h uint32) {
	if x := l.table.Optional(h); x != nil {
		l.deaths = append(l.deaths, death{l.table.At(h).Seq, l.table.At(h).Seq})
	}
}

// next returns the next job that a death breaks; false: there is none. The list of breakable dependents is the list
// of jobs that are left: the caller of NextBroken decides about a job before it asks for the next one, and the job
// does not wait any more.
func (l *Links) next(d *death) (Breach, bool) {
	if h := l.table.Handle(d.of); h == 0 || l.table.At(h).State != core.Dead {
		return Breach{}, false
	}
	for {
		l.table.Touched++
		x := l.table.Optional(l.table.Handle(d.at))
		if x == nil {
			return Breach{}, false
		}
		h := x.Successors.FirstBreakable()
		if child := x.Children.FirstBreakable(); child != 0 && d.at == d.of {
			h = child
		}
		if h != 0 {
			return Breach{l.table.At(h).Seq, d.at}, true
		}
		if x.Parent == 0 || x.IsClosed || l.table.Handle(x.Parent) == 0 {
			return Breach{}, false
		}
		d.at = x.Parent
	}
}

// NextBroken takes the first broken job; false: there is none. The caller decides about the job before it calls
// NextBroken again.
func (l *Links) NextBroken() (Breach, bool) {
	if len(l.breaking) > 0 {
		b := l.breaking[0]
		l.breaking = l.breaking[1:]
		return b, true
	}
	for len(l.deaths) > 0 {
		if b, found := l.next(&l.deaths[0]); found {
			return b, true
		}
		l.deaths = l.deaths[1:]
	}
	l.breaking, l.deaths = nil, nil
	return Breach{}, false
}

// HasBroken reports whether NextBroken may find a job.
func (l *Links) HasBroken() bool { return len(l.breaking)+len(l.deaths) > 0 }
