package machine

import "broker/core"

// What is counted of a job is in a side map, from the first event on, so that other jobs pay for a flag at most.

// tallied changes the tally of a job that keeps what flag says.
func (m *Machine) tallied(h uint32, e *entry, flag flags, change func(*core.Tally)) {
	if !e.has(flag) {
		return
	}
	t := m.tallies[h]
	change(&t)
	m.tallies[h] = t
	e.set(changed)
	m.touch(h, e)
}

// talliedLease notes a lease that was granted. What counts a job must not go back at a restart, so its attempts are stored too.
func (m *Machine) talliedLease(h uint32, e *entry) {
	switch {
	case e.has(tallyFirstLease) && m.tallies[h].FirstLeasedAt == 0:
		m.tallied(h, e, tallyFirstLease, func(t *core.Tally) { t.FirstLeasedAt = m.now })
	case e.has(tallyMoves | tallyFirstLease):
		e.set(changed)
		m.touch(h, e)
	}
}

// setTallies records what is counted of a new or restored job.
func (e *entry) setTallies(t core.Tallies) {
	if t&core.TallyMoves != 0 {
		e.set(tallyMoves)
	}
	if t&core.TallyFirstLease != 0 {
		e.set(tallyFirstLease)
	}
}

// tally is that of a job; zero if nothing is counted.
func (m *Machine) tally(h uint32, e *entry) core.Tally {
	if !e.has(tallyMoves | tallyFirstLease) {
		return core.Tally{}
	}
	return m.tallies[h]
}
