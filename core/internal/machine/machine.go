package machine

import (
	"math/rand/v2"
	"time"

	"broker/core"
	"broker/core/internal/batch"
	"broker/core/internal/event"
	"broker/core/internal/find"
	"broker/core/internal/joblog"
	"broker/core/internal/limit"
	"broker/core/internal/link"
	"broker/core/internal/plan"
	"broker/core/internal/policy"
	"broker/core/internal/queue"
	"broker/core/internal/schedule"
	"broker/core/internal/table"
	"broker/core/internal/telemetry"
	"broker/core/internal/timer"
	"broker/core/internal/watch"
)

// Options are the machine's tunables.
type Options struct {
	Persist      bool          // changes are recorded; otherwise memory only
	Await        bool          // replies wait for the commit of their change
	AwaitLeases  bool          // with Await: all leases are stored, and handed out once they are committed
	DefaultLease time.Duration // for a job without LeaseFor that no connection holds
	CacheBytes   int           // payloads kept in memory, in addition to payloads that are not on disk yet
	MaxUnstored  int           // bytes admitted and not on disk yet; zero: usualUnstored
	PoisonAfter  int           // leases in a row that may end without a reply, at most 255; zero: no limit
	// sleeping Gearman workers to wake for a job: -1 one per job, 0 all, otherwise at most this many
	Wakeup      int
	SortStep    int // cost of a step of laneSort; zero: usualSortStep
	LinkStep    int // jobs and links that the end of a job touches at once; zero: the usual number
	MaxDetailed int // queues and types with measurements of their own; zero: core.MaxDetailed
	Random      *rand.Rand
	StartedAt   core.Instant
	Format      func() int // of the entries from now on; nil: the newest format
	Resumes     bool       // connections may resume leases of the previous process until Settle, which must be called
	Term        uint64     // of this leader of a cluster; zero: there is no cluster
}

// Machine holds the index of all jobs and makes all decisions. Not safe for concurrent use.
type Machine struct {
	table  *table.Table
	limits *limit.Rules
	opts   Options

	effort find.Effort
	climbs find.Climbs

	queues     []*jobQueue // by number, from 1
	lookedIdle uint32      // number of the last queue that lookForIdle has checked
	kept       int         // queues whose lifetime is overRestarts
	waiters    queue.Waiters
	visitMark  uint64 // number of the current list of names; detects a queue that is named twice
	watchers   *watch.Watchers
	consumers  consumers
	clients    []*client // by slot, from 1
	freeC      []uint32
	opened     uint64
	schedules  *schedule.Schedules
	hub        event.Hub
	links      *link.Links
	logs       *joblog.Logs
	batches    *batch.Batches
	policies   *policy.Policies

	stats      core.Stats
	history    telemetry.History
	statsDirty bool

	offers        []uint32 // queues with the offered flag
	informed      []informed
	touched       []uint32 // slots of clients with replies that were not taken
	meters        *telemetry.Meters
	finished      telemetry.Finished
	retention     core.Retention            // of queues that are not in retentions
	retentions    map[string]core.Retention // by queue
	actor         *client                   // client of the current operation; nil: a deadline
	lastHolder    lastHolder                // holder of the lease that ended last
	waited        core.Instant              // since when the job leased last had waited; zero: it did not wait
	disconnected  []uint32                  // slots of clients to disconnect
	waitsOpen     []uint32                  // slots of clients with replies that depend on the open batch
	waitsInflight []uint32                  // slots of clients with replies that depend on the batch in flight
	refuse        error                     // why no stored jobs are admitted
	draining      bool                      // no job is handed out
	resumed       uint32                    // after a drain: the next queue to serve; zero: all are served
	refusing      bool                      // no job is admitted
	stopped       error                     // why nothing may change
	list          *plan.List                // the current atomic list, usually nil
	restoring     restoring
	steps         steps
	overrun       error // the first operation that did more than it may; see effort.go
	looked        int   // names at which the current operation has looked; see effort.go
}

// client is the machine's state of one connection.
type client struct {
	id       core.ClientID
	slot     uint32
	protocol core.Protocol
	address  string
	identity string
	name     string
	worker   string // id of its last lease
	openedAt core.Instant
	works    bool // the client has requested jobs
	closable bool // the client has a connection that can be closed
	unlisted bool // the client is left out of lists and counts
	left     bool // the client is closed, and what it had is being given back; see part
	replies  []core.Reply
	work     []Work // data that replies need from the store
	touched  bool   // the client is in the list of clients with replies
	// The newest open batch, and the newest batch in flight, on which replies of the client depend.
	waitsOpen, waitsInflight core.Commit

	parked      bool // a lease is waiting
	byAbility   bool // the lease is for the queues of its registrations, including future ones
	lease       core.Lease
	sleeping    bool // waiting to be woken
	sleepTag    uint64
	waitEntries uint32 // its entries in wait lists
	wait        timer.ID
	wakeTarget  uint32 // queue of the job that it was woken for, until it responds
	abilities   []ability
	turn        int // position of the round-robin

	held     []uint32 // jobs leased to this connection
	releases []uint32 // queues whose jobs it is giving back (releaseNext); zero: all queues
	looked   int      // how many of its jobs have not been looked at yet
	reads    []read   // leased jobs whose bodies are being read
	fetching *fetching
	watches  uint32 // head of its watchers

	holding []uint32 // queues; see core.HoldQueue

	subscriptions int

	own   *consumer // worker for which it leases jobs as a connection; nil: none
	named *consumer // worker with the name in its last lease; nil: none
}

