package machine

import (
	"broker/core"
	"broker/core/internal/table"
	"broker/core/internal/timer"
)

// submit admits a job or refuses it.
func (m *Machine) submit(c *client, op *core.Submit) {
	j := op.Job
	if op.Again != core.AgainNo && m.submitAgain(c, op) {
		return
	}
	a := m.admission(op)
	switch {
	case a.replaces != 0:
		m.replace(c, op, a.replaces)
		return
	case m.list.IsChecked():
		m.list.Err = a.err
		return
	case a.err != nil && m.list == nil:
		r := core.Reply{Kind: core.Failed, Tag: op.Tag, Err: a.err, Commit: a.commit}
		if a.window != nil {
			r.Seq = a.window.Seq
		}
		if a.there != 0 {
			e := m.table.At(a.there)
			if r.Seq = e.Seq; e.State == core.Leased {
				r.Lease.Epoch = e.Epoch
			}
		}
		m.reply(c, r)
		return
	case a.joins != 0:
		m.coalesce(c, op, a.joins)
		return
	case a.window != nil && a.err == nil:
		m.coalesceWithEnded(c, op, a.window)
		return
	}
	j.ReadyAt = op.Due(m.table.Now, m.table.Now)
	if op.Again == core.AgainNo {
		j.Seq = 0
	}
	h, e := m.admitSubmission(a, j, c.protocol)
	if m.inMemory(op) {
		e.Extra |= table.MemoryOnly
	}
	m.admitted(h, e)
	m.table.WriteMeta(op.Meta)
	if op.Window > m.table.Now {
		m.table.OpenWindow(j, op.Window)
	}
	r := m.newReply(c, core.Submitted, op.Tag, m.table.ChangeCommit(e))
	r.Seq = j.Seq
	if op.Info {
		r.Info = new(core.InfoOf(j))
		m.informed = append(m.informed, informed{h, r.Info})
	}
	if op.Watch != core.WatchNone {
		m.watch(c, h, op.Watch, op.Tag, op.Deadline)
	}
	if op.Again != core.AgainNo {
		e.Set(table.Untouched) // its worker may resume the lease
	}
	m.place(h, e)
}

// informed is the information in the reply to a submission; it is completed at the end of the decision.
type informed struct {
	h    uint32
	info *core.JobInfo
}

// inform completes the information in replies to submissions. It leaves that of jobs that are gone already, for example
// because a dependency is.
func (m *Machine) inform() {
	for _, i := range m.informed {
		if m.table.At(i.h).Seq == i.info.Seq {
			*i.info = m.inspection(i.h, true)
		}
	}
	clear(m.informed)
	m.informed = m.informed[:0]
}

// admitSubmission admits a job that is not placed in its queue yet.
func (m *Machine) admitSubmission(a admission, j *core.Job, by core.Protocol) (uint32, *table.Entry) {
	if a.there != 0 && a.err == nil {
		m.remove(a.there)
	}
	if j.CreatedAt == 0 || j.CreatedAt > m.table.Now {
		j.CreatedAt = m.table.Now
	}
	if j.Failure != nil {
		j.Failure.Count = j.PriorFails
	}
	m.policies.ApplyTo(j)
	if j.SeqOrder { // such jobs are ordered by their numbers, regardless of the clock
		j.CreatedAt = max(m.table.Now, m.table.FirstPlace)
	}
	h, e := m.admit(j)
	m.count(e.Origin, by, func(t *core.Totals) { t.Submitted++ })
	q := m.queues[e.Queue]
	q.counts.of(e.Origin).submitted++
	m.meters.Submitted(&q.metered, m.table.Now)
	return h, e
}

// admitted adds an admitted job to the open batch, unless it is not stored, and records the event.
func (m *Machine) admitted(h uint32, e *table.Entry) {
	if m.table.Touch(h, e); e.Has(table.Dirty) {
		m.table.AddOpen(table.PayloadBytes(m.table.Payload(h)))
	}
	m.record(h, e, core.EventSubmitted, "")
}

