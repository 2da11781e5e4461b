package machine

import (
	"slices"
	"time"

	"broker/core"
	"broker/core/internal/limit"
	"broker/core/internal/table"
	"broker/core/internal/timer"
)

// wakeFor is how long a woken worker may take to respond before the next worker is woken.
const wakeFor = 250 * time.Millisecond

// lease hands out a job, or makes the client wait.
func (m *Machine) lease(c *client, op *core.Lease) {
	if c.parked {
		m.failed(c, op.Tag, core.ErrBusy)
		return
	}
	if !op.IsValid() {
		m.failed(c, op.Tag, core.ErrInvalid)
		return
	}
	m.worksNow(c)
	woken := m.wakeAcked(c)
	m.leaveWaitLists(c)
	m.noteRequest(c, op)
	var n uint32
	var limit time.Duration
	if op.Min <= 1 || op.Deadline <= m.table.Now || m.enough(c, op) {
		n, limit = m.pick(c, op)
	}
	switch {
	case n != 0 && op.Max > 1:
		m.assignMany(c, op)
	case n != 0:
		m.assign(c, op, n, limit)
	case op.Deadline == 0:
		m.reply(c, core.Reply{Kind: core.NothingReady, Tag: op.Tag})
	case op.Deadline <= m.table.Now:
		m.reply(c, core.Reply{Kind: core.TimedOut, Tag: op.Tag})
	default:
		m.park(c, op)
	}
	m.requestEnds(c, op)
	if woken != n {
		m.offer(woken) // the job for which it was woken is still there
	}
}

// pick chooses the queue to serve a lease from; zero: no queue has a job.
func (m *Machine) pick(c *client, op *core.Lease) (n uint32, limit time.Duration) {
	if op.Queues == nil {
		return m.pickAble(c, op)
	}
	seen, at, first := 0, 0, 0
	m.visitMark++
	if op.Pick == core.PickByPriority {
		first = c.turn
	}
	for i := range op.Queues {
		m.looked++
		k := (first + i) % len(op.Queues)
		q := m.table.QueueNumber(op.Queues[k])
		if q == 0 || m.runnable(m.queues[q]) == 0 || !m.slotFor(m.queues[q], c, op) {
			continue
		}
		switch op.Pick {
		case core.PickInOrder:
			return q, 0
		case core.PickAtRandom:
			if m.visited(q) {
				continue
			}
			seen++
			if m.opts.Random.IntN(seen) == 0 {
				n = q
			}
		case core.PickByPriority:
			if n == 0 || m.headPriority(q, c, op) > m.headPriority(n, c, op) {
				n, at = q, k
			}
		case core.PickFirst:
			n = m.firstOf(n, q, c, op)
		}
		if op.Pick == core.PickByPriority && n != 0 && m.headPriority(n, c, op) == m.maxReadyClass() {
			break
		}
	}
	if n != 0 && op.Pick == core.PickByPriority {
		c.turn = at + 1
	}
	return n, 0
}

// visited reports whether a queue has already occurred in the current list; see Machine.visitMark.
func (m *Machine) visited(n uint32) bool {
	q := m.queues[n]
	before := q.visitMark == m.visitMark
	q.visitMark = m.visitMark
	return before
}

// firstOf returns the one of two queues whose next job would be first if both were a single queue; n may be zero.
func (m *Machine) firstOf(n, q uint32, c *client, op *core.Lease) uint32 {
	if n == 0 || m.table.Before(m.front(m.queues[q], c, op), m.front(m.queues[n], c, op)) {
		return q
	}
	return n
}

// headPriority returns the priority of the job that a client would get from a queue.
func (m *Machine) headPriority(n uint32, c *client, op *core.Lease) int64 {
	return m.table.At(m.front(m.queues[n], c, op)).Priority()
}

// front returns the next job that a client gets from a queue. runnable and slotFor must have found one. Jobs of one key
// that are handed out together come one after another, so that the other keys are left for other workers, unless a job
// is more urgent.
func (m *Machine) front(q *jobQueue, c *client, op *core.Lease) uint32 {
	if q.HasLanes() {
		return m.laneFront(q, askerFor(c, op))
	}
	first := q.Open().Front()
	h := m.limits.Following(&q.Queue)
	if h == 0 || m.table.At(h).Priority() < m.table.At(first).Priority() || m.unfit(h) || !m.limits.Fits(&q.Queue, h) {
		return first
	}
	return h
}

