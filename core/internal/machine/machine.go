package machine

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"broker/core"
	"broker/core/internal/queue"
	"broker/core/internal/record"
	"broker/core/internal/timer"
)

// Options are the machine's tunables.
type Options struct {
	Persist      bool          // changes are recorded; else memory only
	Await        bool          // replies wait for the commit of what they promise
	AwaitLeases  bool          // with Await: leases are stored whoever holds them, and handed out once they are committed
	DefaultLease time.Duration // for a job without LeaseFor in the hands of a worker that no connection guards
	CacheBytes   int           // payloads kept in memory beside those that are not on disk yet
	PoisonAfter  int           // leases in a row that may end without a word, at most 255; zero: no limit
	Wakeup       int           // Gearman sleepers woken for a job: -1 as many as there are jobs, 0 all, else at most so many
	Random       *rand.Rand
	StartedAt    core.Instant
}

// Machine is the index of everything. Not safe for concurrent use.
type Machine struct {
	opts Options
	now  core.Instant
	hash hasher

	jobs       slab
	bySeq      seqIndex
	byID       map[digest]uint32
	byUnique   map[digest]uint32
	optionals  map[uint32]*optional
	transients map[uint32]*transient
	nextSeq    uint64
	byState    stateLists
	groups     groupIndex
	tags       tagIndex
	effort     effort
	reserved   uint64 // no Seq from here on may be given out before a record of it is sealed
	before     queue.Before
	// lastPlace is the last place (entry.readyAt) of a job that has been ready. A job that becomes ready takes firstPlace or
	// a later one, so that it does not pass those that were there before the clock was set back.
	lastPlace, firstPlace core.Instant

	queues               []*jobQueue // by number, from 1
	names                map[string]uint32
	freeQ                []uint32
	inOrder              queueNames
	byName, byFoldedName queue.Before
	class                [3]int // ready jobs of all queues by classOf
	kept                 int    // queues that are kept
	waiters              queue.Waiters
	visitMark            uint64 // number of the list of names that is being looked at, to know again a queue named twice
	watchers             watcherSlab
	clients              []*client // by slot, from 1
	freeC                []uint32
	opened               uint64
	workers              nameTable  // that hold leases
	leases               [][]uint32 // held jobs, by number of the worker
	types                nameTable  // of jobs, where they differ from the queue's name
	timers               timer.Heap
	batches              map[uint64]*batch
	// firstBatch and lastBatch are the ends of the list of batches, the oldest first.
	firstBatch, lastBatch *batch
	// batchSlots and freeBatches number the batches for their deadlines.
	batchSlots  []*batch
	freeBatches []uint32
	meta        map[string][]byte
	schedules   schedules

	stats      core.Stats
	history    []*day // the oldest first
	today      *day   // the last of history
	dayEnds    core.Instant
	statsDirty bool

	open    core.Commit // number of the batch that is being filled
	durable core.Commit // number of the newest batch that is durable
	// The commits of the last removal of a job and of a batch, and of the last change of a meta entry.
	lastRemoval, lastBatchRemoval, lastMeta core.Commit

	changed       []uint32 // handles with the dirty flag; a handle may have been freed and given out again since
	removed       []record.Change
	metaLog       []core.MetaEntry
	documents     []core.MetaEntry // of the open batch
	documentAt    map[string]int   // their places, by name
	dirtyBatches  []uint64         // batches with the dirty flag
	cached        int              // bytes of payloads in memory
	openBytes     int              // bytes admitted to the open batch, and
	inflightBytes int              // to the one on its way to the disk
	offers        []uint32         // queues with the offered flag
	touched       []uint32
	measures      measures
	subscriptions []*subscription
	heard         uint32       // kinds of events that somebody listens to
	events        uint64       // that somebody listened to
	actor         *client      // whose operation is being decided; nil: time's
	left          lastHolder   // who had the job whose lease has ended last
	disconnected  []uint32     // slots of clients whose connections are to be closed
	waitsOpen     []uint32     // slots of clients with replies that rest on the open batch, and
	waitsInflight []uint32     // of those with replies that rest on the batch in flight
	refuse        error        // why no stored job is admitted
	draining      bool         // nothing is handed out
	shut          bool         // while draining: no job is admitted
	stopped       error        // why nothing is changed
	lastArrival   core.Instant // Restore: the place of the last job that was ready when it came
	run           *atomicRun   // the list of operations that is decided together; mostly nil
	usedUp        []uint32     // Restore: jobs whose last attempt ended with the process before
}

// New makes an empty machine.
func New(o Options) *Machine {
	m := &Machine{
		opts: o, hash: newHasher(),
		bySeq: seqIndex{pages: map[uint64]*seqPage{}},
		byID:  map[digest]uint32{}, byUnique: map[digest]uint32{},
		optionals: map[uint32]*optional{}, transients: map[uint32]*transient{},
		nextSeq: 1, open: 1,
		queues: make([]*jobQueue, 1), names: map[string]uint32{},
		clients: make([]*client, 1), batches: map[uint64]*batch{}, meta: map[string][]byte{}, documentAt: map[string]int{},
		schedules: schedules{byName: map[string]*schedule{}},
	}
	m.tags = newTagIndex()
	m.before, m.effort = m.standsBefore, usualEffort
	m.byName, m.byFoldedName = m.nameBefore, m.foldedNameBefore
	m.workers, m.types, m.groups.names = newNameTable(), newNameTable(), newNameTable()
	m.stats.StartedAt = o.StartedAt
	m.now = o.StartedAt
	m.measures = newMeasures(m.now)
	return m
}

