package machine

import "broker/core"

// What an operation needs that is not in memory is read by whoever holds the machine, outside of the lock: Apply stops
// before the operation and says what it wants, the caller supplies it and applies the rest. The operation is then decided
// from the start, as if nothing had been before.

// Wants lists what Apply needs to go on.
type Wants struct {
	Jobs []uint64 // payloads that are on disk alone
}

// fetching is what the operation of a client waits for, and what it got.
type fetching struct {
	wants    Wants
	supplied map[uint64]supplied
}

// supplied is a payload from the store, as good as it was at an epoch: no payload changes without raising it.
type supplied struct {
	job   *core.Job
	epoch uint32
}

// Wanted takes what the last Apply of a client wants.
func (m *Machine) Wanted(id core.ClientID) Wants {
	c := m.client(id)
	if c == nil || c.fetching == nil {
		return Wants{}
	}
	w := c.fetching.wants
	c.fetching.wants = Wants{}
	return w
}

// SupplyJob gives a payload that Apply wants; nil: the store has none. It reports false if that cannot be: the job was not
// removed meanwhile.
func (m *Machine) SupplyJob(id core.ClientID, seq uint64, j *core.Job) bool {
	if c := m.client(id); c != nil && c.fetching != nil {
		s := c.fetching.supplied[seq]
		s.job = j
		c.fetching.supplied[seq] = s
	}
	return j != nil || m.bySeq.get(seq) == 0
}

// wholeJob is the payload of a job that is to be changed, if nothing is against that. Wanted: the client's operation cannot
// be decided yet.
func (m *Machine) wholeJob(c *client, h uint32, against error) (j *core.Job, wanted bool) {
	if against != nil {
		return nil, false
	}
	if j := m.jobs.payload(h); j != nil {
		return j, false
	}
	e := m.jobs.at(h)
	if c.fetching == nil {
		c.fetching = &fetching{supplied: map[uint64]supplied{}}
	}
	if s := c.fetching.supplied[e.seq]; s.job != nil && s.epoch == e.epoch {
		return s.job, false
	}
	c.fetching.supplied[e.seq] = supplied{epoch: e.epoch}
	c.fetching.wants.Jobs = append(c.fetching.wants.Jobs, e.seq)
	return nil, true
}

// mustFetch reports whether the operation just looked at could not be decided.
func (c *client) mustFetch() bool { return c.fetching != nil && len(c.fetching.wants.Jobs) > 0 }
