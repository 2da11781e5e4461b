package machine

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"

	"broker/core"
	"broker/core/internal/queue"
	"broker/core/internal/record"
	"broker/core/internal/telemetry"
	"broker/core/internal/timer"
)

// Options are the machine's tunables.
type Options struct {
	Persist           bool          // changes are recorded; otherwise memory only
	Await             bool          // replies wait for the commit of their change
	AwaitLeases       bool          // with Await: leases are stored whoever holds them, and handed out once they are committed
	DefaultLease      time.Duration // for a job without LeaseFor that no connection holds
	CacheBytes        int           // payloads kept in memory besides those that are not on disk yet
	MaxUnstored       int           // bytes admitted and not on disk yet; zero: usualUnstored
	PoisonAfter       int           // leases in a row that may end without a reply, at most 255; zero: no limit
	Wakeup            int           // sleeping Gearman workers to wake for a job: -1 one per job, 0 all, otherwise at most this many
	SortStep          int           // cost of a step of laneSort; zero: usualSortStep
	MaxDetailed       int           // queues and types with measurements of their own; zero: core.MaxDetailed
	Random            *rand.Rand
	StartedAt         core.Instant
	ShareHashSeedWith *Machine // not nil: Compare can compare the two
}

// Machine is the index of everything. Not safe for concurrent use.
type Machine struct {
	opts Options
	now  core.Instant
	hash hasher

	jobs          slab
	bySeq         seqIndex
	byID          map[digest]uint32
	byUnique      map[digest]uint32
	optionals     map[uint32]*optional
	firstFails    map[uint32]core.Instant // when jobs failed first; see firstFail
	traces        map[uint32]string       // Job.Trace of the jobs that have one
	transients    map[uint32]*transient
	tallies       map[uint32]core.Tally // of the jobs with Tallies, from the first event on
	stops         map[uint64]uint32     // when workers were asked to stop jobs, by number; see stop.go
	logs          map[uint64]*jobLog    // ends of logs, by number of the job; see joblog.go
	leftLogs      []uint64              // jobs of logs that are not leased any more
	forgottenLogs uint64
	nextSeq       uint64
	byState       stateLists
	groups        groupIndex
	tags          tagIndex
	effort        effort
	reserved      uint64 // no Seq from here on may be assigned before a record of it is sealed
	before        queue.Before
	// lastPlace is the latest position (entry.place) of a job that became ready or has SeqOrder. A job that becomes ready gets firstPlace or a
	// later one, so that it does not overtake jobs from before the clock was set back.
	lastPlace, firstPlace core.Instant

	queues               []*jobQueue // by number, from 1
	names                map[string]uint32
	lookedIdle           uint32 // number of the last queue that lookForIdle has looked at
	freeQ                []uint32
	inOrder              queueNames
	byName, byFoldedName queue.Before
	class                [3]int // ready jobs of all queues by classOf
	kept                 int    // queues whose lifetime is overRestarts
	waiters              queue.Waiters
	visitMark            uint64 // number of the current list of names, to recognise a queue that is named twice
	watchers             watcherSlab
	clients              []*client // by slot, from 1
	freeC                []uint32
	opened               uint64
	workers              nameTable  // of workers that hold leases
	leases               [][]uint32 // held jobs, by number of the worker
	types                nameTable  // of jobs, if different from the queue's name
	timers               timer.Heap
	batches              map[uint64]*batch
	// firstBatch and lastBatch are the ends of the list of batches, the oldest first.
	firstBatch, lastBatch *batch
	// batchSlots and freeBatches number the batches for their deadlines.
	batchSlots  []*batch
	freeBatches []uint32
	meta        map[string][]byte
	schedules   schedules
	windows     windows
	policies    policies
	shared      sharedLimits
	sort        laneSort
	orders      orders
	buckets     []*bucket // of all queues, by number
	freeBuckets []uint32
	dirtyRates  []uint32                // buckets with rateDirty
	rates       map[string]core.Instant // restored rates that no bucket has taken yet, by the names of their meta entries

	stats      core.Stats
	history    telemetry.History
	statsDirty bool

	open    core.Commit // number of the open batch
	durable core.Commit // number of the newest batch that is durable
	// The commits of the last removal of a job and of a batch, and of the last change of a meta entry.
	lastRemoval, lastBatchRemoval, lastMeta core.Commit

	changed         []uint32 // handles with the dirty flag; a handle may have been reused since
	removed         []record.Change
	metaLog         []core.MetaEntry
	documents       []core.MetaEntry // of the open batch
	documentAt      map[string]int   // positions, by name
	dirtyBatches    []uint64         // batches with the dirty flag
	cached          int              // bytes of payloads in memory
	collected       int              // bytes of chunks kept for results
	peaks           mapPeaks
	openBytes       int      // bytes admitted to the open batch
	inflightBytes   int      // bytes admitted to the batch in flight
	breaking        []breach // see decideBroken
	offers          []uint32 // queues with the offered flag
	touched         []uint32
	meters          *telemetry.Meters
	finished        telemetry.Finished
	retention       core.Retention            // of queues that are not in retentions
	retentions      map[string]core.Retention // by queue
	subscriptions   []*subscription
	subscribedKinds uint32       // kinds of events with subscriptions
	events          uint64       // events with subscriptions so far
	actor           *client      // client of the current operation; nil: a deadline
	left            lastHolder   // holder of the lease that ended last
	waited          core.Instant // since when the job leased last had waited; zero: it had not
	disconnected    []uint32     // slots of clients to disconnect
	waitsOpen       []uint32     // slots of clients with replies that depend on the open batch
	waitsInflight   []uint32     // slots of clients with replies that depend on the batch in flight
	refuse          error        // why no stored jobs are admitted
	draining        bool         // no job is handed out
	shut            bool         // no job is admitted
	stopped         error        // why nothing may change
	run             *atomicRun   // the current atomic list, usually nil
	restoring       restoring
}