// maxReadyClass returns a priority that no ready job exceeds. A search can stop when it finds a job of this priority.
// Otherwise a worker for thousands of queues would need thousands of lookups per job.
func (m *Machine) maxReadyClass() int64 {
	switch {
	case m.table.Class[table.ClassHigh] > 0:
		return core.MaxPriority
	case m.table.Class[table.ClassNormal] > 0:
		return 0
	}
	return -1
}

// pickAble serves a worker by its registrations: the highest priority first; among equal priorities in turn, from the
// newest registration to the oldest, as gearmand does.
func (m *Machine) pickAble(c *client, op *core.Lease) (n uint32, limit time.Duration) {
	best := int64(0)
	at := 0
	if m.table.InState[core.Ready] == 0 {
		return 0, 0
	}
	for i := range c.abilities {
		m.looked++
		k := (c.turn + len(c.abilities) - 1 - i) % len(c.abilities)
		number := c.abilities[k].queue
		q := m.queues[number]
		h := m.runnable(q)
		if h == 0 || !m.slotFor(q, c, op) {
			continue
		}
		if q.HasLanes() { // limits may allow the job for another worker only
			h = m.laneFront(q, askerFor(c, op))
		}
		if p := m.table.At(h).Priority(); n == 0 || p > best {
			n, best, at = number, p, k
		}
		if best == m.maxReadyClass() {
			break
		}
	}
	if n != 0 {
		limit = c.abilities[at].leaseFor
		c.turn = at
	}
	return n, limit
}

// runnable returns the first job of a queue that may be handed out now. It removes unfit jobs on the way. If there are
// many, it leaves the rest to a timer that is due at once, and returns no job.
func (m *Machine) runnable(q *jobQueue) uint32 {
	if m.draining || q.paused || q.Sorting || q.Reached() {
		return 0
	}
	if q.HasLanes() {
		return m.laneFront(q, limit.Asker{})
	}
	for range limit.MaxStale {
		h := q.Open().Front()
		if h == 0 {
			return 0
		}
		if !m.unfit(h) {
			if !m.limits.Fits(&q.Queue, h) {
				return 0
			}
			return h
		}
		m.dropUnfit(h)
	}
	m.dropRest(q)
	return 0
}

// stale reports whether a ready job is past its StartBefore.
func (m *Machine) stale(h uint32) bool {
	x := m.table.Optional(h)
	return x != nil && x.StartBefore != 0 && x.StartBefore <= m.table.Now
}

// park adds a waiting lease to the wait lists of its queues.
func (m *Machine) park(c *client, op *core.Lease) {
	c.parked, c.lease = true, *op
	c.lease.Queues = nil // the caller may reuse the slice; the wait entries know the queues
	if op.Max > 1 {
		c.lease.Queues = slices.Clone(op.Queues)
	}
	c.wait = m.table.Timers.Add(op.Deadline, timer.Owner{Kind: table.TimerWait, Handle: c.slot})
	if op.Queues == nil {
		c.byAbility = true
		m.joinByAbility(c)
		return
	}
	m.visitMark++
	m.looked += len(op.Queues)
	for _, name := range op.Queues {
		if n, q := m.queueWaitedOn(name); !m.visited(n) {
			if op.KeepQueues {
				m.table.Show(n)
				m.extendLifetime(q, afterUse)
			}
			m.waitStarted(c, q)
			m.join(c, n, q, true)
		}
	}
}

// join adds a client to the wait list of a queue. The queue may already have a job: the queues of the client are
// examined one after another, and removing a job from one may release a job into another that was empty before.
func (m *Machine) join(c *client, n uint32, q *jobQueue, count bool) {
	m.waiters.Join(c.slot, n, &q.waitList, &c.waitEntries, count)
	m.offer(n)
}

// waitTimeout handles the deadline of a waiting lease or of a wake-up.
func (m *Machine) waitTimeout(c *client) {
	c.wait = 0
	if n := m.wakeAcked(c); n != 0 {
		if q := m.queues[n]; q != nil { // it may be gone if only the woken worker kept it
			q.wakeTimedOut = true
			m.offer(n)
		}
		return
	}
	if n := m.leftOver(c); n != 0 && m.stopped == nil {
		m.assignParked(c, n)
		return
	}
	m.cancelLease(c)
}

// leftOver returns the first queue of a waiting lease that has a job after all: a job for which a woken worker has not
// responded yet. That worker will find nothing. This is better than a lease that times out although a job is there.
func (m *Machine) leftOver(c *client) (n uint32) {
	m.waiters.Each(c.waitEntries, func(number uint32) {
		if q := m.queues[number]; m.runnable(q) != 0 && m.slotFor(q, c, &c.lease) {
			n = number // wait entries are in reverse order
		}
	})
	return n
}