// ability is the registration of a connection for a queue.
type ability struct {
	queue    uint32
	times    int // registrations
	leaseFor time.Duration
}

// New returns an empty machine.
func New(o Options) *Machine {
	m := &Machine{
		opts: o.withDefaults(), queues: make([]*jobQueue, 1), clients: make([]*client, 1),
		retentions: map[string]core.Retention{}, consumers: newConsumers(),
	}
	m.table = table.New(o.table())
	m.logs = joblog.New(m.table)
	m.watchers = watch.New(m.table)
	m.links = link.New(m.table, linksHost{m}, o.LinkStep)
	m.batches = batch.New(m.table, batchesHost{m})
	m.policies = policy.New(m.table, m.policyChanged)
	m.schedules = schedule.New(m.table, schedulesHost{m})
	m.limits = limit.New(m.table, limitsHost{m}, o.SortStep)
	m.restoring = newRestoring()
	m.effort = find.UsualEffort
	m.stats.StartedAt = o.StartedAt
	m.table.Now = o.StartedAt
	m.meters = telemetry.NewMeters(metersHost{m}, m.table.Now, o.MaxDetailed)
	return m
}

// Apply processes operations of one client, in order, at the instant now, which must not go back. It returns the number
// of processed operations. It stops before an operation that needs data that is not in memory, see Wants, and after
// much work, see workOver: the caller goes on with the other operations, after others have had the lock.
func (m *Machine) Apply(now core.Instant, id core.ClientID, ops []core.Op) int {
	m.setNow(now)
	c := m.client(id)
	if c == nil {
		return len(ops)
	}
	m.actor = c
	work := 0
	for i, op := range ops {
		if m.stopped != nil && !op.ReadOnly() {
			m.failed(c, op.TagOf(), m.stopped)
			continue
		}
		if m.table.OpenBytes > m.maxOpen() && !op.ReadOnly() {
			m.failed(c, op.TagOf(), core.ErrDiskFull)
			continue
		}
		if err := m.formatRefusal(op); err != nil {
			m.failed(c, op.TagOf(), err)
			continue
		}
		m.freshEffort()
		m.apply(c, op)
		if c.fetching != nil {
			if c.mustFetch() {
				return i
			}
			c.fetching = nil
		}
		if len(m.offers) > 0 || m.links.HasBroken() {
			m.serveOffers()
		}
		if len(m.informed) > 0 {
			m.inform()
		}
		if m.table.Touched > freeEffort {
			m.judge(op)
		}
		if work += m.work(); work > freeEffort && i+1 < len(ops) && m.workOver(work, ops) {
			return i + 1
		}
	}
	return len(ops)
}

// maxClients is the maximum number of open clients: slots have 24 bits in a ClientID.
const maxClients = 1 << 24

// Slot is the slot number in a ClientID.
func Slot(id core.ClientID) uint32 { return uint32(id) & (maxClients - 1) }

func (m *Machine) client(id core.ClientID) *client {
	slot := Slot(id)
	if int(slot) >= len(m.clients) || m.clients[slot] == nil || m.clients[slot].id != id || m.clients[slot].left {
		return nil
	}
	return m.clients[slot]
}

// Now returns the time of the machine: the latest instant it was given, adjusted when the clock is set.
func (m *Machine) Now() core.Instant { return m.table.Now }

func (m *Machine) setNow(now core.Instant) {
	if now > m.table.Now {
		m.table.Now = now
	}
	if m.meters.Due(m.table.Now) {
		m.meters.EndStep(m.table.Now)
	}
}

// reply appends r to the replies of the client.
func (m *Machine) reply(c *client, r core.Reply) { *m.newReply(c, r.Kind, r.Tag, r.Commit) = r }

// newReply appends a reply to those of the client. The caller fills in the rest at once, so frequent operations do not
// copy a whole Reply.
func (m *Machine) newReply(c *client, kind core.ReplyKind, tag uint64, commit core.Commit) *core.Reply {
	to := &c.replies
	if m.list.Takes(c.slot, kind) {
		to = &m.list.Replies
	} else {
		if !c.touched {
			c.touched = true
			m.touched = append(m.touched, c.slot)
		}
		m.dependOn(c, commit)
	}
	n := len(*to)
	if n < cap(*to) { // zero: see Take
		*to = (*to)[:n+1]
	} else {
		*to = append(*to, core.Reply{})
	}
	r := &(*to)[n]
	r.Kind, r.Tag, r.Commit = kind, tag, commit
	return r
}