// standsBefore is the order in a queue: priority, then place, then arrival.
func (m *Machine) standsBefore(a, b uint32) bool {
	x, y := m.jobs.at(a), m.jobs.at(b)
	if x.priority != y.priority {
		return x.priority > y.priority
	}
	if s, t := x.has(scheduledOrder), y.has(scheduledOrder); s != t {
		return t // plain jobs before scheduled ones
	}
	if x.readyAt != y.readyAt {
		return x.readyAt < y.readyAt
	}
	return x.seq < y.seq
}

// Apply decides operations of one client, in order, at the instant now, which must not go back. It returns how many it has
// decided: all of them, unless the next one wants something that is not in memory. See Wants.
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
		m.apply(c, op)
		if c.fetching != nil {
			if c.mustFetch() {
				return i
			}
			c.fetching = nil
		}
		m.serveOffers()
	}
	return len(ops)
}

func (m *Machine) setNow(now core.Instant) {
	if now > m.now {
		m.now = now
	}
	if m.now >= m.measures.ends {
		m.endStep(m.now)
	}
}

func (m *Machine) apply(c *client, op core.Op) {
	switch op := op.(type) {
	case *core.Submit:
		m.submit(c, op)
	case *core.Lease:
		m.lease(c, op)
	case *core.Complete:
		m.complete(c, op)
	case *core.Fail:
		m.fail(c, op)
	case *core.Report:
		m.report(c, op)
	case *core.SendData:
		m.sendData(c, op)
	case *core.Await:
		m.await(c, op)
	case *core.Register:
		m.register(c, op)
	case *core.Unregister:
		m.unregister(c, op)
	case *core.Sleep:
		m.sleep(c, op)
	case *core.CancelLease:
		m.cancelLease(c)
	default:
		m.applyChange(c, op)
	}
}

// applyChange serves the operations that change jobs.
func (m *Machine) applyChange(c *client, op core.Op) {
	switch op := op.(type) {
	case *core.Rerun:
		m.rerun(c, op)
	case *core.Release:
		m.releaseOp(c, op)
	case *core.Update:
		m.update(c, op)
	case *core.Move:
		m.moveJob(c, op)
	case *core.AddDependencies:
		m.addDependencies(c, op)
	case *core.RemoveDependencies:
		m.removeDependencies(c, op)
	case *core.Atomic:
		m.atomic(c, op)
	case *core.PutSchedule:
		m.putSchedule(c, op)
	case *core.PauseSchedule:
		m.pauseSchedule(c, op)
	case *core.RemoveSchedule:
		m.removeSchedule(c, op)
	case *core.RunSchedule:
		m.runSchedule(c, op)
	case *core.ListSchedules:
		m.listSchedules(c, op)
	case *core.LeaseJob:
		m.leaseJob(c, op)
	case *core.Annotate:
		m.annotate(c, op)
	case *core.TransferLease:
		m.transferLease(c, op)
	case *core.Cancel:
		m.cancel(c, op)
	case *core.Enqueue:
		m.enqueue(c, op)
	case *core.Bury:
		m.bury(c, op)
	default:
		m.applyAdmin(c, op)
	}
}

// applyAdmin serves the operations that are not on the hot path.
func (m *Machine) applyAdmin(c *client, op core.Op) {
	switch op := op.(type) {
	case *core.CreateQueue:
		m.createQueue(c, op)
	case *core.DropQueue:
		m.dropQueue(c, op)
	case *core.PauseQueue:
		m.pauseQueue(c, op)
	case *core.LimitQueue:
		m.limitQueue(c, op)
	case *core.ThrottleQueue:
		m.throttleQueue(c, op)
	case *core.Drain:
		m.drain(c, op)
	case *core.Purge:
		m.purge(c, op)
	case *core.ResetCounters:
		m.resetCounters(c, op)
	case *core.Inspect:
		m.inspect(c, op)
	case *core.ListJobs:
		m.listJobs(c, op)
	case *core.ListQueues:
		m.listQueues(c, op)
	case *core.InspectQueue:
		m.inspectQueue(c, op)
	case *core.ReadStats:
		m.reply(c, core.Reply{Kind: core.Counted, Tag: op.Tag, Stats: m.Stats()})
	case *core.ReadMeta:
		m.reply(c, core.Reply{Kind: core.MetaReply, Tag: op.Tag, Data: m.meta[op.Name], Commit: m.metaCommit()})
	case *core.WriteMeta:
		m.writeMeta(op.Entries)
		m.reply(c, core.Reply{Kind: core.Accepted, Tag: op.Tag, Commit: m.promise()})
	case *core.WriteDocuments:
		m.writeDocuments(c, op)
	case *core.ReadDocuments:
		m.readDocuments(c, op)
	case *core.OpenBatch:
		m.openBatch(c, op)
	case *core.CloseBatch:
		m.closeBatch(c, op)
	case *core.InspectBatch:
		m.inspectBatch(c, op)
	case *core.ListBatches:
		m.listBatches(c, op)
	case *core.PurgeBatches:
		m.purgeBatches(c, op)
	default:
		m.applyLook(c, op)
	}
}