// assignParked gives a waiting lease the first job of queue n.
func (m *Machine) assignParked(c *client, n uint32) {
	if c.lease.Max > 1 {
		lease := c.lease
		m.leaveWaitLists(c)
		m.assignMany(c, &lease)
		return
	}
	if c.lease.Pick == core.PickFirst {
		m.waiters.Each(c.waitEntries, func(q uint32) {
			if q != n && m.runnable(m.queues[q]) != 0 && m.slotFor(m.queues[q], c, &c.lease) {
				n = m.firstOf(n, q, c, &c.lease)
			}
		})
	}
	lease, limit := c.lease, time.Duration(0)
	if c.byAbility {
		limit = c.limitFor(n)
	}
	m.leaveWaitLists(c)
	m.assign(c, &lease, n, limit)
}

// cancelLease ends a waiting lease without a job.
func (m *Machine) cancelLease(c *client) {
	for _, tag := range m.dropReads(c) {
		m.reply(c, core.Reply{Kind: core.TimedOut, Tag: tag})
	}
	if !c.parked {
		return
	}
	tag := c.lease.Tag
	m.leaveWaitLists(c)
	m.reply(c, core.Reply{Kind: core.TimedOut, Tag: tag})
}

// wake wakes a sleeping worker for a job in queue n.
func (m *Machine) wake(c *client, n uint32) {
	m.leaveWaitLists(c)
	c.wakeTarget = n
	m.queues[n].woken++
	c.wait = m.table.Timers.Add(m.table.Now.Add(wakeFor), timer.Owner{Kind: table.TimerWait, Handle: c.slot})
	m.reply(c, core.Reply{Kind: core.Woken, Tag: c.sleepTag})
}

// assign leases the first ready job of queue n to a client. limit is the worker's own limit per job; zero: none.
func (m *Machine) assign(c *client, op *core.Lease, n uint32, limit time.Duration) {
	q := m.queues[n]
	h := m.front(q, c, op)
	e := m.table.At(h)
	m.limits.RemoveReady(&q.Queue, h)
	m.move(e, core.Leased)
	e.Attempts++
	m.grant(c, op, h, e, m.grantFor(e, op, limit))
	m.meters.Leased(&q.metered, e.Kind, m.table.Now-m.waited)
	if q.DistinguishesJobs() {
		m.limits.Leased(&q.Queue, h, e.Seq)
	}
	if e.Has(table.HasOptional) && m.table.Optional(h).UniqueStart {
		m.unlock(h)
	}
	m.count(e.Origin, c.protocol, func(t *core.Totals) { t.Leased++ })
	q.counts.of(c.protocol).leased++
	commit := m.table.WindowCommit(e, m.table.Payload(h))
	if m.storesLease(e, op.Holder) {
		e.Set(table.Changed)
		m.table.Touch(h, e)
	}
	if m.opts.AwaitLeases {
		commit = m.table.JobCommit(e)
	}
	r := m.newReply(c, core.Assigned, op.Tag, commit)
	r.Seq, r.Job = e.Seq, m.table.Payload(h)
	r.Lease = m.grantOf(e)
	if e.Has(table.HasTransient) {
		n := m.table.Transient(h)
		m.table.DropCollected(n)
		n.TooMuch = false
		r.Lease.Failure = n.Failure
	}
	if e.Fails > 0 && r.Job != nil && r.Lease.Failure == nil {
		r.Lease.Failure = r.Job.FailureAfter(e.Fails)
	}
	switch {
	case r.Job != nil && (r.Lease.Fails == 0 || r.Lease.Failure != nil):
	case op.Late:
		r.Kind = core.Reading
		c.reads = append(c.reads, read{tag: op.Tag, seq: e.Seq, epoch: e.Epoch})
		m.lastNeeds(c, Work{Needs: LeasedJobLater, Queue: q.Name})
	default:
		m.lastNeeds(c, Work{Needs: LeasedJob, Queue: q.Name})
	}
	if hasTimeline(e, core.EventLeased) {
		m.addToTimeline(c, h, e, core.EventLeased, "")
	}
	m.emit(h, e, core.EventLeased, "")
	m.table.EvictLeased(h, e)
}

// storesLease reports whether a lease is stored.
func (m *Machine) storesLease(e *table.Entry, by core.Holder) bool {
	return by != core.HeldByConn || m.maxAttempts(e) > 0 || m.queues[e.Queue].spent != nil || m.opts.AwaitLeases
}