// New makes an empty machine.
func New(o Options) *Machine {
	o.MaxUnstored = cmp.Or(o.MaxUnstored, usualUnstored)
	m := &Machine{
		opts: o, hash: newHasher(),
		bySeq: seqIndex{pages: map[uint64]*seqPage{}},
		byID:  map[digest]uint32{}, byUnique: map[digest]uint32{},
		optionals: map[uint32]*optional{}, transients: map[uint32]*transient{}, firstFails: map[uint32]core.Instant{}, tallies: map[uint32]core.Tally{}, stops: map[uint64]uint32{}, logs: map[uint64]*jobLog{}, traces: map[uint32]string{},
		nextSeq: 1, open: 1,
		queues: make([]*jobQueue, 1), names: map[string]uint32{},
		clients: make([]*client, 1), batches: map[uint64]*batch{}, meta: map[string][]byte{}, rates: map[string]core.Instant{}, retentions: map[string]core.Retention{}, documentAt: map[string]int{},
		schedules: schedules{byName: map[string]*schedule{}}, windows: newWindows(), policies: policies{{}, {}}, shared: sharedLimits{byName: map[string]*sharedLimit{}, sorting: map[uint32]bool{}},
	}
	if o.ShareHashSeedWith != nil {
		m.hash = o.ShareHashSeedWith.hash
	}
	m.restoring = newRestoring()
	m.tags = newTagIndex()
	m.before, m.effort = m.standsBefore, usualEffort
	m.byName, m.byFoldedName = m.nameBefore, m.foldedNameBefore
	m.workers, m.types, m.groups.names = newNameTable(), newNameTable(), newNameTable()
	m.groups.counts = map[failureKey]int{}
	m.stats.StartedAt = o.StartedAt
	m.now = o.StartedAt
	m.meters = telemetry.NewMeters(watched{m}, m.now, o.MaxDetailed)
	return m
}

// standsBefore is the order of a queue: priority, then position, then number.
func (m *Machine) standsBefore(a, b uint32) bool {
	x, y := m.jobs.at(a), m.jobs.at(b)
	if p, q := x.priority(), y.priority(); p != q {
		return p > q
	}
	if s, t := x.has(scheduledOrder), y.has(scheduledOrder); s != t {
		return t // plain jobs before scheduled ones
	}
	if s, t := x.place(), y.place(); s != t {
		return s < t
	}
	return x.seq < y.seq
}

// Apply processes operations of one client, in order, at the instant now, which must not go back. It returns how many it has
// processed: all, unless the next one needs something that is not in memory. See Wants.
func (m *Machine) Apply(now core.Instant, id core.ClientID, ops []core.Op) int {
	m.setNow(now)
	c := m.client(id)
	if c == nil {
		return len(ops)
	}
	m.actor = c
	for i, op := range ops {
		if m.stopped != nil && !op.ReadOnly() {
			m.failed(c, op.TagOf(), m.stopped)
			continue
		}
		if m.openBytes > m.maxOpen() && !op.ReadOnly() {
			m.failed(c, op.TagOf(), core.ErrDiskFull)
			continue
		}
		m.apply(c, op)
		if c.fetching != nil {
			if c.mustFetch() {
				return i
			}
			c.fetching = nil
		}
		if len(m.offers)+len(m.breaking) > 0 {
			m.serveOffers()
		}
	}
	return len(ops)
}

// Now is the time of the machine: the latest that it was given, or that of the clock since that was set.
func (m *Machine) Now() core.Instant { return m.now }

func (m *Machine) setNow(now core.Instant) {
	if now > m.now {
		m.now = now
	}
	if m.meters.Due(m.now) {
		m.meters.EndStep(m.now)
	}
}