// applyLook serves the operations that look for something.
func (m *Machine) applyLook(c *client, op core.Op) {
	switch op := op.(type) {
	case *core.ListClients:
		m.listClients(c, op)
	case *core.ListWorkers:
		m.listWorkers(c, op)
	case *core.Subscribe:
		m.subscribe(c, op)
	case *core.Unsubscribe:
		m.unsubscribe(c, func(s *subscription) bool { return s.op.Tag == op.Tag })
	case *core.ReadSeries:
		m.readSeries(c, op)
	case *core.ReadHistograms:
		m.readHistograms(c, op)
	case *core.Find:
		m.findJobs(c, op)
	case *core.ListNames:
		m.listNames(c, op)
	case *core.DisconnectClient:
		m.disconnect(c, op)
	case *core.NameClient:
		c.name = op.Name
	default:
		panic(fmt.Sprintf("machine: unknown operation %T", op))
	}
}

// reply puts r at the end of the client's queue.
func (m *Machine) reply(c *client, r core.Reply) {
	if m.run != nil && m.run.takes(c, &r) {
		return
	}
	c.replies = append(c.replies, r)
	if !c.touched {
		c.touched = true
		m.touched = append(m.touched, c.slot)
	}
	m.restOn(c, r.Commit)
}

// restOn notes that a client has a reply that rests on a commit, so that it is woken then.
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

// RestOn is for a reply that was completed outside: the client has it, and it rests on a commit, unless that is durable.
func (m *Machine) RestOn(id core.ClientID, commit core.Commit) {
	if c := m.client(id); c != nil {
		m.restOn(c, m.pending(commit))
	}
}

// touch notes that a job's record has changed.
func (m *Machine) touch(h uint32, e *entry) {
	if e.flags&(dirty|ephemeral) != 0 || !m.opts.Persist {
		return
	}
	e.set(dirty)
	m.changed = append(m.changed, h)
}

// move is the only writer of entry.state; it keeps the counters of queue and server.
func (m *Machine) move(e *entry, to core.State) {
	if !e.state.CanMove(to) {
		panic("machine: illegal move " + e.state.String() + " to " + to.String())
	}
	q := m.queues[e.queue]
	if e.has(listed) {
		panic("machine: a job leaves its state and stays in the list of it")
	}
	m.measures.mark(q.meter)
	if e.state != core.Gone {
		q.count[e.state]--
		m.stats.Jobs[e.state]--
	}
	if e.state == core.Leased {
		e.clear(rerun)
	}
	if e.state == core.Ready {
		q.class[classOf(e.priority)]--
		m.class[classOf(e.priority)]--
	}
	if to == core.Ready {
		q.class[classOf(e.priority)]++
		m.class[classOf(e.priority)]++
	}
	if to != core.Gone {
		q.count[to]++
		m.stats.Jobs[to]++
	}
	e.state = to
}

// Take moves a client's replies to into.
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
	c.touched = false
	m.fetched(c)
	return into
}

// Touched calls fn for every client that got replies since the last call.
func (m *Machine) Touched(fn func(slot uint32)) {
	for _, slot := range m.touched {
		if c := m.clients[slot]; c != nil && c.touched {
			fn(slot)
		}
	}
	m.touched = m.touched[:0]
}

// Refuse sets or clears the reason why no job is admitted.
func (m *Machine) Refuse(why error) {
	m.refuse = why
	m.stats.DiskFull = why != nil
}

// Stop ends all changes for ever; the first reason stays. Who waits for a job is told.
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

// NextDeadline is when Tick should be called next; zero: not before something changes.
func (m *Machine) NextDeadline() core.Instant { return m.timers.Next() }

// Open is the number of the batch that is being filled.
func (m *Machine) Open() core.Commit { return m.open }

// Changed reports whether there is something to seal. Counters alone are nothing: they go with the next change.
func (m *Machine) Changed() bool {
	return len(m.changed) > 0 || len(m.removed) > 0 || len(m.metaLog) > 0 || len(m.documents) > 0 || len(m.dirtyBatches) > 0 ||
		len(m.schedules.moved) > 0
}

// Pending is about how many changes the open batch holds.
func (m *Machine) Pending() int { return len(m.changed) + len(m.removed) + len(m.documents) }

// Awaited reports whether a client waits for the open batch.
func (m *Machine) Awaited() bool { return len(m.waitsOpen) > 0 }

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

// logMeta has an entry stored with the open batch.
func (m *Machine) logMeta(k core.MetaEntry) {
	if m.opts.Persist {
		m.lastMeta = m.open
		m.metaLog = append(m.metaLog, k)
	}
}
