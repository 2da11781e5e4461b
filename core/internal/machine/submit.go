package machine

import (
	"time"

	"broker/core"
	"broker/core/internal/timer"
)

// optional holds what few jobs have, so that only those pay for it.
type optional struct {
	startBefore    core.Instant
	startTimer     timer.ID // set while the job is ready and has StartBefore
	uniqueUntil    core.Instant
	uniqueStart    bool
	startKey       digest       // uniqueStart: the key that was freed by the lease
	retainUntil    core.Instant // differs from expiresAt
	retainFor      time.Duration
	askedUntil     core.Instant // keptByQueue: the retention that the job itself asks for; zero: none
	ttl            core.Instant // of a dead job: its ExpiresAt; otherwise expiresAt has it
	parent         uint64
	onBroken       core.OnBroken
	cost           uint32      // Job.Cost; zero: 1
	waiting        []uint64    // its dependencies, in ascending order
	shortened      core.Commit // holds the last end of a dependency that did not rewrite the job's record
	successors     []uint64    // jobs that depend on this one
	children       []uint64    // jobs blocked until this one is finished
	openChildren   int         // children that are not closed
	childrenBroken bool        // a child is gone without being done
	isClosed       bool        // its dependents have been notified
	batch          uint64      // batch of which it is a member
	tried          bool        // its batch has counted its first execution
	callbackFor    uint64      // batch whose callback it is
	slotKey        uint64      // holder of the throttle slot
	slotTimer      timer.ID
	slot           slotState
	timeline       uint16   // Job.Timeline
	logChunks      uint8    // places of the documents of its log
	lane           *laneJob // in a queue with lanes
}

// transient holds what is known about a job besides its entry, while it is not on disk.
type transient struct {
	progress core.Progress
	failure  *core.Failure
	outcome  *core.Outcome
	data     []byte               // chunks of the present attempt, for clients that want the whole result
	tooMuch  bool                 // there were more than may be kept
	entries  []core.TimelineEntry // that are not on disk, the first written ones on their way there
	written  int
}

func (m *Machine) ensureOptional(h uint32) *optional {
	e := m.jobs.at(h)
	if !e.has(hasOptional) {
		e.set(hasOptional)
		m.optionals[h] = &optional{}
	}
	return m.optionals[h]
}

// optionalState returns that of a job, or nil.
func (m *Machine) optionalState(h uint32) *optional {
	if !m.jobs.at(h).has(hasOptional) {
		return nil
	}
	return m.optionals[h]
}

func (m *Machine) ensureTransient(h uint32) *transient {
	e := m.jobs.at(h)
	if !e.has(hasTransient) {
		e.set(hasTransient)
		m.transients[h] = &transient{}
	}
	return m.transients[h]
}

// forgetProgress clears the progress of a job whose worker has left it; the progress of a finished job is kept with its outcome.
func (m *Machine) forgetProgress(h uint32, e *entry) {
	if e.has(hasTransient) {
		m.transients[h].progress = core.Progress{}
	}
}

// submit admits a job or refuses it.
func (m *Machine) submit(c *client, op *core.Submit) {
	j := op.Job
	a := m.admission(op)
	switch {
	case a.replaces != 0:
		m.replace(c, op, a.replaces)
		return
	case m.run != nil && !m.run.applying:
		m.run.err = a.err
		return
	case a.err != nil && m.run == nil:
		r := core.Reply{Kind: core.Failed, Tag: op.Tag, Err: a.err, Commit: a.commit}
		if a.window != nil {
			r.Seq = a.window.seq
		}
		if a.there != 0 {
			e := m.jobs.at(a.there)
			if r.Seq = e.seq; e.state == core.Leased {
				r.Lease.Epoch = e.epoch
			}
		}
		m.reply(c, r)
		return
	case a.joins != 0:
		m.coalesce(c, op, a.joins)
		return
	case a.window != nil && a.err == nil:
		m.coalesceOver(c, op, a.window)
		return
	}
	j.ReadyAt = op.Due(m.now, m.now)
	h := m.admitSubmission(a, j, c.protocol)
	e := m.jobs.at(h)
	if m.inMemory(op) {
		e.words |= memoryOnly
	}
	m.admitted(h, e)
	m.writeMeta(op.Meta)
	if op.Window > m.now {
		m.openWindow(j, op.Window)
	}
	m.newReply(c, core.Submitted, op.Tag, m.changeCommit(e)).Seq = j.Seq
	if op.Watch != core.WatchNone {
		m.watch(c, h, op.Watch, op.Tag, op.Deadline)
	}
	m.place(h, e)
}