// reply appends r to the replies of the client.
func (m *Machine) reply(c *client, r core.Reply) { *m.newReply(c, r.Kind, r.Tag, r.Commit) = r }

// newReply appends a reply to those of the client. The caller fills in the rest at once: hot operations copy no whole Reply.
func (m *Machine) newReply(c *client, kind core.ReplyKind, tag uint64, commit core.Commit) *core.Reply {
	to := &c.replies
	if m.run != nil && m.run.takes(c, kind) {
		to = &m.run.replies
	} else {
		if !c.touched {
			c.touched = true
			m.touched = append(m.touched, c.slot)
		}
		m.restOn(c, commit)
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

// restOn records that a reply of a client depends on a commit, so that the client is woken then.
func (m *Machine) restOn(c *client, commit core.Commit) {
	switch commit {
	case 0:
	case m.open:
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

// RestOn is restOn for a reply that was completed outside the machine; it does nothing if the commit is durable.
func (m *Machine) RestOn(id core.ClientID, commit core.Commit) {
	if c := m.client(id); c != nil {
		m.restOn(c, m.pending(commit))
	}
}

// touch records that a job's record has changed.
func (m *Machine) touch(h uint32, e *entry) {
	if e.has(dirty) || e.unstored() || !m.opts.Persist {
		return
	}
	e.set(dirty)
	m.openBytes += changeBytes
	if e.has(hasOptional) {
		m.openBytes += 2 * 10 * len(m.optionals[h].waiting) // Waiting and Unstored
	}
	m.changed = append(m.changed, h)
}

// move is the only writer of entry.state; it keeps the counters of queue and server.
func (m *Machine) move(e *entry, to core.State) {
	if !e.state.CanMove(to) {
		panic("machine: illegal move " + e.state.String() + " to " + to.String())
	}
	q := m.queues[e.queue]
	if e.state == core.Leased && len(m.logs) > 0 {
		m.leaveLog(e)
	}
	if e.has(listed) {
		panic("machine: a job leaves its state and stays in the list of it")
	}
	m.meters.Mark(&q.watch)
	if e.state != core.Gone {
		q.count[e.state]--
		m.stats.Jobs[e.state]--
	}
	if e.state == core.Leased && e.has(rerun|stopping) {
		e.clear(rerun)
		m.forgetStop(e)
	}
	if e.state == core.Ready {
		q.class[classOf(e.priority())]--
		m.class[classOf(e.priority())]--
	}
	if to == core.Ready {
		q.class[classOf(e.priority())]++
		m.class[classOf(e.priority())]++
	}
	if to != core.Gone {
		q.count[to]++
		m.stats.Jobs[to]++
	}
	e.state = to
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
	m.fetched(c)
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

// Refuse sets or clears the reason why no jobs are admitted.
func (m *Machine) Refuse(why error) {
	m.refuse = why
	m.stats.DiskFull = why != nil
}

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

// NextDeadline is when to call Tick next; zero: not before a change.
func (m *Machine) NextDeadline() core.Instant { return m.timers.Next() }

// Open is the number of the open batch.
func (m *Machine) Open() core.Commit { return m.open }

// Changed reports whether there is something to seal. Counters alone do not count: they are stored with the next change.
func (m *Machine) Changed() bool {
	return len(m.changed) > 0 || len(m.removed) > 0 || len(m.metaLog) > 0 || len(m.documents) > 0 || len(m.dirtyBatches) > 0 ||
		len(m.schedules.moved) > 0 || len(m.dirtyRates) > 0
}

// Pending is the approximate number of changes in the open batch.
func (m *Machine) Pending() int { return len(m.changed) + len(m.removed) + len(m.documents) }

// Awaited reports whether a client waits for the open batch.
func (m *Machine) Awaited() bool { return len(m.waitsOpen) > 0 }

// writeEntries is WriteMeta. The check of a list must not write, since a later operation may be refused.
func (m *Machine) writeEntries(c *client, op *core.WriteMeta) {
	if m.run != nil && !m.run.applying {
		return
	}
	m.writeMeta(op.Entries)
	m.reply(c, core.Reply{Kind: core.Accepted, Tag: op.Tag, Commit: m.promise()})
}

func (m *Machine) writeMeta(marks []core.MetaEntry) {
	for _, k := range marks {
		if k.Value == nil {
			delete(m.meta, k.Name)
		} else {
			m.meta[k.Name] = slices.Clone(k.Value)
		}
		m.logMeta(k)
	}
}

// logMeta adds an entry to the open batch.
func (m *Machine) logMeta(k core.MetaEntry) {
	if m.opts.Persist {
		m.lastMeta = m.open
		m.metaLog = append(m.metaLog, k)
		m.openBytes += record.MetaSize(&k)
	}
}
