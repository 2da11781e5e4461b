package machine

import (
	"slices"

	"broker/core"
	"broker/core/internal/queue"
	"broker/core/internal/table"
)

func (m *Machine) inspect(c *client, op *core.Inspect) {
	var h uint32
	if op.ByUnique {
		n := uint32(0)
		if op.Queue != "" {
			if n = m.table.QueueNumber(op.Queue); n == 0 {
				m.refused(c, op.Tag, nil, core.ErrNotFound)
				return
			}
		}
		h = m.table.FindUnique(n, op.UniqueKey)
	} else {
		h = m.table.Find(op.Ref)
	}
	if h == 0 {
		m.refused(c, op.Tag, nil, core.ErrNotFound)
		return
	}
	info := m.inspection(h, op.Brief)
	if op.Timeline {
		info.Timeline = m.table.TimelineOf(h)
	}
	if op.Dependents {
		info.Dependents = m.links.CountDependents(h)
	}
	r := core.Reply{
		Kind: core.Inspected, Tag: op.Tag, Seq: info.Seq, Info: &info, Job: info.Job,
		Commit: m.table.JobCommit(m.table.At(h)),
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

// inspection is jobInfo with what is only told about single jobs: their place among others.
func (m *Machine) inspection(h uint32, brief bool) core.JobInfo {
	info := m.jobInfo(h, brief)
	if info.State.Unfinished() {
		info.Behind, info.Key = m.limits.Behind(h, m.table.At(h))
	}
	info.Wait = m.waitOf(h, info.Reason)
	return info
}

// jobInfo returns what the machine knows about a job; the caller adds data that is only in the store.
func (m *Machine) jobInfo(h uint32, brief bool) core.JobInfo {
	e := m.table.At(h)
	watchers, _ := m.watchers.Count(e)
	i := core.JobInfo{
		Seq: e.Seq, Cursor: uint64(h), Queue: m.queues[e.Queue].Name, Type: m.table.TypeOf(e), State: e.State,
		Reason: m.waitReason(h, e), Priority: e.Priority(), Origin: e.Origin,
		CreatedAt: e.CreatedAt, ReadyAt: e.ReadyAt, ExpiresAt: e.ExpiresAt, Attempts: e.Attempts, Fails: e.Fails,
		Requeued: e.Has(table.Requeued) && e.State.Unfinished() && e.State != core.Leased, Watchers: int(watchers),
		ChangedAt: min(m.table.ChangedAt(h, e), m.table.Now),
		Broken:    e.Has(table.Broken) && e.State == core.Blocked, Ephemeral: e.Has(table.Ephemeral),
		Unstored: e.Extra&table.MemoryOnly != 0,
		Epoch:    e.Epoch, LostLeases: int(e.LostLeases), Rerun: e.Has(table.Rerun), BodyBytes: int(e.BodyBytes),
		DoneFailed: e.Has(table.DoneFailed),
	}
	if e.State == core.Ready {
		i.ReadyAt = min(i.ReadyAt, m.table.Now) // its position may be later; see Table.FirstPlace
	}
	i.Tags, i.FailureGroup, i.Version = m.table.TagsOf(h), m.table.GroupName(e), m.table.VersionOf(h, e)
	if e.Has(table.Traced) {
		i.Trace = m.table.TraceOf(h)
	}
	if x := m.table.Optional(h); x != nil {
		i.Waiting, i.Children = slices.Clone(x.Waiting), x.OpenChildren
		i.MovedFrom, i.MovedAfter = x.MovedFrom, x.MovedAfter
	}
	if e.Has(table.NewBody) {
		i.BodyBytes = len(m.table.Payload(h).Body)
	}
	if e.State == core.Leased {
		i.LeasedAt = e.LeasedAt
		i.LeaseUntil = m.table.Timers.At(e.StateTimer)
		i.CancelRequestedAt = m.table.StopAt(e)
		if e.HolderKind == core.HeldByWorker {
			i.Worker = m.table.Workers.NameOf(e.Holder)
		}
		if e.Has(table.Held) {
			i.HeldOver, i.HeldFrom = e.HolderFrom, m.holderAddress(nil, e)
		}
	}
	if e.Has(table.HasTransient) {
		n := m.table.Transient(h)
		i.Failure, i.Outcome = n.Failure, n.Outcome
		if n.Progress != nil {
			i.Progress = *n.Progress
		}
		if i.Outcome != nil {
			i.Failure = i.Outcome.Failure // the last failure; transient has the failure before
		}
	}
	if !brief {
		i.Job = m.table.Payload(h)
	}
	if i.Job != nil && i.Failure == nil && e.State != core.Done {
		i.Failure = i.Job.FailureAfter(e.Fails)
	}
	i.Kept, i.Tally = e.Has(table.KeepsOutcome), m.table.Tally(h, e)
	return i
}

// waitReason returns why a job is not leased.
func (m *Machine) waitReason(h uint32, e *table.Entry) core.WaitReason {
	q := m.queues[e.Queue]
	switch e.State {
	case core.Ready:
		switch {
		case m.draining:
			return core.WaitDraining
		case q.paused:
			return core.WaitPaused
		case q.Sorting:
			return core.WaitLimit
		case m.limits.OutOfTurn(h, e):
			return core.WaitOrder
		case m.limits.KeepsBack(&q.Queue, h):
			return core.WaitLimit
		}
		return core.WaitWorker
	case core.Scheduled, core.Retrying:
		return core.WaitTime
	case core.Blocked:
		x := m.table.Optional(h)
		switch {
		case e.Has(table.Broken):
			return core.WaitBroken
		case x != nil && len(x.Waiting) > 0:
			return core.WaitJobs
		}
		return core.WaitBatch
	case core.Gone, core.Leased, core.Done, core.Dead:
	}
	return core.WaitNone
}

// waitOf returns what keeps a ready job back.
func (m *Machine) waitOf(h uint32, reason core.WaitReason) *core.Wait {
	e := m.table.At(h)
	switch reason { //nolint:exhaustive // the others say all
	case core.WaitLimit:
		if q := m.queues[e.Queue]; !q.Sorting {
			return &core.Wait{Limit: m.limits.Reached(&q.Queue, h)}
		}
		return &core.Wait{}
	case core.WaitOrder:
		if first := m.limits.Holder(h, e); first != 0 {
			return &core.Wait{Holder: m.table.At(first).Seq, HolderState: m.table.At(first).State}
		}
	}
	return nil
}

// maxPage is the maximum number of rows of a list.
const maxPage = 1000

func (m *Machine) listJobs(c *client, op *core.ListJobs) {
	limit := pageLimit(op.Limit)
	var only uint32
	if op.Queue != "" {
		if only = m.table.QueueNumber(op.Queue); only == 0 {
			m.noQueue(c, op.Tag)
			return
		}
	}
	r := core.Reply{Kind: core.Listed, Tag: op.Tag, Commit: m.table.JobGone()}
	if only != 0 && (op.State == core.Ready || op.State == core.Scheduled) {
		list := &m.queues[only].Ready
		if op.State == core.Scheduled {
			list = &m.queues[only].Scheduled
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

// listed adds a range of a queue's list to a reply.
func (m *Machine) listed(r *core.Reply, list *queue.List, op *core.ListJobs, limit int) {
	handles := list.Slice(op.Offset, limit, nil)
	r.Jobs = make([]core.JobInfo, 0, len(handles))
	for _, h := range handles {
		m.appendInfo(r, h, op.Brief)
	}
}

// appendInfo adds a job to a list; the reply then also depends on the job's last change.
func (m *Machine) appendInfo(r *core.Reply, h uint32, brief bool) {
	r.Jobs = append(r.Jobs, m.jobInfo(h, brief))
	r.Commit = max(r.Commit, m.table.JobCommit(m.table.At(h)))
}

// walked adds the jobs after the cursor, in the order of their handles, to a reply.
func (m *Machine) walked(r *core.Reply, op *core.ListJobs, only uint32, limit int) {
	looked := 0
	for h := uint32(op.Cursor) + 1; h <= m.table.LastHandle; h++ {
		if len(r.Jobs) == limit || looked == m.effort.Look {
			r.Cursor = uint64(h - 1)
			return
		}
		looked++
		m.table.Touched++
		e := m.table.At(h)
		if e.Seq == 0 || only != 0 && e.Queue != only || op.State != core.Gone && e.State != op.State {
			continue
		}
		if r.Jobs == nil {
			r.Jobs = make([]core.JobInfo, 0, min(limit, int(m.table.LastHandle-h)+1))
		}
		m.appendInfo(r, h, op.Brief)
	}
}
