package machine

import (
	"fmt"
	"strings"
	"time"

	"broker/core"
	"broker/core/internal/batch"
	"broker/core/internal/limit"
	"broker/core/internal/link"
	"broker/core/internal/policy"
	"broker/core/internal/record"
	"broker/core/internal/schedule"
	"broker/core/internal/table"
	"broker/core/internal/telemetry"
	"broker/core/internal/timer"
)

// Recovery: RestoreMeta for the policies of queues (IsRules), Restore for every job in the order of their numbers,
// Begin, RestoreMeta for all other entries, then Restored. Recovery makes no decisions: deadlines that have passed in
// the meantime fire at the first Tick. Between Restore and Begin, the machine can follow a store that continues to
// change; see Follow.

// SetOptions replaces the options of New, before the last call of Restore.
func (m *Machine) SetOptions(o Options) {
	m.opts = o.withDefaults()
	m.table.SetOptions(o.table())
}

// Begin sets the number of the last commit and starts the measurements.
func (m *Machine) Begin(last core.Commit) {
	m.table.Begin(last)
	m.stats.StartedAt, m.table.Now = m.opts.StartedAt, max(m.table.Now, m.opts.StartedAt)
	m.meters = telemetry.NewMeters(metersHost{m}, m.table.Now, m.opts.MaxDetailed)
	for _, q := range m.queues[1:] {
		if q != nil {
			m.meters.Add(&q.metered)
		}
	}
	m.lastHolder = lastHolder{}
}

// restoring is data that a machine needs only until Restored.
type restoring struct {
	ended  map[uint64]endedLease // by job: leases that have ended with the previous process; see Settle
	places places
}

// endedLease is a stored lease that a connection held.
type endedLease struct {
	stops     bool // the worker was asked to stop
	stopAfter uint32
	rerun     bool
}

func newRestoring() restoring { return restoring{ended: map[uint64]endedLease{}} }

// RestoreMeta restores a meta entry.
func (m *Machine) RestoreMeta(name string, value []byte) error {
	var err error
	switch {
	case name == table.SeqMeta:
		err = m.table.RestoreNumbers(value)
	case name == totalsMeta:
		var t telemetry.Totals
		err = t.Decode(value)
		m.stats.Totals, m.stats.ByOrigin, m.stats.ByWorker = t.Totals, t.ByOrigin, t.ByWorker
	case strings.HasPrefix(name, telemetry.SeriesPrefix):
		err = m.meters.Restore(m.table.Now, name, value)
	case strings.HasPrefix(name, telemetry.HistoryPrefix):
		err = m.history.Restore(name, value)
	case strings.HasPrefix(name, queueMetaPrefix):
		err = m.restoreQueue(name, value)
	case strings.HasPrefix(name, limit.RulesPrefix), strings.HasPrefix(name, limit.SharedPrefix):
		err = m.limits.Restore(name, value)
	case strings.HasPrefix(name, policy.Prefix):
		err = m.policies.Restore(name, value)
	case strings.HasPrefix(name, limit.RatePrefix):
		err = m.limits.RestoreRate(name, value)
	case strings.HasPrefix(name, schedule.Prefix):
		err = m.schedules.Restore(name, value)
	case strings.HasPrefix(name, schedule.PositionPrefix):
		err = m.schedules.RestorePosition(name, value)
	case strings.HasPrefix(name, table.WindowPrefix):
		err = m.table.RestoreWindow(value)
	case strings.HasPrefix(name, link.Prefix):
		err = m.links.RestoreRest(name, value)
	case strings.HasPrefix(name, batch.Prefix):
		err = m.batches.Restore(name, value)
	default:
		m.table.RestoreEntry(name, value)
	}
	if err != nil {
		return fmt.Errorf("meta entry %s: %w", name, err)
	}
	return nil
}

