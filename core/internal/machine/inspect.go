package machine

import (
	"slices"
	"time"

	"broker/core"
	"broker/core/internal/queue"
)

func (m *Machine) inspect(c *client, op *core.Inspect) {
	var h uint32
	if op.ByUnique {
		n := uint32(0)
		if op.Queue != "" {
			if n = m.names[op.Queue]; n == 0 {
				m.failed(c, op.Tag, core.ErrNotFound)
				return
			}
		}
		h = m.findUnique(n, op.UniqueKey)
	} else {
		h = m.find(op.Ref)
	}
	if h == 0 {
		m.failed(c, op.Tag, core.ErrNotFound)
		return
	}
	info := m.jobInfo(h, op.Brief)
	r := core.Reply{Kind: core.Inspected, Tag: op.Tag, Seq: info.Seq, Info: &info, Job: info.Job, Cold: !op.Brief}
	if m.jobs.at(h).has(dirty) {
		r.Commit = m.promise()
	}
	m.reply(c, r)
}

// jobInfo is what the machine knows of a job; what only the store has is added outside.
func (m *Machine) jobInfo(h uint32, brief bool) core.JobInfo {
	e := m.jobs.at(h)
	watchers, _ := m.watcherCount(e)
	i := core.JobInfo{
		Seq: e.seq, Queue: m.queues[e.queue].name, Type: m.typeOf(e), State: e.state, Reason: m.waitReason(h, e), Priority: e.priority, Origin: e.origin,
		CreatedAt: e.createdAt, ReadyAt: e.readyAt, ExpiresAt: e.expiresAt, Attempts: e.attempts, Fails: e.fails,
		Requeued: e.has(requeued) && e.state.Unfinished() && e.state != core.Leased, Watchers: int(watchers), ChangedAt: min(e.changedAt(), m.now),
		Broken: e.has(broken) && e.state == core.Blocked, Ephemeral: e.has(ephemeral),
		Epoch: e.epoch, BodyBytes: int(e.bodyBytes), DoneFailed: e.has(doneFailed),
	}
	if x := m.optionalState(h); x != nil {
		i.Waiting, i.Children = slices.Clone(x.waiting), x.openChildren
		i.Dependents = m.blockedAmong(x.successors) + m.blockedAmong(x.children)
	}
	if e.state == core.Leased {
		i.LeasedAt = e.leasedAt
		i.LeaseUntil = m.timers.At(e.stateTimer)
		if e.holderKind == core.HeldByWorker {
			i.Worker = m.workers.names[e.holder]
		}
	}
	if e.has(hasTransient) {
		n := m.transients[h]
		i.Progress, i.Failure, i.Outcome = n.progress, n.failure, n.outcome
		if i.Outcome != nil {
			i.Failure = i.Outcome.Failure // the last one; the note has the one before
		}
	}
	if !brief {
		i.Job = m.jobs.payload(h)
	}
	return i
}

// blockedAmong counts the jobs of a list that still wait; see unlink for the others.
func (m *Machine) blockedAmong(seqs []uint64) (n int) {
	for _, seq := range seqs {
		if h := m.bySeq.get(seq); h != 0 && m.jobs.at(h).state == core.Blocked {
			n++
		}
	}
	return n
}

// waitReason is why nobody works on a job.
func (m *Machine) waitReason(h uint32, e *entry) core.WaitReason {
	q := m.queues[e.queue]
	switch e.state {
	case core.Ready:
		switch {
		case m.draining:
			return core.WaitDraining
		case q.paused:
			return core.WaitPaused
		case q.limits.Leased > 0 && q.slots >= q.limits.Leased:
			return core.WaitLimit
		}
		return core.WaitWorker
	case core.Scheduled, core.Retrying:
		return core.WaitTime
	case core.Blocked:
		x := m.optionalState(h)
		switch {
		case e.has(broken):
			return core.WaitBroken
		case x != nil && len(x.waiting) > 0:
			return core.WaitJobs
		}
		return core.WaitBatch
	case core.Gone, core.Leased, core.Done, core.Dead:
	}
	return core.WaitNone
}

// maxPage is how many jobs one ListJobs returns at most; maxLook how many it looks at.
const (
	maxPage = 1000
	maxLook = 20_000
)

func (m *Machine) listJobs(c *client, op *core.ListJobs) {
	limit := op.Limit
	if limit <= 0 {
		limit = 100
	}
	limit = min(limit, maxPage)
	var only uint32
	if op.Queue != "" {
		if only = m.names[op.Queue]; only == 0 {
			m.failed(c, op.Tag, core.ErrNoQueue)
			return
		}
	}
	r := core.Reply{Kind: core.Listed, Tag: op.Tag, Cold: !op.Brief}
	if only != 0 && (op.State == core.Ready || op.State == core.Scheduled) {
		list := &m.queues[only].ready
		if op.State == core.Scheduled {
			list = &m.queues[only].scheduled
		}
		r.Jobs = m.listed(list, op, limit)
	} else {
		r.Jobs, r.Cursor = m.walked(op, only, limit)
	}
	m.reply(c, r)
}

func (m *Machine) listed(list *queue.List, op *core.ListJobs, limit int) []core.JobInfo {
	handles := list.Slice(op.Offset, limit, nil)
	jobs := make([]core.JobInfo, len(handles))
	for i, h := range handles {
		jobs[i] = m.jobInfo(h, op.Brief)
	}
	return jobs
}

// walked looks at the jobs behind the cursor in the order of their handles.
func (m *Machine) walked(op *core.ListJobs, only uint32, limit int) (jobs []core.JobInfo, next uint64) {
	looked := 0
	for h := uint32(op.Cursor) + 1; h <= m.jobs.next; h++ {
		if len(jobs) == limit || looked == maxLook {
			return jobs, uint64(h - 1)
		}
		looked++
		e := m.jobs.at(h)
		if e.seq == 0 || only != 0 && e.queue != only || op.State != core.Gone && e.state != op.State {
			continue
		}
		if jobs == nil {
			jobs = make([]core.JobInfo, 0, min(limit, int(m.jobs.next-h)+1))
		}
		jobs = append(jobs, m.jobInfo(h, op.Brief))
	}
	return jobs, 0
}

// leaseSpan is the length of the present lease.
func (e *entry) leaseSpan() time.Duration { return time.Duration(e.granted) * time.Millisecond }

// changedAt is when a job came into its state, as far as is known.
func (e *entry) changedAt() core.Instant {
	switch e.state {
	case core.Leased:
		return e.leasedAt
	case core.Retrying:
		return max(e.leasedAt, e.failedAt) // older records have the first failure only
	case core.Scheduled, core.Blocked: // readyAt is yet to come
		return e.createdAt
	case core.Ready:
		return max(e.readyAt, e.leasedAt)
	case core.Gone, core.Done, core.Dead:
	}
	return e.readyAt
}
