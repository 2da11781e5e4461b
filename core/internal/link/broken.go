package link

import (
	"broker/core"
	"broker/core/internal/table"
)

// Jobs that wait for a dead job, or for a job that ended without being done, are collected while links change. The
// machine handles them at the end of the operation, in the same batch.

// Breach is a broken dependency: job Seq waits for job Pred, and Pred or a child of Pred is dead or ended without
// being done.
type Breach struct{ Seq, Pred uint64 }

// breaks records that a dependency of a job has ended. If the dependency was not done, it marks the job as broken,
// unless the job runs without it. It returns true if the job's status changes.
func (l *Links) breaks(e *table.Entry, x *table.Optional, pred uint64, success bool) bool {
	if success || x.OnBroken == core.BrokenReleases {
		return false
	}
	if x.OnBroken != core.BrokenWaits {
		l.breaking = append(l.breaking, Breach{e.Seq, pred})
		l.table.Linked += len(x.Waiting) // the decision cuts these links
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

// next returns the next job that a death breaks. Without one, it climbs to the parent, and returns no job; more is
// false if there is no parent to be closed either. The list of breakable dependents is the list of those that are
// left: the caller decides about a job before the next call, and the job does not wait any more.
func (l *Links) next(d *death) (b Breach, more bool) {
	l.table.Touched++
	if h := l.table.Handle(d.of); h == 0 || l.table.At(h).State != core.Dead {
		return Breach{}, false
	}
	x := l.table.Optional(l.table.Handle(d.at))
	if x == nil {
		return Breach{}, false
	}
	if h := l.breakable(x, d); h != 0 {
		return Breach{l.table.At(h).Seq, d.at}, true
	}
	if !l.climbs(x) {
		return Breach{}, false
	}
	d.at = x.Parent
	return Breach{}, true
}

// breakable returns a job that a death breaks, among the dependents of x, which is at d.at; zero: there is none.
func (l *Links) breakable(x *table.Optional, d *death) uint32 {
	if d.at == d.of {
		if h := x.Children.FirstBreakable(); h != 0 {
			return h
		}
	}
	return x.Successors.FirstBreakable()
}

// climbs reports whether a death breaks jobs that wait for the parent of x.
func (l *Links) climbs(x *table.Optional) bool {
	return x.Parent != 0 && !x.IsClosed && l.table.Handle(x.Parent) != 0
}

// NextBroken takes the first broken job; false: there is none, or a later step finds the rest. The caller decides
// about the job before it calls NextBroken again.
func (l *Links) NextBroken() (Breach, bool) {
	if len(l.breaking) > 0 {
		b := l.breaking[0]
		l.breaking = l.breaking[1:]
		return b, true
	}
	for len(l.deaths) > 0 {
		d := &l.deaths[0]
		if l.StepOver() {
			l.laterDeath(*d)
			l.deaths = l.deaths[1:]
			continue
		}
		b, more := l.next(d)
		if b.Seq != 0 {
			return b, true
		}
		if !more {
			l.deaths = l.deaths[1:]
		}
	}
	l.breaking, l.deaths = nil, nil
	return Breach{}, false
}

// laterDeath leaves what a death breaks for later, if it may break anything.
func (l *Links) laterDeath(d death) {
	x := l.table.Optional(l.table.Handle(d.at))
	if x != nil && (l.breakable(x, &d) != 0 || l.climbs(x)) {
		l.later(&rest{restKey: restKey{d.of, ofDeath}, death: d})
	}
}

// HasBroken reports whether NextBroken may find a job.
func (l *Links) HasBroken() bool { return len(l.breaking)+len(l.deaths) > 0 }