// Restore restores a job. The caller may reuse the record.
func (m *Machine) Restore(now core.Instant, r *record.Record) {
	m.setNow(now)
	j := r.Job
	if r.Status != nil && r.Status.Moved != nil && r.Status.Moved.Queue != "" {
		j.InQueue(r.Status.Moved.Queue)
	}
	n, q := m.queueNamed(j.Queue)
	switch lifetimeOf(j.Origin) {
	case whileWaitedOn, overRestarts, untilDropped:
	case afterUse:
		q.used++
	case untilRestart:
		q.lasting++
	}
	m.table.NextSeq = max(m.table.NextSeq, j.Seq+1)
	h := m.table.Add(j, n)
	e := m.table.At(h)
	if r.Status == nil || r.Status.State != core.Done {
		m.limits.JoinLaneOf(h, e, j)
	}
	if j.Schedule != "" {
		m.schedules.RestoredJob(j.Seq, j.Schedule)
	}
	e.Set(table.Stored | table.PayloadStored | table.NonResident | table.Untouched)
	e.Stored, e.BodyBytes = r.Stored, uint32(r.BodyBytes)
	// otherwise the failure was cleared
	if r.Stored&record.HasFailure != 0 && (r.Status == nil || r.Status.Fails > j.PriorFails) {
		e.Set(table.FailureStored)
	}
	if r.Stored&record.HasOutcome != 0 {
		e.Set(table.OutcomeStored)
	}
	switch {
	case r.Status != nil:
		m.restoreStatus(h, e, r.Status)
	case j.ReadyAt <= j.CreatedAt && (!j.SeqOrder || j.ReadyAt <= m.table.Now):
		if j.SeqOrder {
			e.ReadyAt = j.CreatedAt
		}
		if !e.Has(table.ScheduledOrder) {
			m.arrive(e)
		}
		m.makeReady(h, e) // it was ready on arrival, even if that time is now in the future
	default:
		m.schedule(h, e)
	}
}

func (m *Machine) restoreStatus(h uint32, e *table.Entry, s *record.Status) {
	e.Set(table.Changed)
	if s.Moved != nil && s.Moved.Queue != "" {
		e.Extra |= table.Rehomed
	}
	set := func(f table.Flags, is bool) {
		if is {
			e.Set(f)
		}
	}
	set(table.Requeued, s.Requeued)
	set(table.Broken, s.Broken)
	set(table.DoneFailed, s.DoneFailed)
	if s.KeptByQueue {
		m.restoreKept(h, e, s)
	}
	set(table.Unlocked, s.Unlocked)
	if s.Unlocked {
		if x := m.table.Optional(h); x != nil && x.UniqueStart {
			x.StartKey = e.Unique
		}
		m.table.FreeUnique(h, e)
	}
	if s.Placed {
		e.Clear(table.ScheduledOrder)
	}
	e.Attempts, e.ReadyAt = s.Attempts, s.ReadyAt
	m.restoreFails(h, e, s)
	if s.Tally != nil {
		m.table.SetTally(h, *s.Tally)
	}
	e.Epoch, e.LostLeases, e.Entries = s.Attempts+s.EpochAhead, s.LostLeases, s.Entries
	if s.State == core.Dead && e.ExpiresAt != 0 {
		m.table.EnsureOptional(h).TTL = e.ExpiresAt
	}
	m.restoreMove(h, e, s)
	if s.ExpiresAt != e.ExpiresAt {
		m.table.ExpireAt(h, e, s.ExpiresAt)
	}
	if len(s.Waiting) > 0 || s.Closed || s.ChildrenBroken || s.Tried || s.LogChunks > 0 {
		x := m.table.EnsureOptional(h)
		x.Waiting = append(x.Waiting, s.Waiting...)
		x.IsClosed, x.ChildrenBroken, x.Tried, x.LogChunks = s.Closed, s.ChildrenBroken, s.Tried, s.LogChunks
		if len(s.Unstored) > 0 {
			m.links.RestoreUnstored(e.Seq, s.Unstored)
		}
	}
	if s.Progress != nil {
		p := *s.Progress
		m.table.EnsureTransient(h).Progress = &p
	}
	switch s.State {
	case core.Leased:
		m.restoreLease(h, e, s)
	case core.Retrying:
		e.LeasedAt = s.LeasedAt
		m.move(e, core.Retrying)
		m.table.JoinGroupNamed(h, e, s.Group)
		e.StateTimer = m.table.Timers.Add(e.ReadyAt, timer.Owner{Kind: table.TimerState, Handle: h})
		m.table.Enlist(h, e)
	case core.Scheduled:
		m.schedule(h, e)
	case core.Ready:
		m.makeReady(h, e)
	case core.Blocked, core.Done, core.Dead:
		if s.State == core.Done && s.ExpiresAt == 0 {
			e.Clear(table.KeepsOutcome) // it is kept only for its children
		}
		if s.State == core.Dead {
			m.limits.LeaveOrder(h, e)
		}
		m.move(e, s.State)
		if s.State == core.Dead {
			m.table.JoinGroupNamed(h, e, s.Group)
		}
		m.table.Enlist(h, e)
		if s.State != core.Blocked {
			m.table.FreeUnique(h, e)
		}
	case core.Gone:
		panic("machine: a job in the store is gone")
	}
}

