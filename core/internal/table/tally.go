package table

import "broker/core"

// The tally of a job is in a separate map, from the first event on, so other jobs only need a flag.

// Tallied changes the tally of a job if the job has the flag.
func (t *Table) Tallied(h uint32, e *Entry, flag Flags, change func(*core.Tally)) {
	if !e.Has(flag) {
		return
	}
	tally := t.tallies[h]
	change(&tally)
	t.tallies[h] = tally
	e.Set(Changed)
	t.Touch(h, e)
}

// TalliedLease counts a granted lease. The counters must not go back at a restart, so the job's attempts are stored
// too.
func (t *Table) TalliedLease(h uint32, e *Entry) {
	switch {
	case e.Has(TallyFirstLease) && t.tallies[h].FirstLeasedAt == 0:
		t.Tallied(h, e, TallyFirstLease, func(x *core.Tally) { x.FirstLeasedAt = t.Now })
	case e.Has(TallyMoves | TallyFirstLease):
		e.Set(Changed)
		t.Touch(h, e)
	}
}

// setTallies records which counters a new or restored job has.
func (e *Entry) setTallies(t core.Tallies) {
	if t&core.TallyMoves != 0 {
		e.Set(TallyMoves)
	}
	if t&core.TallyFirstLease != 0 {
		e.Set(TallyFirstLease)
	}
}

// Tally returns the tally of a job; zero if nothing is counted.
func (t *Table) Tally(h uint32, e *Entry) core.Tally {
	if !e.Has(TallyMoves | TallyFirstLease) {
		return core.Tally{}
	}
	return t.tallies[h]
}

// SetTally sets the tally of a restored job.
func (t *Table) SetTally(h uint32, tally core.Tally) { t.tallies[h] = tally }
