package machine

import (
	"fmt"

	"broker/core"
	"broker/core/crontab"
	"broker/core/internal/joblog"
	"broker/core/internal/schedule"
)

// Some operations need data that is not in memory. Apply stops before such an operation. The caller reads the data outside the
// lock, supplies it, and applies the remaining operations. The operation is then processed from its start.

// Wants lists the data that Apply needs to continue.
type Wants struct {
	Jobs  []uint64 // payloads that are only on disk
	Times []Times  // of schedules; their time zone may be on disk
	Logs  []uint64 // jobs whose logs are only on disk
}

// Times says when a schedule is due.
type Times struct{ Cron, Zone string }

// Parse parses the times; it may read a time zone from disk.
func (t Times) Parse() (crontab.Schedule, error) {
	return schedule.ParseTimes(&core.Schedule{Cron: t.Cron, Zone: t.Zone})
}

// fetching is the data that a client's operation waits for, and the data that was supplied.
type fetching struct {
	wants    Wants
	supplied map[uint64]supplied
	times    map[Times]parsed
	logs     map[uint64]joblog.Supplied
}

// parsed is the result of parsing the times of a schedule.
type parsed struct {
	times crontab.Schedule
	err   error
}

// supplied is a payload from the store at an epoch. Payloads do not change without a new epoch.
type supplied struct {
	job     *core.Job
	epoch   uint32
	damaged bool // the store cannot read it
}

// Wanted returns the data that the last Apply of a client needs.
func (m *Machine) Wanted(id core.ClientID) Wants {
	c := m.client(id)
	if c == nil || c.fetching == nil {
		return Wants{}
	}
	w := c.fetching.wants
	c.fetching.wants = Wants{}
	return w
}

// SupplyJob supplies a payload; nil: the store has none. It returns false if the job still exists, so its payload should
// not be missing.
func (m *Machine) SupplyJob(id core.ClientID, seq uint64, j *core.Job) bool {
	if c := m.client(id); c != nil && c.fetching != nil {
		s := c.fetching.supplied[seq]
		s.job = j
		c.fetching.supplied[seq] = s
	}
	return j != nil || m.table.Handle(seq) == 0
}

// SupplyDamaged records that the store cannot read a payload.
func (m *Machine) SupplyDamaged(id core.ClientID, seq uint64) {
	if c := m.client(id); c != nil && c.fetching != nil {
		s := c.fetching.supplied[seq]
		s.damaged = true
		c.fetching.supplied[seq] = s
	}
}

// wholeJob returns the payload of a job to change, unless the change is refused. wanted: the operation has to wait for
// data.
func (m *Machine) wholeJob(c *client, h uint32, against error) (j *core.Job, wanted bool, err error) {
	if against != nil {
		return nil, false, against
	}
	if j := m.table.Payload(h); j != nil {
		return j, false, nil
	}
	e := m.table.At(h)
	c.startFetching()
	switch s := c.fetching.supplied[e.Seq]; {
	case s.damaged:
		return nil, false, core.ErrDamaged
	case s.job != nil && s.epoch == e.Epoch:
		s.job.InQueue(m.queues[e.Queue].Name)
		return s.job, false, nil
	}
	c.fetching.supplied[e.Seq] = supplied{epoch: e.Epoch}
	c.fetching.wants.Jobs = append(c.fetching.wants.Jobs, e.Seq)
	return nil, true, nil
}

// timesOf returns the times of a schedule. wanted: the operation has to wait for data.
func (m *Machine) timesOf(c *client, s *core.Schedule) (times crontab.Schedule, wanted bool, err error) {
	if times = m.schedules.TimesOf(s); times != nil {
		return times, false, nil
	}
	if s.Every != 0 {
		times, err = schedule.ParseTimes(s)
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

// SupplyTimes supplies the times of a schedule.
func (m *Machine) SupplyTimes(id core.ClientID, of Times, times crontab.Schedule, err error) {
	if c := m.client(id); c != nil && c.fetching != nil {
		c.fetching.times[of] = parsed{times, err}
	}
}

func (c *client) startFetching() {
	if c.fetching == nil {
		c.fetching = &fetching{supplied: map[uint64]supplied{}, times: map[Times]parsed{}, logs: map[uint64]joblog.Supplied{}}
	}
}

// mustFetch reports whether the operation has to wait for data.
func (c *client) mustFetch() bool {
	return c.fetching != nil && len(c.fetching.wants.Jobs)+len(c.fetching.wants.Times)+len(c.fetching.wants.Logs) > 0
}
