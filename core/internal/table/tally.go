package table

import "broker/core"

// What is counted of a job is in a side map, from the first event on, so that other jobs pay for a flag at most.

// Tallied changes the tally of a job that keeps what flag says.
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

// TalliedLease notes a lease that was granted. What counts a job must not go back at a restart, so its attempts are stored too.
func (t *Table) TalliedLease(h uint32, e *Entry) {
	switch {
	case e.Has(TallyFirstLease) && t.tallies[h].FirstLeasedAt == 0:
		t.Tallied(h, e, TallyFirstLease, func(x *core.Tally) { x.FirstLeasedAt = t.Now })
	case e.Has(TallyMoves | TallyFirstLease):
		e.Set(Changed)
		t.Touch(h, e)
	}
}

// setTallies records what is counted of a new or restored job.
func (e *Entry) setTallies(t core.Tallies) {
	if t&core.TallyMoves != 0 {
		e.Set(TallyMoves)
	}
	if t&core.TallyFirstLease != 0 {
		e.Set(TallyFirstLease)
	}
}

// Tally is that of a job; zero if nothing is counted.
func (t *Table) Tally(h uint32, e *Entry) core.Tally {
	if !e.Has(TallyMoves | TallyFirstLease) {
		return core.Tally{}
	}
	return t.tallies[h]
}

// SetTally sets the tally of a restored job.
func (t *Table) SetTally(h uint32, tally core.Tally) { t.tallies[h] = tally }