// admission is the decision about a submission.
type admission struct {
	err   error
	there uint32 // the conflicting job or, without an error, the job to replace
	joins uint32 // the job with which it coalesces
	// replaces is the job that the submission changes; if it is zero, the error counts.
	replaces uint32
	window   *table.Window // holds its key if no job does
	commit   core.Commit   // the commit that the error depends on
}

// admission decides about a submission. While an atomic list is being applied, errors are ignored.
func (m *Machine) admission(op *core.Submit) (a admission) {
	j := op.Job
	if !op.IsValid(m.table.NextSeq) {
		a.err = core.ErrInvalid
		return a
	}
	if j.Unique == core.UniqueReplace {
		if h := m.uniqueHolder(j); h != 0 {
			if a = m.replaceable(h); a.replaces != 0 && op.Watch != core.WatchNone && m.watchRefusal(h) != nil {
				a.replaces, a.err = 0, m.watchRefusal(h)
			}
			return a
		}
	}
	if j.Unique == core.UniqueCoalesce {
		if h := m.uniqueHolder(j); h != 0 {
			if !j.Ephemeral && m.table.At(h).Has(table.Ephemeral) && m.refuse != nil {
				a.err = m.refuse // otherwise a client would be promised a job that is not stored
			}
			if op.Watch != core.WatchNone && a.err == nil {
				a.err = m.watchRefusal(h)
			}
			a.joins = h
			return a
		}
		if a.window = m.table.WindowOf(j); a.window != nil {
			a.commit = m.table.WindowPending(a.window)
			if op.Watch != core.WatchNone || j.Ephemeral {
				a.err = core.ErrNotUnique
			}
			return a
		}
	}
	if a.there, a.commit, a.err = m.refusal(j); a.err == nil && j.Unique.Refuses() {
		if a.window = m.table.WindowOf(j); a.window != nil {
			a.there, a.commit, a.err = 0, m.table.WindowPending(a.window), core.ErrNotUnique
		}
	}
	return a
}

// uniqueHolder returns the unfinished job that holds the unique key of a new job in its queue; zero if there is none,
// or if the atomic list being checked removes it.
func (m *Machine) uniqueHolder(j *core.Job) uint32 {
	n := m.table.QueueNumber(j.Queue)
	if n == 0 {
		return 0
	}
	h := m.holder(n, j.UniqueKey)
	if h != 0 && m.list.Cancels(m.table.At(h).Seq) {
		return 0
	}
	return h
}

// refusal returns why a job is refused, the conflicting job, and the commit that the refusal depends on. Without an
// error, the existing job is to be replaced.
func (m *Machine) refusal(j *core.Job) (there uint32, _ core.Commit, _ error) {
	if j.ID != "" {
		if there = m.table.Find(core.Ref{ID: j.ID}); there != 0 && m.list.Cancels(m.table.At(there).Seq) {
			there = 0
		}
	}
	if m.unstored() > m.opts.MaxUnstored && !j.Ephemeral {
		return 0, 0, core.ErrDiskFull
	}
	if err := m.closedTo(j.Ephemeral); err != nil {
		return 0, 0, err
	}
	if there != 0 && !m.givesWay(there, j) {
		return there, m.table.JobCommit(m.table.At(there)), core.ErrDuplicate
	}
	if j.Unique == core.UniqueRefuse {
		if h := m.uniqueHolder(j); h != 0 {
			return h, m.table.JobCommit(m.table.At(h)), core.ErrNotUnique
		}
	}
	if n := m.table.QueueNumber(j.Queue); n != 0 && m.full(n, j.Priority) {
		return 0, 0, core.ErrFull
	}
	if j.Batch != 0 {
		if err := m.batches.Refusal(j.Batch); err != nil {
			return 0, m.batches.Commit(m.batches.Find(j.Batch)), err
		}
	}
	return there, 0, nil
}

// unstored returns the number of bytes that are admitted and not on disk yet.
func (m *Machine) unstored() int { return m.table.UnsealedBytes() + m.list.Bytes() }

