package machine

import (
	"fmt"

	"broker/core"
	"broker/core/crontab"
)

// What an operation needs that is not in memory is read by whoever holds the machine, outside of the lock: Apply stops
// before the operation and says what it wants, the caller supplies it and applies the rest. The operation is then decided
// from the start, as if nothing had been before.

// Wants lists what Apply needs to go on.
type Wants struct {
	Jobs  []uint64 // payloads that are on disk alone
	Times []Times  // of schedules, which may be in a time zone that is on disk
}

// Times says when a schedule is due.
type Times struct{ Cron, Zone string }

// Parse reads a time zone from disk if need be.
func (t Times) Parse() (crontab.Schedule, error) {
	return parseTimes(&core.Schedule{Cron: t.Cron, Zone: t.Zone})
}

// fetching is what the operation of a client waits for, and what it got.
type fetching struct {
	wants    Wants
	supplied map[uint64]supplied
	times    map[Times]parsed
}

// parsed is what came of the times of a schedule.
type parsed struct {
	times crontab.Schedule
	err   error
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
	c.startFetching()
	if s := c.fetching.supplied[e.seq]; s.job != nil && s.epoch == e.epoch {
		return s.job, false
	}
	c.fetching.supplied[e.seq] = supplied{epoch: e.epoch}
	c.fetching.wants.Jobs = append(c.fetching.wants.Jobs, e.seq)
	return nil, true
}

// timesOf is when a schedule is due; old is the one that it replaces. Wanted: the client's operation cannot be decided yet.
func (m *Machine) timesOf(c *client, s *core.Schedule, old *schedule) (times crontab.Schedule, wanted bool, err error) {
	switch {
	case old != nil && sameTimes(&old.Schedule, s):
		return old.times, false, nil
	case s.Every != 0:
		times, err = parseTimes(s)
		return times, false, err
	}
	c.startFetching()
	key := Times{s.Cron, s.Zone}
	if p, have := c.fetching.times[key]; have {
		if p.err != nil {
			return nil, false, fmt.Errorf("%w: %w", core.ErrInvalid, p.err)
		}
		return p.times, false, nil
	}
	c.fetching.wants.Times = append(c.fetching.wants.Times, key)
	return nil, true, nil
}

// SupplyTimes gives the times of a schedule that Apply wants.
func (m *Machine) SupplyTimes(id core.ClientID, of Times, times crontab.Schedule, err error) {
	if c := m.client(id); c != nil && c.fetching != nil {
		c.fetching.times[of] = parsed{times, err}
	}
}

func (c *client) startFetching() {
	if c.fetching == nil {
		c.fetching = &fetching{supplied: map[uint64]supplied{}, times: map[Times]parsed{}}
	}
}

// mustFetch reports whether the operation just looked at could not be decided.
func (c *client) mustFetch() bool {
	return c.fetching != nil && len(c.fetching.wants.Jobs)+len(c.fetching.wants.Times) > 0
}