// admitSubmission admits a job, without a place yet.
func (m *Machine) admitSubmission(a admission, j *core.Job, by core.Protocol) uint32 {
	if a.there != 0 && a.err == nil {
		m.remove(a.there)
	}
	if j.CreatedAt == 0 || j.CreatedAt > m.now {
		j.CreatedAt = m.now
	}
	m.applyToSubmission(j)
	if j.SeqOrder { // the places of such jobs follow their numbers, whatever the clock says
		j.CreatedAt = max(m.now, m.firstPlace)
	}
	h := m.admit(j)
	e := m.jobs.at(h)
	m.count(e.origin, by, func(t *core.Totals) { t.Submitted++ })
	m.queues[e.queue].counts.Submitted[e.origin]++
	m.meters.Submitted(&m.queues[e.queue].watch, m.now)
	return h
}

// admitted adds a job that was admitted to the open batch, unless it is not stored, and tells of it.
func (m *Machine) admitted(h uint32, e *entry) {
	if m.touch(h, e); e.has(dirty) {
		m.addOpen(payloadBytes(m.jobs.payload(h)))
	}
	m.record(h, e, core.EventSubmitted, "")
}

// admission is the decision about a submission.
type admission struct {
	err   error
	there uint32 // the conflicting job or, without an error, the job to replace
	joins uint32 // the job with which it coalesces
	// replaces is the job that it changes; without that, the error counts.
	replaces uint32
	window   *window     // that holds its key, if no job does
	commit   core.Commit // on which an error depends
}

// admission decides about a submission. While an atomic list is being applied, errors do not count.
func (m *Machine) admission(op *core.Submit) (a admission) {
	j := op.Job
	if !m.valid(op) {
		a.err = core.ErrInvalid
		return a
	}
	if j.Unique == core.UniqueReplace {
		if h := m.uniqueHolder(j); h != 0 {
			return m.replaceable(h)
		}
	}
	if j.Unique == core.UniqueCoalesce {
		if h := m.uniqueHolder(j); h != 0 {
			if !j.Ephemeral && m.jobs.at(h).has(ephemeral) && m.refuse != nil {
				a.err = m.refuse // a client would be promised a job that is not stored
			}
			a.joins = h
			return a
		}
		if a.window = m.windowOf(j); a.window != nil {
			a.commit = m.pending(a.window.made)
			if op.Watch != core.WatchNone || j.Ephemeral {
				a.err = core.ErrNotUnique
			}
			return a
		}
	}
	if a.there, a.commit, a.err = m.refusal(j); a.err == nil && j.Unique.Refuses() {
		if a.window = m.windowOf(j); a.window != nil {
			a.there, a.commit, a.err = 0, m.pending(a.window.made), core.ErrNotUnique
		}
	}
	return a
}

// uniqueHolder is the unfinished job that holds the unique key of a new one in its queue; zero if there is none, or if the atomic
// list being checked removes it.
func (m *Machine) uniqueHolder(j *core.Job) uint32 {
	n := m.names[j.Queue]
	if n == 0 {
		return 0
	}
	h := m.holder(n, j.UniqueKey)
	if h != 0 && m.run.cancels(m.jobs.at(h).seq) {
		return 0
	}
	return h
}

// valid reports whether a submission is valid. A job that is not stored needs a client that waits, and cannot be in a batch,
// which is stored; dependencies must have existed.
func (m *Machine) valid(op *core.Submit) bool {
	j := op.Job
	if len(j.Queue) > core.MaxQueueName || len(j.ID) > core.MaxIDBytes || len(j.After) > core.MaxAfter || len(j.Trace) > core.MaxTraceBytes ||
		!validTags(j.Tags) || !validPriority(j.Priority) ||
		j.SeqOrder && j.ScheduledOrder || j.Tallies > core.AllTallies || j.Own > core.JobFields ||
		j.Cost > core.MaxCost || j.OnBroken > core.BrokenDrops || j.OnBroken != core.BrokenWaits && j.Ephemeral {
		return false
	}
	if j.Unique == core.UniqueReplace && (j.Ephemeral || j.UniqueKey == "") || op.DebounceMs > 0 && j.Unique != core.UniqueReplace {
		return false
	}
	if op.Window != 0 && (j.Ephemeral || j.Unique == core.UniqueNone || j.UniqueKey == "") {
		return false
	}
	if j.Ephemeral && (op.Watch == core.WatchNone || op.Watch == core.WatchOutcome || j.Batch != 0) {
		return false
	}
	for _, seq := range j.After {
		if seq >= m.nextSeq {
			return false
		}
	}
	return j.Parent < m.nextSeq
}