// restoreFails restores the version of the last worker and the number of failures. If it differs from the job's, the
// failure that the job was submitted with is no longer the last one.
func (m *Machine) restoreFails(h uint32, e *table.Entry, s *record.Status) {
	m.table.SetVersion(h, s.Version)
	if s.Fails != e.Fails {
		m.table.ForgetPriorFailure(h)
		m.table.SetFirstFail(h, e, 0)
	}
	e.Fails = s.Fails
	m.table.SetFirstFail(h, e, s.FailedAt)
}

// restoreKept restores a finished job that its queue keeps.
func (m *Machine) restoreKept(h uint32, e *table.Entry, s *record.Status) {
	if asked := m.askedUntil(h, e, s.ReadyAt); asked > m.table.Now {
		m.noteAsked(h, e, asked)
		m.table.Optional(h).IsClosed = s.Closed || s.Children == 0 // its children are linked later
	}
	e.Set(table.KeptByQueue | table.KeepsOutcome)
}

// leaseEnd returns when a restored lease ends: when it was to end before the restart. It is not longer than a new
// lease, whatever happened to the clock. A lease that has ended in the meantime ends at the first Tick.
func (m *Machine) leaseEnd(e *table.Entry, s *record.Status) core.Instant {
	full, end := m.table.Now.Add(e.LeaseSpan()), s.LeaseUntil
	if end == 0 {
		end = s.LeasedAt.Add(e.LeaseSpan())
		if end <= m.table.Now && !m.stores(leaseEndFormat) {
			return full // perhaps it was extended: the format in force cannot tell
		}
	}
	return min(end, full)
}

// restoreLease continues a lease until its end. A lease that a connection held has ended with the connection and
// counts as an attempt.
func (m *Machine) restoreLease(h uint32, e *table.Entry, s *record.Status) {
	if s.Holder == core.HeldByConn {
		e.Set(table.Requeued)
		m.table.ForgetProgress(h, e)
		m.makeReady(h, e)
		// perhaps the job has no attempts left: its policies are not known yet
		m.restoring.ended[e.Seq] = endedLease{stops: s.StopAfter != 0, stopAfter: s.StopAfter, rerun: s.Rerun}
		return
	}
	m.move(e, core.Leased)
	e.Set(table.Held)
	if s.Rerun {
		e.Set(table.Rerun)
	}
	if s.StopAfter != 0 {
		m.table.SetStop(e, s.StopAfter)
	}
	e.HolderKind, e.HolderFrom, e.LeasedAt = s.Holder, s.HolderFrom, s.LeasedAt
	m.table.Enlist(h, e)
	if s.Holder == core.HeldByWorker {
		m.table.HoldNamed(h, e, s.Worker)
		m.leaseRestored(s.Worker, m.queues[e.Queue])
	}
	m.stats.LeasedBy[s.HolderFrom]++
	m.limits.TakeSlot(h, e, m.limits.SlotKey(e))
	e.Granted = table.Millis(s.LeaseFor)
	if e.Granted == 0 {
		e.Granted = table.Millis(m.opts.DefaultLease)
	}
	e.StateTimer = m.table.Timers.Add(m.leaseEnd(e, s), timer.Owner{Kind: table.TimerState, Handle: h})
}