// givesWay reports whether a job with the same id as j is done, together with its children, and is kept only for its
// outcome.
func (m *Machine) givesWay(h uint32, j *core.Job) bool {
	e := m.table.At(h)
	x := m.table.Optional(h)
	if e.State == core.Done && e.Has(table.KeptByQueue) {
		return x == nil || x.OpenChildren == 0 && !x.ClosesLater
	}
	return e.State == core.Done && e.Origin.ReusesIDs() && j.Origin == e.Origin && x != nil && x.RetainFor != 0 &&
		x.IsClosed
}

// admit assigns a number to a job that has none, and adds it to all indexes; its state is still Gone.
func (m *Machine) admit(j *core.Job) (uint32, *table.Entry) {
	if j.Unique == core.UniqueReplace {
		j.Unique = core.UniqueRefuse // UniqueReplace only concerns the submission
	}
	if j.Seq == 0 {
		j.Seq = m.table.NextSeq
		m.table.NextSeq++
	}
	m.table.Reserve()
	n, q := m.enterQueue(j.Queue, j.Origin, j.Ephemeral)
	j.Queue = q.Name // share one copy of the name
	if j.Type == "" || j.Type == q.Name {
		j.Type = q.Name
	}
	h := m.table.Add(j, n)
	e := m.table.At(h)
	if !e.Has(table.ScheduledOrder) {
		e.ReadyAt = max(e.ReadyAt, m.table.Now) // positioned by arrival, even if the client gives an older time
	}
	m.table.AddPayload(h, j)
	m.limits.JoinLaneOf(h, e, j)
	return h, e
}

// enterQueue finds or creates the queue of a new job, and sets the queue's lifetime.
func (m *Machine) enterQueue(name string, origin core.Protocol, ephemeral bool) (uint32, *jobQueue) {
	n, q := m.queueNamed(name)
	m.table.Timers.Remove(&q.idleTimer)
	m.extendLifetime(q, lifetimeOf(origin))
	if origin.QueueLifetime() == core.QueueForGood && !ephemeral {
		m.retainQueue(q)
	}
	return n, q
}

// place makes a new job blocked, scheduled or ready, depending on its links and its time.
func (m *Machine) place(h uint32, e *table.Entry) {
	if e.Has(table.HasOptional) {
		m.batches.Join(h)
		if j := m.table.Payload(h); (j.Parent != 0 || len(j.After) > 0) && m.links.Attach(h, j) {
			m.move(e, core.Blocked)
			m.table.Enlist(h, e)
			e.Set(table.Changed)
			return
		}
	}
	m.schedule(h, e)
}

// schedule makes a job ready now, or when it is due.
func (m *Machine) schedule(h uint32, e *table.Entry) {
	if e.ReadyAt > m.table.Now {
		m.move(e, core.Scheduled)
		m.table.Enlist(h, e)
		m.queues[e.Queue].Scheduled.Push(h, m.table.Before)
		e.StateTimer = m.table.Timers.Add(e.ReadyAt, timer.Owner{Kind: table.TimerState, Handle: h})
		return
	}
	m.makeReady(h, e)
}

// makeReady puts a job into its queue and hands it to a waiting worker, if any. It clears the progress of a previous
// worker; a failure stays until the next one.
func (m *Machine) makeReady(h uint32, e *table.Entry) {
	if e.State == core.Leased {
		e.LeasedAt = m.table.Now
		m.table.ForgetProgress(h, e)
	} else if !e.Has(table.ScheduledOrder | table.SeqOrder) {
		e.ReadyAt = max(e.ReadyAt, m.table.FirstPlace)
	}
	m.table.LastPlace = max(m.table.LastPlace, e.Place())
	if e.Has(table.HasOptional) {
		m.limitStart(h)
	}
	m.move(e, core.Ready)
	q := m.queues[e.Queue]
	m.table.Show(e.Queue)
	m.limits.PushReady(&q.Queue, h)
	m.record(h, e, core.EventReady, "")
	m.offer(e.Queue)
}

// A submission whose unique key belongs to another job joins that job, changes it, or is refused.

// replaceable decides about a submission whose key belongs to a job. If the job waits, the admission has replaces
// set.
func (m *Machine) replaceable(h uint32) (a admission) {
	e := m.table.At(h)
	a.there, a.commit, a.err = h, m.table.JobCommit(e), core.ErrNotUnique
	if e.State != core.Leased && !m.list.Settles(e.Seq) {
		a.replaces = h
	}
	return a
}

