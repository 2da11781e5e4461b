package machine

import (
	"fmt"
	"slices"

	"broker/core"
	"broker/core/crontab"
	"broker/core/internal/joblog"
	"broker/core/internal/schedule"
	"broker/core/internal/table"
)

// Some operations need data that is not in memory. Apply stops before such an operation. The caller reads the data
// outside the lock, supplies it, and applies the remaining operations. The operation is then processed from its start.

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

// SupplyJob supplies a payload; nil: the store has none. It returns false if the job still exists, so its payload
// should not be missing.
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
		c.fetching = &fetching{
			supplied: map[uint64]supplied{}, times: map[Times]parsed{}, logs: map[uint64]joblog.Supplied{},
		}
	}
}

// mustFetch reports whether the operation has to wait for data.
func (c *client) mustFetch() bool {
	return c.fetching != nil && len(c.fetching.wants.Jobs)+len(c.fetching.wants.Times)+len(c.fetching.wants.Logs) > 0
}

// read is a job that was leased with Late and whose body is being read.
type read struct {
	tag   uint64 // of the lease
	seq   uint64
	epoch uint32
}

// Deliver completes a Reading reply: an Assigned with the whole job, or another reply instead. If the client is gone or
// has cancelled the lease, there is no reply; another client may have the job by then.
func (m *Machine) Deliver(now core.Instant, id core.ClientID, r core.Reply) {
	m.setNow(now)
	c := m.client(id)
	if c == nil {
		return
	}
	n := len(c.reads)
	c.reads = slices.DeleteFunc(c.reads, func(d read) bool {
		return d.tag == r.Tag && d.seq == r.Seq && (r.Kind != core.Assigned || d.epoch == r.Lease.Epoch)
	})
	if len(c.reads) < n {
		m.reply(c, r)
	}
}

// dropReads gives back all jobs that are being read for a client, and returns the tags of their leases.
func (m *Machine) dropReads(c *client) (tags []uint64) {
	for _, d := range c.reads {
		m.revokeLease(d.seq, d.epoch)
		tags = append(tags, d.tag)
	}
	c.reads = nil
	return tags
}

// Work describes the data that a reply still needs from the store. The machine reads nothing: its caller completes the
// reply, outside the lock.
type Work struct {
	Reply     int // index among the client's replies; see Machine.Work
	Needs     Needs
	Queue     string              // LeasedJob, LeasedJobLater: queue of the job, which the store may not know
	Fails     uint32              // FailureOfDead: how many failures the reply may show
	Find      *core.Find          // FoundByRecords
	Documents *core.ReadDocuments // StoredDocuments
}

// Needs says which data a reply needs.
type Needs uint8

// The data that a reply can need from the store.
const (
	LeasedJob       Needs = iota // its payload, its last failure, or both
	LeasedJobLater               // the same; Deliver completes the reply, since the client accepts a delay
	KeptOutcome                  // of a job that ended before
	FailureOfDead                // the failure that made the job dead
	InspectedJob                 // everything
	InspectedBrief               // its timeline only
	ListedJobs                   // everything
	ListedHeads                  // no bodies, failures and outcomes
	FoundJobs                    // no bodies and outcomes
	FoundByRecords               // the jobs themselves: only their records show whether they match
	StoredDocuments              // the documents
)

// replyWith is reply for a reply that needs data from the store.
func (m *Machine) replyWith(c *client, r core.Reply, w Work) {
	m.reply(c, r)
	m.lastNeeds(c, w)
}

// lastNeeds records what the last reply of a client needs from the store.
func (m *Machine) lastNeeds(c *client, w Work) {
	w.Reply = len(c.replies) - 1
	c.work = append(c.work, w)
}

// Work returns the data needed by the replies that the next Take returns.
func (m *Machine) Work(id core.ClientID) []Work {
	if c := m.client(id); c != nil {
		return c.work
	}
	return nil
}

// Workers that empty a long queue would wait for one read of the store after another. The engine therefore reads the
// payloads of the next jobs together, before a worker asks for them, and the cache keeps them: Ahead says which,
// Refill takes them.

// AheadJobs is how many jobs are read ahead at once.
const AheadJobs = 64

// aheadBytes limits their size together.
const aheadBytes = 256 << 10

// Ahead is a job whose payload only the store has.
type Ahead struct {
	Seq   uint64
	epoch uint32
	Job   *core.Job // its payload, for Refill; nil: it could not be read
}

// Ahead returns those of the AheadJobs numbers from from on that are ready jobs whose payloads only the store has, as
// far as the cache has room.
func (m *Machine) Ahead(from uint64) (jobs []Ahead) {
	room := min(m.table.CacheRoom(), aheadBytes)
	for seq := from; seq < from+AheadJobs; seq++ {
		h := m.table.Handle(seq)
		if h == 0 {
			continue
		}
		e := m.table.At(h)
		if !m.mayRefill(h, e) {
			continue
		}
		if room -= table.LeastPayload + int(e.BodyBytes); room < 0 {
			return jobs
		}
		jobs = append(jobs, Ahead{Seq: seq, epoch: e.Epoch})
	}
	return jobs
}

// Refill keeps payloads in the cache, except those of jobs that have been changed or taken since Ahead.
func (m *Machine) Refill(jobs []Ahead) {
	for k := range jobs {
		j := &jobs[k]
		h := m.table.Handle(j.Seq)
		if h == 0 || j.Job == nil {
			continue
		}
		if e := m.table.At(h); e.Epoch == j.epoch && m.mayRefill(h, e) && m.table.CacheRoom() > 0 {
			j.Job.InQueue(m.queues[e.Queue].Name)
			m.table.SetPayload(h, j.Job)
		}
	}
}

func (m *Machine) mayRefill(h uint32, e *table.Entry) bool {
	return e.State == core.Ready && e.Has(table.PayloadStored) && !e.Unstored() && m.table.Payload(h) == nil
}