// Restored links jobs and batches once all of them are restored.
func (m *Machine) Restored() {
	m.links.AtOnce(true)
	defer m.links.AtOnce(false)
	m.settlePlaces()
	m.restoredQueues()
	m.limits.RestoredShared()
	m.limits.RestoredRates()
	m.eachLinked(m.relink)
	m.eachLinked(m.links.RestoreWaiting)
	m.batches.Relink()
	m.eachLinked(func(h uint32, e *table.Entry, x *table.Optional) {
		if e.State == core.Done && x.OpenChildren == 0 {
			m.links.Closed(h, !x.ChildrenBroken && !e.Has(table.DoneFailed))
			if !e.Has(table.KeepsOutcome) {
				m.remove(h)
			}
		}
	})
	m.table.ReserveAnew()
	m.restoring.places = places{}
	if !m.opts.Resumes {
		m.settleLeases()
	}
	m.decideBroken()
	m.continueLinks()
	m.schedules.Restored()
	if m.table.LastPlace > m.table.Now { // the clock was set back before the restart
		m.table.FirstPlace = m.table.LastPlace
	}
	m.touched = m.touched[:0]
	m.links.Restored()
}

// eachLinked walks the jobs that may have links, in the order of their numbers. fn may remove jobs.
func (m *Machine) eachLinked(fn func(h uint32, e *table.Entry, x *table.Optional)) {
	for _, seq := range m.table.LinkedJobs() {
		if h := m.table.Handle(seq); h != 0 {
			fn(h, m.table.At(h), m.table.Optional(h))
		}
	}
}

// restoredQueues completes the queue data that comes from jobs.
func (m *Machine) restoredQueues() {
	for _, q := range m.queues[1:] {
		if q == nil {
			continue
		}
		if q.lasting > 0 {
			m.extendLifetime(q, untilRestart)
			q.lasting = 0
		}
		if q.used > 0 {
			m.extendLifetime(q, afterUse)
			q.used = 0
		}
		if q.Jobs() > 0 {
			m.meters.Mark(&q.metered)
		}
	}
}

// relink connects a job with its parent and its batch.
func (m *Machine) relink(_ uint32, e *table.Entry, x *table.Optional) {
	m.links.RestoreChild(x)
	m.batches.RestoreMember(e, x)
}

// A follower in a cluster keeps a machine that is up to date with its store, so that it can lead at once. First,
// Restore is called for each job; then Forget and Restore for each job that has changed. This is also the code of
// recovery: after Forget and Restore, a job is the same as in a machine that has just started. Everything that does not
// depend on single jobs waits for Begin and Restored.

// IsRules reports whether a metadata entry has the rules of a queue, which are restored before the queue's jobs.
func IsRules(name string) bool { return strings.HasPrefix(name, limit.RulesPrefix) }

// Forget removes a restored job from all indexes, as if it had not been restored.
func (m *Machine) Forget(seq uint64) {
	h := m.table.Handle(seq)
	if h == 0 {
		return
	}
	e := m.table.At(h)
	n, q := e.Queue, m.queues[e.Queue]
	m.restoring.places.forget(e)
	delete(m.restoring.ended, seq)
	m.schedules.ForgetRestored(seq)
	m.links.ForgetUnstored(seq)
	switch lifetimeOf(e.Origin) {
	case whileWaitedOn, overRestarts, untilDropped:
	case afterUse:
		q.used--
	case untilRestart:
		q.lasting--
	}
	m.detach(h, e)
	m.unindex(h, e)
	switch {
	case q.Jobs() > 0:
	case q.HasRules():
		m.table.Hide(n)
	default:
		m.forgetQueue(n)
	}
}