// replace changes a waiting job to the values of a submission. The job keeps its identity, and is due at the latest
// when the submission says.
func (m *Machine) replace(c *client, op *core.Submit, h uint32) {
	e, set := m.table.At(h), m.replacement(h, op)
	old, wanted, err := m.wholeJob(c, h, m.updateRefusal(e, &set))
	if wanted || m.stopsHere(c, op.Tag, e, err) {
		return
	}
	if e.Has(table.Ephemeral) {
		m.makeDurable(h, e)
		old = m.table.Payload(h)
	}
	m.raiseEpoch(e)
	r := core.Reply{Kind: core.Submitted, Tag: op.Tag, Seq: e.Seq, Existing: true}
	if !e.Unstored() || len(op.Meta) > 0 {
		r.Commit = m.table.Promise()
	}
	m.table.WriteMeta(op.Meta)
	m.reply(c, r)
	m.setFields(h, e, old, &set)
	m.touchPayload(h, e)
	m.record(h, e, core.EventChanged, set.String())
	if op.Watch != core.WatchNone {
		m.watch(c, h, op.Watch, op.Tag, op.Deadline)
	}
}

// replacement returns the values that a job takes from a submission.
func (m *Machine) replacement(h uint32, op *core.Submit) core.JobChange {
	j := op.Job
	at := max(op.Due(m.table.At(h).CreatedAt, m.table.Now), m.table.Now)
	tags := j.Tags
	if tags == nil {
		tags = []string{}
	}
	return core.JobChange{
		Body: &core.Body{Bytes: j.Body, Format: j.Format}, Attributes: &j.Attributes, Tags: &tags,
		Priority: &j.Priority, ReadyAt: &at,
	}
}

// coalesce replies with the job that a submission joins.
func (m *Machine) coalesce(c *client, op *core.Submit, h uint32) {
	j, e := op.Job, m.table.At(h)
	r := core.Reply{Kind: core.Submitted, Tag: op.Tag, Seq: e.Seq, Existing: true}
	if !j.Ephemeral {
		m.makeDurable(h, e)
	}
	if r.Commit = m.table.JobCommit(e); len(op.Meta) > 0 {
		m.table.WriteMeta(op.Meta)
		r.Commit = m.table.Promise()
	}
	m.reply(c, r)
	if op.Watch != core.WatchNone {
		m.watch(c, h, op.Watch, op.Tag, op.Deadline)
	}
}

// holder returns the job that holds a key in a queue, or zero; it frees an expired key.
func (m *Machine) holder(n uint32, key string) uint32 { return m.holderOf(n, table.DigestOf(key)) }

func (m *Machine) holderOf(n uint32, key table.Digest) uint32 {
	h := m.table.FindHolder(n, key)
	if h == 0 {
		return 0
	}
	if x := m.table.Optional(h); x != nil && x.UniqueUntil != 0 && x.UniqueUntil <= m.table.Now {
		m.unlock(h)
		return 0
	}
	return h
}

// unlock frees the unique key of a job before its end.
func (m *Machine) unlock(h uint32) {
	e := m.table.At(h)
	if x := m.table.Optional(h); x != nil && x.UniqueStart {
		x.StartKey = e.Unique
	}
	m.table.FreeUnique(h, e)
	e.Set(table.Unlocked | table.Changed)
	m.table.Touch(h, e)
}

// coalesceWithEnded replies to a submission that joins an ended job.
func (m *Machine) coalesceWithEnded(c *client, op *core.Submit, w *table.Window) {
	r := core.Reply{
		Kind: core.Submitted, Tag: op.Tag, Seq: w.Seq, Existing: true, Commit: m.table.WindowPending(w),
		Job: &core.Job{Seq: w.Seq, ID: w.ID, Queue: op.Job.Queue, CreatedAt: w.CreatedAt},
	}
	if len(op.Meta) > 0 {
		m.table.WriteMeta(op.Meta)
		r.Commit = m.table.Promise()
	}
	m.reply(c, r)
}