// refusal is why a job is refused, the conflicting job, and the commit that this depends on. Without an error, the existing job
// is to be replaced.
func (m *Machine) refusal(j *core.Job) (there uint32, _ core.Commit, _ error) {
	if j.ID != "" {
		if there = m.find(core.Ref{ID: j.ID}); there != 0 && m.run.cancels(m.jobs.at(there).seq) {
			there = 0
		}
	}
	if m.unstored() > m.maxUnstored() && !j.Ephemeral {
		return 0, 0, core.ErrDiskFull
	}
	if err := m.closedTo(j.Ephemeral); err != nil {
		return 0, 0, err
	}
	if there != 0 && !m.givesWay(there, j) {
		return there, m.jobCommit(m.jobs.at(there)), core.ErrDuplicate
	}
	if j.Unique == core.UniqueRefuse {
		if h := m.uniqueHolder(j); h != 0 {
			return h, m.jobCommit(m.jobs.at(h)), core.ErrNotUnique
		}
	}
	if n := m.names[j.Queue]; n != 0 && m.full(n, j.Priority) {
		return 0, 0, core.ErrFull
	}
	if j.Batch != 0 {
		if err := m.batchRefusal(j.Batch); err != nil {
			return 0, m.batchCommit(m.batches[j.Batch]), err
		}
	}
	return there, 0, nil
}

// unstored is the number of bytes that are admitted and not on disk yet.
func (m *Machine) unstored() int { return m.openBytes + m.inflightBytes + m.run.admitted() }

// givesWay reports whether a job with the same id as j is done, with its children, and only kept for clients that ask about it.
func (m *Machine) givesWay(h uint32, j *core.Job) bool {
	e := m.jobs.at(h)
	x := m.optionalState(h)
	if e.state == core.Done && e.has(keptByQueue) {
		return x == nil || x.openChildren == 0
	}
	return e.state == core.Done && e.origin.ReusesIDs() && j.Origin == e.origin && x != nil && x.retainFor != 0 && x.isClosed
}

// admit assigns a number and an entry in all indexes to a job; its state is still Gone.
func (m *Machine) admit(j *core.Job) uint32 {
	if j.Seq = m.nextSeq; j.Unique == core.UniqueReplace {
		j.Unique = core.UniqueRefuse // the other one is about a submission
	}
	m.nextSeq++
	m.reserve()
	n, q := m.enterQueue(j.Queue, j.Origin, j.Ephemeral)
	j.Queue = q.name // share one copy of the name
	if j.Type == "" || j.Type == q.name {
		j.Type = q.name
	}
	h := m.index(j, n)
	if e := m.jobs.at(h); !e.has(scheduledOrder) {
		e.readyAt = max(e.readyAt, m.now) // its position is by arrival, even if the client says that it is older
	}
	m.setPayload(h, j)
	m.joinLaneOf(h, j)
	return h
}

// enterQueue finds or makes the queue of a new job, and decides how long it stays known.
func (m *Machine) enterQueue(name string, origin core.Protocol, ephemeral bool) (uint32, *jobQueue) {
	n, q := m.queueNamed(name)
	m.timers.Remove(&q.idleTimer)
	m.known(q, lifetimeOf(origin))
	if origin.QueueLifetime() == core.QueueForGood && !ephemeral {
		m.retainQueue(q)
	}
	return n, q
}

// index makes the entry of a submitted job that has its number. It keeps nothing of j.
func (m *Machine) index(j *core.Job, n uint32) uint32 {
	h, e := m.jobs.alloc()
	e.seq, e.queue, e.createdAt = j.Seq, n, j.CreatedAt
	e.setPriority(j.Priority)
	e.readyAt = max(j.CreatedAt, j.ReadyAt)
	e.expiresAt = j.ExpiresAt
	e.leaseFor = millis(j.LeaseFor)
	e.maxAttempts, e.maxFails, e.fails = j.MaxAttempts, j.MaxFails, j.PriorFails
	e.origin, e.backoff, e.exhausted, e.words = j.Origin, j.Backoff, j.Exhausted, words(j.Own)
	if j.LeaseEnd == core.LeaseEndFail {
		e.words |= endFails
	}
	e.deadHours = uint16(min((j.DeadFor+time.Hour-1)/time.Hour, 1<<16-1))
	e.bodyBytes = uint32(len(j.Body))
	m.setType(e, j.Type)
	m.setTags(h, j.Tags)
	m.setTrace(h, e, j.Trace)
	if j.Ephemeral {
		e.set(ephemeral)
	}
	if j.ScheduledOrder {
		e.set(scheduledOrder)
		e.readyAt = j.ReadyAt
	}
	if j.SeqOrder {
		e.set(seqOrder)
		e.readyAt = j.ReadyAt // its CreatedAt may be later
		m.lastPlace = max(m.lastPlace, j.CreatedAt)
	}
	e.setTallies(j.Tallies)
	if j.Kept() {
		e.set(keepsOutcome)
	}
	m.bySeq.put(j.Seq, h)
	if j.ID != "" {
		e.id = m.hash.text(j.ID)
		m.byID[e.id] = h
		if core.IsUUIDv4(j.ID) {
			e.set(idIsUUIDv4)
		}
	}
	if e.expiresAt != 0 {
		e.expiryTimer = m.timers.Add(e.expiresAt, timer.Owner{Kind: timerExpiry, Handle: h})
	}
	if j.Unique != core.UniqueNone && j.UniqueKey != "" {
		m.lockUnique(h, j.UniqueKey)
	}
	m.indexOptional(h, j)
	return h
}