// ForgetRules forgets the rules and the jobs of a queue. It returns their numbers: they must be restored after the
// rules are.
func (m *Machine) ForgetRules(name string) (jobs []uint64) {
	queue := strings.TrimPrefix(name, limit.RulesPrefix)
	n := m.table.QueueNumber(queue)
	if n == 0 {
		return nil
	}
	if m.queues[n].Jobs() > 0 {
		m.table.EachJob(func(_ uint32, e *table.Entry) {
			if e.Queue == n {
				jobs = append(jobs, e.Seq)
			}
		})
	}
	for _, seq := range jobs {
		m.Forget(seq)
	}
	if m.queues[n] != nil { // it has rules
		m.limits.ForgetRules(n)
		m.forgetQueue(n)
	}
	return jobs
}

// Jobs returns the number of jobs.
func (m *Machine) Jobs() int { return m.table.Live }

// Leased lists the jobs whose leases continue, to be restored again by a start: with another clock they may end
// earlier.
func (m *Machine) Leased() []uint64 {
	seqs := make([]uint64, 0, m.table.ByState[core.Leased].Len())
	for _, h := range m.table.ByState[core.Leased].Slice(0, cap(seqs), nil) {
		seqs = append(seqs, m.table.At(h).Seq)
	}
	return seqs
}

// clockSlack is how far the clock may go back without counting as set back.
const clockSlack = 100 * time.Millisecond

// Follow advances the time of a machine that follows a store: due scheduled jobs become ready, as at a start. Other
// deadlines wait for Tick. It returns false if the clock was set back: the machine is then useless.
func (m *Machine) Follow(now core.Instant) bool {
	if now < m.table.Now.Add(-clockSlack) {
		return false
	}
	m.setNow(now)
	for due := &m.table.ByState[core.Scheduled]; due.Len() > 0; {
		h := due.Front()
		e := m.table.At(h)
		if e.ReadyAt > m.table.Now {
			break
		}
		m.detach(h, e)
		m.makeReady(h, e)
		e.Set(table.Untouched)
	}
	return true
}

// places determines whether the restored jobs have the same places as if all jobs had been restored in the order of
// their numbers.
type places struct {
	last      core.Instant // the latest place of a job that was ready on arrival
	seq       uint64       // the highest number of such a job
	raised    bool         // a job got a later place than its own because of another job
	forgotten bool         // such a job was forgotten
	disorder  bool         // the jobs were not restored in order
}

// arrive places a job that was ready on arrival behind such jobs with smaller numbers, regardless of the clock.
func (m *Machine) arrive(e *table.Entry) {
	e.Set(table.Arrived)
	p := &m.restoring.places
	p.disorder, p.seq = p.disorder || e.Seq < p.seq, max(p.seq, e.Seq)
	p.raised, p.last = p.raised || p.last > e.ReadyAt, max(p.last, e.ReadyAt)
	e.ReadyAt = p.last
}

func (p *places) forget(e *table.Entry) { p.forgotten = p.forgotten || e.Has(table.Arrived) }

// settlePlaces places the jobs that were ready on arrival again if forgotten jobs have affected their places.
func (m *Machine) settlePlaces() {
	if p := &m.restoring.places; p.disorder || p.raised && p.forgotten {
		last := core.Instant(0)
		walk := m.table.From(0, false)
		for h := walk.Next(); h != 0; h = walk.Next() {
			e := m.table.At(h)
			if !e.Has(table.Arrived) {
				continue
			}
			if last = max(last, e.CreatedAt); e.ReadyAt != last {
				q := m.queues[e.Queue]
				m.limits.RemoveReady(&q.Queue, h)
				e.ReadyAt = last
				m.limits.PushReady(&q.Queue, h)
			}
		}
	}
	if m.table.LastPlace <= m.table.Now {
		return
	}
	m.table.LastPlace = 0 // it may come from a forgotten job
	m.table.EachJob(func(_ uint32, e *table.Entry) {
		if e.State == core.Ready || e.Has(table.SeqOrder) {
			m.table.LastPlace = max(m.table.LastPlace, e.Place())
		}
	})
}