// dependOn records that a reply of a client depends on a commit, so that the commit wakes the client.
func (m *Machine) dependOn(c *client, commit core.Commit) {
	switch commit {
	case 0:
	case m.table.Open:
		if c.waitsOpen != commit {
			c.waitsOpen = commit
			m.waitsOpen = append(m.waitsOpen, c.slot)
		}
	default:
		if c.waitsInflight != commit {
			c.waitsInflight = commit
			m.waitsInflight = append(m.waitsInflight, c.slot)
		}
	}
}

// DependOn is dependOn for a reply that was completed outside the machine; it does nothing if the commit is durable.
func (m *Machine) DependOn(id core.ClientID, commit core.Commit) {
	if c := m.client(id); c != nil {
		m.dependOn(c, m.table.Pending(commit))
	}
}

// move changes the state of a job.
func (m *Machine) move(e *table.Entry, to core.State) {
	if !e.State.CanMove(to) {
		panic("machine: illegal move " + e.State.String() + " to " + to.String())
	}
	m.meters.Mark(&m.queues[e.Queue].metered)
	if e.State == core.Leased && e.Has(table.Rerun|table.Stopping) {
		e.Clear(table.Rerun)
		m.table.ForgetStop(e)
	}
	if e.State == core.Leased {
		m.logs.Leave(e)
	}
	m.table.SetState(e, to)
}

// Take moves the replies of a client to into.
func (m *Machine) Take(id core.ClientID, into []core.Reply) []core.Reply {
	c := m.client(id)
	if c == nil {
		return into
	}
	into = append(into, c.replies...)
	clear(c.replies)
	if cap(c.replies) > 1024 {
		c.replies = nil
	} else {
		c.replies = c.replies[:0]
	}
	c.touched, c.work = false, nil
	if c.subscriptions > 0 {
		m.hub.Fetched(c.slot)
	}
	return into
}

// Touched calls fn for every client that received replies since the last call.
func (m *Machine) Touched(fn func(slot uint32)) {
	for _, slot := range m.touched {
		if c := m.clients[slot]; c != nil && c.touched {
			fn(slot)
		}
	}
	m.touched = m.touched[:0]
}

// Refuse sets or clears the reason why no stored jobs are admitted.
func (m *Machine) Refuse(why error) {
	m.refuse = why
	m.stats.DiskFull = why != nil
}

// DiskSlow says whether a commit takes long.
func (m *Machine) DiskSlow(slow bool) { m.stats.DiskSlow = slow }

// Stop prevents all further changes; the first reason stays. Clients that wait for jobs are notified.
func (m *Machine) Stop(why error) {
	if m.stopped != nil {
		return
	}
	m.stopped = why
	m.stats.Stopped = true
	for _, c := range m.clients {
		if c != nil && c.parked {
			tag := c.lease.Tag
			m.leaveWaitLists(c)
			m.failed(c, tag, why)
		}
	}
}

// NextDeadline returns when to call Tick next; zero: not before the next change.
func (m *Machine) NextDeadline() core.Instant { return m.table.Timers.Next() }

// Open is the number of the open batch.
func (m *Machine) Open() core.Commit { return m.table.Open }

// Changed reports whether the open batch has changes to seal. Changed counters alone do not count: they are stored with
// the next change.
func (m *Machine) Changed() bool {
	return m.table.HasChanges() || m.batches.HasChanges() || m.schedules.HasChanges() || m.limits.HasRates()
}

// lastCommit is the commit on which everything depends that is not durable yet; zero: there is nothing.
func (m *Machine) lastCommit() core.Commit {
	if m.Changed() || m.Awaited() {
		return m.table.Promise()
	}
	return m.table.Pending(m.table.Open - 1)
}

// Changes is the approximate number of changes in the open batch.
func (m *Machine) Changes() int { return m.table.Changes() }

// Awaited reports whether a client waits for the open batch.
func (m *Machine) Awaited() bool { return len(m.waitsOpen) > 0 }

// writeEntries is WriteMeta. While a list is being checked, it must not write, because a later operation may be
// refused.
func (m *Machine) writeEntries(c *client, op *core.WriteMeta) {
	if m.list.IsChecked() {
		return
	}
	m.table.WriteMeta(op.Entries)
	m.reply(c, core.Reply{Kind: core.Accepted, Tag: op.Tag, Commit: m.table.Promise()})
}

func (o *Options) table() table.Options {
	return table.Options{Persist: o.Persist, Await: o.Await, CacheBytes: o.CacheBytes}
}