// grantFor returns the duration of a lease in milliseconds: the requested duration or the job's own, limited by the
// worker's. It is always finite if no connection holds the lease.
func (m *Machine) grantFor(e *table.Entry, op *core.Lease, limit time.Duration) uint32 {
	granted := m.leaseFor(e)
	if op.LeaseFor != 0 {
		granted = table.Millis(op.LeaseFor)
	}
	if l := table.Millis(limit); l != 0 && (granted == 0 || l < granted) {
		granted = l
	}
	if granted == 0 && op.Holder != core.HeldByConn {
		granted = table.Millis(m.opts.DefaultLease)
	}
	return granted
}

// slotFor reports whether the limits of the queue allow this lease.
func (m *Machine) slotFor(q *jobQueue, c *client, op *core.Lease) bool {
	return len(c.releases) == 0 && (!q.HasLanes() && !q.LimitsWorkers() || m.slotLeft(q, c, op))
}

func (m *Machine) slotLeft(q *jobQueue, c *client, op *core.Lease) bool {
	if q.HasLanes() && m.laneFront(q, askerFor(c, op)) == 0 {
		return false
	}
	return m.limits.WorkerBelow(&q.Queue, askerFor(c, op))
}

// askerFor returns the limit.Asker for a client's lease.
func askerFor(c *client, op *core.Lease) limit.Asker { return limit.Asker{Client: c.id, Lease: op} }

// laneFront returns the next job of a queue with lanes, or zero if no job can be handed out now. It drops unfit jobs on
// the way, as runnable does, and leaves a search that takes long to the same timer.
func (m *Machine) laneFront(q *jobQueue, who limit.Asker) uint32 {
	for range limit.MaxStale {
		h, unfinished := m.limits.OpenFront(&q.Queue, who)
		if unfinished {
			break
		}
		if h == 0 || !m.unfit(h) {
			return h
		}
		m.dropUnfit(h) // changes the lanes
	}
	m.dropRest(q)
	return 0
}

// assignMany leases several jobs to a client without a waiting lease. There must be at least one job.
func (m *Machine) assignMany(c *client, op *core.Lease) {
	rest := *op
	from, bodies := len(c.replies), 0
	m.limits.StartHandOut()
	for taken := 0; taken < op.Max; taken++ {
		n, limit := m.pick(c, &rest)
		if n == 0 {
			break
		}
		bodies += int(m.table.At(m.front(m.queues[n], c, op)).BodyBytes)
		if taken > 0 && op.MaxBytes > 0 && bodies > op.MaxBytes {
			break
		}
		m.assign(c, &rest, n, limit)
		if op.Pick == core.PickInOrder && rest.Queues != nil { // earlier queues have no jobs
			for m.table.QueueNumber(rest.Queues[0]) != n {
				rest.Queues = rest.Queues[1:]
			}
		}
	}
	m.limits.EndHandOut()
	more := 0
	for i := len(c.replies) - 1; i >= from; i-- {
		if r := &c.replies[i]; r.Tag == op.Tag && (r.Kind == core.Assigned || r.Kind == core.Reading) {
			r.N = more
			more++
		}
	}
}

// enough reports whether a lease could get as many jobs as it waits for. It applies limits that several keys or types
// share to each of them separately. It examines the jobs themselves only if there are enough of them.
func (m *Machine) enough(c *client, op *core.Lease) bool {
	return m.missing(c, op, false) <= 0 && m.missing(c, op, true) <= 0
}

// missing returns how many jobs a lease still lacks. With fit, jobs that must not be handed out are dropped instead of
// counted.
func (m *Machine) missing(c *client, op *core.Lease, fit bool) int {
	missing := op.Min
	look := func(n uint32) {
		if q := m.queues[n]; n != 0 && missing > 0 && m.runnable(q) != 0 && m.slotFor(q, c, op) {
			missing -= m.availableTo(q, c, op, missing, fit)
		}
	}
	m.visitMark++
	switch {
	case c.parked:
		m.waiters.Each(c.waitEntries, look)
	case op.Queues == nil:
		for _, a := range c.abilities {
			look(a.queue)
		}
	default:
		for _, name := range op.Queues {
			if n := m.table.QueueNumber(name); n != 0 && !m.visited(n) {
				look(n)
			}
		}
	}
	return missing
}