// indexOptional makes the optionalState of a job that needs one.
func (m *Machine) indexOptional(h uint32, j *core.Job) {
	if j.StartBefore != 0 || j.UniqueUntil != 0 || j.UniqueStart || j.RetainFor != 0 ||
		j.RetainUntil != 0 && j.RetainUntil != j.ExpiresAt {
		x := m.ensureOptional(h)
		x.startBefore, x.uniqueUntil, x.uniqueStart = j.StartBefore, j.UniqueUntil, j.UniqueStart
		x.retainUntil, x.retainFor = j.RetainUntil, j.RetainFor
	}
	if j.Parent != 0 || len(j.After) > 0 {
		m.ensureOptional(h).parent = j.Parent
	}
	if j.Cost > 1 {
		m.ensureOptional(h).cost = j.Cost
	}
	if j.OnBroken != core.BrokenWaits {
		m.ensureOptional(h).onBroken = j.OnBroken
	}
	if j.Timeline != 0 {
		m.ensureOptional(h).timeline = j.Timeline
	}
	if j.Batch != 0 || j.CallbackFor != 0 {
		x := m.ensureOptional(h)
		x.batch, x.callbackFor = j.Batch, j.CallbackFor
	}
}

// place makes a new job blocked, scheduled or ready, by its links and its time.
func (m *Machine) place(h uint32, e *entry) {
	if e.has(hasOptional) {
		m.joinBatch(h)
		if j := m.jobs.payload(h); (j.Parent != 0 || len(j.After) > 0) && m.link(h, j) {
			m.move(e, core.Blocked)
			m.enlist(h, e)
			e.set(changed)
			return
		}
	}
	m.schedule(h, e)
}

// schedule makes a job ready now, or when it is due.
func (m *Machine) schedule(h uint32, e *entry) {
	if e.readyAt > m.now {
		m.move(e, core.Scheduled)
		m.enlist(h, e)
		m.queues[e.queue].scheduled.Push(h, m.before)
		e.stateTimer = m.timers.Add(e.readyAt, timer.Owner{Kind: timerState, Handle: h})
		return
	}
	m.makeReady(h, e)
}

// makeReady puts a job into its queue and hands it to a waiting worker, if any. It clears the progress of a previous worker; a
// failure stays until the next one.
func (m *Machine) makeReady(h uint32, e *entry) {
	if e.state == core.Leased {
		e.leasedAt = m.now
		m.forgetProgress(h, e)
	} else if !e.has(scheduledOrder | seqOrder) {
		e.readyAt = max(e.readyAt, m.firstPlace)
	}
	m.lastPlace = max(m.lastPlace, e.place())
	if e.has(hasOptional) {
		m.limitStart(h)
	}
	m.move(e, core.Ready)
	q := m.queues[e.queue]
	m.show(e.queue, q)
	m.pushReady(q, h)
	m.record(h, e, core.EventReady, "")
	m.offer(e.queue)
}

// millis is d in milliseconds, at least one if d is positive, limited to what an entry can hold.
func millis(d time.Duration) uint32 {
	if d <= 0 {
		return 0
	}
	return uint32(min(max(d/time.Millisecond, 1), 1<<32-1))
}

// setPayload keeps a job's payload in memory and counts its bytes.
func (m *Machine) setPayload(h uint32, j *core.Job) {
	if old := m.jobs.payload(h); old != nil {
		m.cached -= payloadBytes(old)
	}
	if j != nil {
		m.cached += payloadBytes(j)
		m.jobs.at(h).clear(nonResident)
	} else {
		m.jobs.at(h).set(nonResident)
	}
	m.jobs.setPayload(h, j)
}

// payloadBytes is the approximate memory of a payload.
func payloadBytes(j *core.Job) int {
	n := 512 + len(j.Body) + len(j.Attributes) + len(j.ID) + len(j.UniqueKey) + 8*len(j.After) + len(j.Trace)
	for _, tag := range j.Tags {
		n += 16 + len(tag)
	}
	return n
}
