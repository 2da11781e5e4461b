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
				m.refused(c, op.Tag, nil, core.ErrNotFound)
				return
			}
		}
		h = m.findUnique(n, op.UniqueKey)
	} else {
		h = m.find(op.Ref)
	}
	if h == 0 {
		m.refused(c, op.Tag, nil, core.ErrNotFound)
		return
	}
	info := m.jobInfo(h, op.Brief)
	if info.State.Unfinished() {
		info.Behind, info.Key = m.behind(h, m.jobs.at(h))
	}
	if op.Timeline {
		info.Timeline = m.timelineOf(h)
	}
	r := core.Reply{
		Kind: core.Inspected, Tag: op.Tag, Seq: info.Seq, Info: &info, Job: info.Job, Commit: m.jobCommit(m.jobs.at(h)),
	}
	switch {
	case !op.Brief:
		m.replyWith(c, r, Work{Needs: InspectedJob})
	case info.Timeline != nil:
		m.replyWith(c, r, Work{Needs: InspectedBrief})
	default:
		m.reply(c, r)
	}
}

// jobInfo is what the machine knows about a job; the caller adds what only the store has.
func (m *Machine) jobInfo(h uint32, brief bool) core.JobInfo {
	e := m.jobs.at(h)
	watchers, _ := m.watcherCount(e)
	i := core.JobInfo{
		Seq: e.seq, Cursor: uint64(h), Queue: m.queues[e.queue].name, Type: m.typeOf(e), State: e.state, Reason: m.waitReason(h, e), Priority: e.priority(), Origin: e.origin,
		CreatedAt: e.createdAt, ReadyAt: e.readyAt, ExpiresAt: e.expiresAt, Attempts: e.attempts, Fails: e.fails,
		Requeued: e.has(requeued) && e.state.Unfinished() && e.state != core.Leased, Watchers: int(watchers), ChangedAt: min(m.changedAt(h, e), m.now),
		Broken: e.has(broken) && e.state == core.Blocked, Ephemeral: e.has(ephemeral), Unstored: e.words&memoryOnly != 0,
		Epoch: e.epoch, LostLeases: int(e.lostLeases), Rerun: e.has(rerun), BodyBytes: int(e.bodyBytes), DoneFailed: e.has(doneFailed),
	}
	if e.state == core.Ready {
		i.ReadyAt = min(i.ReadyAt, m.now) // its position may be later; see Machine.firstPlace
	}
	i.Tags, i.FailureGroup = m.tagsOf(h), m.groupName(e)
	if e.has(traced) {
		i.Trace = m.traces[h]
	}
	if x := m.optionalState(h); x != nil {
		i.Waiting, i.Children = slices.Clone(x.waiting), x.openChildren
		i.Dependents = len(m.dependents(h))
	}
	if e.has(newBody) {
		i.BodyBytes = len(m.jobs.payload(h).Body)
	}
	if e.state == core.Leased {
		i.LeasedAt = e.leasedAt
		i.LeaseUntil = m.timers.At(e.stateTimer)
		i.CancelRequestedAt = m.stopAt(e)
		if e.holderKind == core.HeldByWorker {
			i.Worker = m.workers.names[e.holder]
		}
		if e.has(held) {
			i.HeldOver, i.HeldFrom = e.holderFrom, m.holderAddress(nil, e)
		}
	}
	if e.has(hasTransient) {
		n := m.transients[h]
		i.Progress, i.Failure, i.Outcome = n.progress, n.failure, n.outcome
		if i.Outcome != nil {
			i.Failure = i.Outcome.Failure // the last failure; transient has the one before
		}
	}
	if !brief {
		i.Job = m.jobs.payload(h)
	}
	i.Kept, i.Tally = e.has(keepsOutcome), m.tally(h, e)
	return i
}

// waitReason is why a job is not leased.
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
		case q.sorting:
			return core.WaitLimit
		case m.outOfTurn(h, e):
			return core.WaitOrder
		case q.lanes != nil && m.limited(q, m.optionals[h].lane.lane):
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

// maxPage is the maximum number of rows of a list.
const maxPage = 1000

func (m *Machine) listJobs(c *client, op *core.ListJobs) {
	limit := op.Limit
	if limit <= 0 {
		limit = 100
	}
	limit = min(limit, maxPage)
	var only uint32
	if op.Queue != "" {
		if only = m.names[op.Queue]; only == 0 {
			m.noQueue(c, op.Tag)
			return
		}
	}
	r := core.Reply{Kind: core.Listed, Tag: op.Tag, Commit: m.jobGone()}
	if only != 0 && (op.State == core.Ready || op.State == core.Scheduled) {
		list := &m.queues[only].ready
		if op.State == core.Scheduled {
			list = &m.queues[only].scheduled
		}
		m.listed(&r, list, op, limit)
	} else {
		m.walked(&r, op, only, limit)
	}
	switch {
	case op.Brief:
		m.reply(c, r)
	case op.NoBody:
		m.replyWith(c, r, Work{Needs: ListedHeads})
	default:
		m.replyWith(c, r, Work{Needs: ListedJobs})
	}
}

// listed adds a part of a queue's list to a reply.
func (m *Machine) listed(r *core.Reply, list *queue.List, op *core.ListJobs, limit int) {
	handles := list.Slice(op.Offset, limit, nil)
	r.Jobs = make([]core.JobInfo, 0, len(handles))
	for _, h := range handles {
		m.appendInfo(r, h, op.Brief)
	}
}

// appendInfo adds a job to a list, which then depends on the job's last change, too.
func (m *Machine) appendInfo(r *core.Reply, h uint32, brief bool) {
	r.Jobs = append(r.Jobs, m.jobInfo(h, brief))
	r.Commit = max(r.Commit, m.jobCommit(m.jobs.at(h)))
}

// walked adds the jobs after the cursor, in the order of their handles, to a reply.
func (m *Machine) walked(r *core.Reply, op *core.ListJobs, only uint32, limit int) {
	looked := 0
	for h := uint32(op.Cursor) + 1; h <= m.jobs.next; h++ {
		if len(r.Jobs) == limit || looked == m.effort.look {
			r.Cursor = uint64(h - 1)
			return
		}
		looked++
		e := m.jobs.at(h)
		if e.seq == 0 || only != 0 && e.queue != only || op.State != core.Gone && e.state != op.State {
			continue
		}
		if r.Jobs == nil {
			r.Jobs = make([]core.JobInfo, 0, min(limit, int(m.jobs.next-h)+1))
		}
		m.appendInfo(r, h, op.Brief)
	}
}

// leaseSpan is the duration of the present lease, or of its last extension.
func (e *entry) leaseSpan() time.Duration { return time.Duration(e.granted) * time.Millisecond }

// changedAt is when a job entered its state, if known.
func (m *Machine) changedAt(h uint32, e *entry) core.Instant {
	switch e.state {
	case core.Leased:
		return e.leasedAt
	case core.Retrying:
		return max(e.leasedAt, m.firstFail(h, e)) // older records have the first failure only
	case core.Scheduled, core.Blocked: // readyAt is in the future
		return e.createdAt
	case core.Ready:
		return max(e.readyAt, e.leasedAt)
	case core.Gone, core.Done, core.Dead:
	}
	return e.readyAt
}