// availableTo returns how many jobs of a queue a client could get now; it stops once the count exceeds above.
func (m *Machine) availableTo(q *jobQueue, c *client, op *core.Lease, above int, fit bool) (n int) {
	woken := 0
	if c.parked && m.opts.Wakeup < 0 {
		woken = int(q.woken) // each will take a job; see nextWaiter
	}
	above += woken
	if fit {
		var unfit []uint32
		n, unfit = m.limits.CountFit(&q.Queue, askerFor(c, op), above, m.unfit)
		for _, h := range unfit {
			m.dropUnfit(h)
		}
		if len(unfit) >= limit.MaxStale {
			m.dropRest(q)
		}
	} else {
		n = m.limits.OpenFor(&q.Queue, askerFor(c, op), above)
	}
	return min(max(q.Room(n)-woken, 0), m.limits.RoomForWorker(&q.Queue, askerFor(c, op)))
}

// leaseJob leases a particular job to a worker with an id or to a connection.
func (m *Machine) leaseJob(c *client, op *core.LeaseJob) {
	if op.Resumes != nil {
		m.resumeLease(c, op)
		return
	}
	h, e, err := m.findIf(op.Ref, &op.If)
	if err == nil {
		err = m.leaseJobRefusal(h, e, op)
	}
	if m.stopsHere(c, op.Tag, e, err) {
		return
	}
	stops := e.Has(table.Stopping)
	m.takeForLease(h, e)
	m.move(e, core.Leased)
	if stops {
		e.Set(table.Stopping) // the next worker is asked to stop too; grant sets the time
	}
	e.Attempts++
	m.meters.Leased(&m.queues[e.Queue].metered, e.Kind, m.table.Now-e.WaitsSince(m.table.Now))
	m.limits.LeasedAnyway(&m.queues[e.Queue].Queue, h, e)
	m.grantJob(c, op, h, e)
	if x := m.table.Optional(h); x != nil && x.UniqueStart && !e.Has(table.Unlocked) {
		m.unlock(h)
	}
	m.count(e.Origin, c.protocol, func(t *core.Totals) { t.Leased++ })
	m.queues[e.Queue].counts.of(c.protocol).leased++
	e.Set(table.Changed)
	m.table.Touch(h, e)
	m.reply(c, core.Reply{
		Kind: core.Accepted, Tag: op.Tag, Seq: e.Seq, Lease: m.grantOf(e), Commit: m.table.ChangeCommit(e),
	})
	m.record(h, e, core.EventLeased, "")
}

// grantJob grants the lease.
func (m *Machine) grantJob(c *client, op *core.LeaseJob, h uint32, e *table.Entry) {
	if !op.ByConn {
		m.grant(c, &core.Lease{Holder: core.HeldByWorker, Worker: op.Worker}, h, e, table.Millis(op.LeaseFor))
		return
	}
	m.worksNow(c)
	lease := &core.Lease{Holder: core.HeldByConn}
	span := m.leaseFor(e)
	if op.LeaseFor != 0 {
		span = table.Millis(op.LeaseFor)
	}
	m.grant(c, lease, h, e, span)
}

func (m *Machine) leaseJobRefusal(h uint32, e *table.Entry, op *core.LeaseJob) error {
	switch e.State {
	case core.Ready, core.Scheduled, core.Retrying, core.Leased:
	case core.Dead:
		if !op.Dead {
			return core.ErrFinished
		}
	case core.Done:
		return core.ErrFinished
	case core.Gone, core.Blocked:
		return core.ErrInvalid
	}
	switch {
	case op.ByConn == (op.Worker != ""), op.LeaseFor < 0, op.LeaseFor == 0 && !op.ByConn:
		return core.ErrInvalid
	case m.draining:
		return core.ErrDraining
	case m.limits.OutOfTurn(h, e):
		return core.ErrOutOfTurn
	}
	return nil
}

// takeForLease makes a job ready and takes it out of its queue's list.
func (m *Machine) takeForLease(h uint32, e *table.Entry) {
	if e.State == core.Ready {
		m.limits.RemoveReady(&m.queues[e.Queue].Queue, h)
		return
	}
	if e.State == core.Leased {
		m.unhold(h, e)
		m.count(e.Origin, e.HolderFrom, func(t *core.Totals) { t.Released++ })
		m.timeOutRuns(e)
		m.table.ForgetProgress(h, e)
	} else {
		m.detach(h, e)
	}
	if e.State == core.Dead {
		m.leaveDeadSet(h, e)
		m.links.Unlink(h)
	}
	m.move(e, core.Ready)
}
