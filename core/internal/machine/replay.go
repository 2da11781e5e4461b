package machine

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"broker/core"
	"broker/core/internal/record"
	"broker/core/internal/telemetry"
	"broker/core/internal/timer"
)

// Recovery: RestoreMeta for the policies of queues (IsPolicy), Restore for every job in the order of their numbers, Begin,
// RestoreMeta for all other entries, then Restored. Nothing is decided again: deadlines that have passed meanwhile fire at the
// first Tick. Between Restore and Begin the machine can follow a store that goes on; see follow.go.

// SetOptions replaces the options of New, before the last call of Restore.
func (m *Machine) SetOptions(o Options) { m.opts = o }

// Begin sets the number of the last commit and starts the measurements.
func (m *Machine) Begin(last core.Commit) {
	m.open, m.durable = last+1, last
	m.stats.StartedAt, m.now = m.opts.StartedAt, max(m.now, m.opts.StartedAt)
	m.meters = telemetry.NewMeters(watched{m}, m.now, m.opts.MaxDetailed)
	for _, q := range m.queues[1:] {
		if q != nil {
			m.meters.Add(&q.watch)
		}
	}
	m.left = lastHolder{}
}

// restoring is what a machine knows only until Restored.
type restoring struct {
	usedUp    map[uint64]struct{} // jobs whose last attempt may have ended with the previous process
	stopped   map[uint64]struct{} // those that were to stop when the connection that held them was lost with the previous process
	scheduled map[uint64]string   // jobs of schedules, with their names
	unstored  map[uint64][]uint64 // what a job waits for that the store does not have
	places    places
	shared    []core.SharedLimit
}

func newRestoring() restoring {
	return restoring{usedUp: map[uint64]struct{}{}, stopped: map[uint64]struct{}{}, scheduled: map[uint64]string{}, unstored: map[uint64][]uint64{}}
}

// RestoreMeta restores a meta entry.
func (m *Machine) RestoreMeta(name string, value []byte) error {
	var err error
	switch {
	case name == seqMeta:
		if len(value) != 8 {
			return fmt.Errorf("mark %s: %d bytes, want 8", name, len(value))
		}
		m.nextSeq = max(m.nextSeq, binary.BigEndian.Uint64(value))
	case name == totalsMeta:
		var t storedTotals
		err = t.decode(value)
		m.stats.Totals, m.stats.ByOrigin, m.stats.ByWorker = t.Totals, t.ByOrigin, t.ByWorker
	case strings.HasPrefix(name, telemetry.SeriesMeta):
		err = m.meters.Restore(m.now, name, value)
	case strings.HasPrefix(name, telemetry.HistoryMeta):
		err = m.history.Restore(name, value)
	case strings.HasPrefix(name, queueMetaPrefix):
		err = m.restoreQueue(name, value)
	case strings.HasPrefix(name, PolicyPrefix):
		err = m.restorePolicy(name, value)
	case strings.HasPrefix(name, jobPolicyPrefix):
		err = m.restoreJobPolicy(name, value)
	case strings.HasPrefix(name, ratePrefix):
		err = m.restoreRate(name, value)
	case strings.HasPrefix(name, sharedPrefix):
		err = m.restoreShared(name, value)
	case strings.HasPrefix(name, schedulePrefix):
		err = m.restoreSchedule(name, value)
	case strings.HasPrefix(name, positionPrefix):
		err = m.restorePosition(name, value)
	case strings.HasPrefix(name, windowPrefix):
		err = m.restoreWindow(value)
	case strings.HasPrefix(name, batchMetaPrefix):
		err = m.restoreBatch(name, value)
	default:
		m.meta[name] = append([]byte(nil), value...)
	}
	if err != nil {
		return fmt.Errorf("mark %s: %w", name, err)
	}
	return nil
}

// Restore restores a job. The caller may reuse the record.
func (m *Machine) Restore(now core.Instant, r *record.Record) {
	m.setNow(now)
	j := r.Job
	if r.Status != nil && r.Status.Queue != "" {
		j.InQueue(r.Status.Queue)
	}
	n, q := m.queueNamed(j.Queue)
	switch lifetimeOf(j.Origin) {
	case whileWaitedOn, overRestarts, untilDropped:
	case afterUse:
		q.used++
	case untilRestart:
		q.lasting++
	}
	m.nextSeq = max(m.nextSeq, j.Seq+1)
	h := m.index(j, n)
	e := m.jobs.at(h)
	if r.Status == nil || r.Status.State != core.Done {
		m.joinLaneOf(h, j)
	}
	if j.Schedule != "" {
		m.restoring.scheduled[j.Seq] = strings.Clone(j.Schedule)
	}
	e.set(stored | payloadStored | nonResident | untouched)
	e.stored, e.bodyBytes = r.Stored, uint32(r.BodyBytes)
	if r.Stored&record.HasFailure != 0 && (r.Status == nil || r.Status.Fails > j.PriorFails) { // otherwise its failure was cleared
		e.set(failureStored)
	}
	if r.Stored&record.HasOutcome != 0 {
		e.set(outcomeStored)
	}
	switch {
	case r.Status != nil:
		m.restoreStatus(h, e, r.Status)
	case j.ReadyAt <= j.CreatedAt && (!j.SeqOrder || j.ReadyAt <= m.now):
		if j.SeqOrder {
			e.readyAt = j.CreatedAt
		}
		if !e.has(scheduledOrder) {
			m.arrive(e)
		}
		m.makeReady(h, e) // it was ready on arrival, even if the clock now says that this is in the future
	default:
		m.schedule(h, e)
	}
}

func (m *Machine) restoreStatus(h uint32, e *entry, s *record.Status) {
	e.set(changed)
	if s.Queue != "" {
		e.words |= rehomed
	}
	set := func(f flags, is bool) {
		if is {
			e.set(f)
		}
	}
	set(requeued, s.Requeued)
	set(broken, s.Broken)
	set(doneFailed, s.DoneFailed)
	if s.KeptByQueue {
		m.restoreKept(h, e, s)
	}
	set(unlocked, s.Unlocked)
	if s.Unlocked {
		if x := m.optionalState(h); x != nil && x.uniqueStart {
			x.startKey = e.unique
		}
		m.freeUnique(h, e)
	}
	if s.Placed {
		e.clear(scheduledOrder)
	}
	e.attempts, e.fails, e.readyAt = s.Attempts, s.Fails, s.ReadyAt
	m.setFirstFail(h, e, s.FailedAt)
	if s.Tally != nil {
		m.tallies[h] = *s.Tally
	}
	e.epoch, e.lostLeases, e.entries = s.Attempts+s.EpochAhead, s.LostLeases, s.Entries
	if s.State == core.Dead && e.expiresAt != 0 {
		m.ensureOptional(h).ttl = e.expiresAt
	}
	if s.ExpiresAt != e.expiresAt {
		m.expireAt(h, e, s.ExpiresAt)
	}
	if len(s.Waiting) > 0 || s.Closed || s.ChildrenBroken || s.Tried || s.LogChunks > 0 {
		x := m.ensureOptional(h)
		x.waiting = append(x.waiting, s.Waiting...)
		x.isClosed, x.childrenBroken, x.tried, x.logChunks = s.Closed, s.ChildrenBroken, s.Tried, s.LogChunks
		if len(s.Unstored) > 0 {
			m.restoring.unstored[e.seq] = slices.Clone(s.Unstored)
		}
	}
	if s.Progress != nil {
		m.ensureTransient(h).progress = *s.Progress
	}
	switch s.State {
	case core.Leased:
		m.restoreLease(h, e, s)
	case core.Retrying:
		e.leasedAt = s.LeasedAt
		m.move(e, core.Retrying)
		m.joinGroupNamed(h, e, s.Group)
		e.stateTimer = m.timers.Add(e.readyAt, timer.Owner{Kind: timerState, Handle: h})
		m.enlist(h, e)
	case core.Scheduled:
		m.schedule(h, e)
	case core.Ready:
		m.makeReady(h, e)
	case core.Blocked, core.Done, core.Dead:
		if s.State == core.Done && s.ExpiresAt == 0 {
			e.clear(keepsOutcome) // it is kept only for its children
		}
		if s.State == core.Dead {
			m.leaveOrder(h, e)
		}
		m.move(e, s.State)
		if s.State == core.Dead {
			m.joinGroupNamed(h, e, s.Group)
		}
		m.enlist(h, e)
		if s.State != core.Blocked {
			m.freeUnique(h, e)
		}
	case core.Gone:
		panic("machine: a job in the store is gone")
	}
}

// restoreKept restores a finished job that its queue keeps.
func (m *Machine) restoreKept(h uint32, e *entry, s *record.Status) {
	if asked := m.askedUntil(h, e, s.ReadyAt); asked > m.now {
		m.noteAsked(h, e, asked)
		m.optionalState(h).isClosed = s.Closed || s.Children == 0 // its children are linked later
	}
	e.set(keptByQueue | keepsOutcome)
}

// restoreLease restarts a lease with its full duration; one that a connection held has ended with it, and an attempt is used.
func (m *Machine) restoreLease(h uint32, e *entry, s *record.Status) {
	if s.Holder == core.HeldByConn {
		e.set(requeued)
		m.forgetProgress(h, e)
		m.makeReady(h, e)
		m.restoring.usedUp[e.seq] = struct{}{} // if it has; its policies are not known yet
		if s.StopAfter != 0 {
			m.restoring.stopped[e.seq] = struct{}{}
		}
		return
	}
	m.move(e, core.Leased)
	e.set(held)
	if s.Rerun {
		e.set(rerun)
	}
	if s.StopAfter != 0 {
		e.set(stopping)
		m.stops[e.seq] = s.StopAfter
	}
	e.holderKind, e.holderFrom, e.leasedAt = s.Holder, s.HolderFrom, s.LeasedAt
	m.enlist(h, e)
	if s.Holder == core.HeldByWorker {
		m.holdNamed(h, e, s.Worker)
	}
	m.stats.LeasedBy[s.HolderFrom]++
	m.takeSlot(h, e, m.slotKey(e))
	e.granted = millis(s.LeaseFor)
	if e.granted == 0 {
		e.granted = millis(m.opts.DefaultLease)
	}
	until := m.now.Add(time.Duration(e.granted) * time.Millisecond)
	e.stateTimer = m.timers.Add(until, timer.Owner{Kind: timerState, Handle: h})
}

// Restored connects the links between jobs and batches once all are restored.
func (m *Machine) Restored() {
	m.settlePlaces()
	m.restoredQueues()
	m.restoredShared()
	m.restoredRates()
	m.eachLinked(m.relink)
	m.eachLinked(m.relinkWaiting)
	m.relinkBatches()
	m.eachLinked(func(h uint32, e *entry, x *optional) {
		if e.state == core.Done && x.openChildren == 0 {
			m.closed(h, !x.childrenBroken && !e.has(doneFailed))
			if !e.has(keepsOutcome) {
				m.remove(h)
			}
		}
	})
	m.reserved = 0
	m.reserve()
	for _, seq := range slices.Sorted(maps.Keys(m.restoring.usedUp)) {
		h := m.bySeq.get(seq)
		_, stopped := m.restoring.stopped[seq]
		switch {
		case h == 0:
		case stopped:
			m.detach(h, m.jobs.at(h))
			m.endStopped(h, m.jobs.at(h).holderFrom)
		case m.usedUp(m.jobs.at(h)):
			m.detach(h, m.jobs.at(h))
			m.endUsedUp(h, m.jobs.at(h))
		default: // else the next start would decide again, by the policies of then
			m.touch(h, m.jobs.at(h))
		}
	}
	m.decideBroken()
	m.restoredSchedules()
	if m.lastPlace > m.now { // the clock was set back before the restart
		m.firstPlace = m.lastPlace
	}
	m.touched = m.touched[:0]
	m.restoring = restoring{}
}

// eachLinked walks the jobs that may have links, in the order of their numbers. fn may remove jobs.
func (m *Machine) eachLinked(fn func(h uint32, e *entry, x *optional)) {
	for _, seq := range m.linkedJobs() {
		if h := m.bySeq.get(seq); h != 0 {
			fn(h, m.jobs.at(h), m.optionals[h])
		}
	}
}

func (m *Machine) linkedJobs() []uint64 {
	seqs := make([]uint64, 0, len(m.optionals))
	if len(m.optionals) < m.jobs.live/16 {
		for h := range m.optionals {
			seqs = append(seqs, m.jobs.at(h).seq)
		}
		slices.Sort(seqs)
		return seqs
	}
	walk := m.bySeq.from(0, false)
	for h := walk.Next(); h != 0; h = walk.Next() {
		if e := m.jobs.at(h); e.has(hasOptional) {
			seqs = append(seqs, e.seq)
		}
	}
	return seqs
}

// restoredQueues completes what the queues take from their jobs.
func (m *Machine) restoredQueues() {
	for _, q := range m.queues[1:] {
		if q == nil {
			continue
		}
		if q.lasting > 0 {
			m.known(q, untilRestart)
			q.lasting = 0
		}
		if q.used > 0 {
			m.known(q, afterUse)
			q.used = 0
		}
		if q.jobs() > 0 {
			m.meters.Mark(&q.watch)
		}
	}
}

// relink connects a job with its parent and its batch.
func (m *Machine) relink(_ uint32, e *entry, x *optional) {
	if x.parent != 0 {
		if p := m.bySeq.get(x.parent); p == 0 {
			x.parent = 0
		} else if !x.isClosed {
			m.ensureOptional(p).openChildren++
		}
	}
	if g := m.batches[x.batch]; x.batch != 0 && g != nil && e.state != core.Done {
		g.members++
		if x.tried {
			g.failing++
		} else {
			g.untried++
		}
	} else {
		x.batch = 0
	}
}

// relinkWaiting connects a blocked job with those that it still waits for: its record also names jobs that were done since it was
// written.
func (m *Machine) relinkWaiting(_ uint32, e *entry, x *optional) {
	waiting := x.waiting
	x.waiting = nil
	if e.state != core.Blocked {
		return
	}
	for _, seq := range waiting {
		p := m.bySeq.get(seq)
		if p == 0 {
			if slices.Contains(m.restoring.unstored[e.seq], seq) {
				m.breaks(e, x, seq, false) // it was lost with the previous process
				m.breaking = append(m.breaking, breach{e.seq, seq})
			}
			continue
		}
		done, y := m.jobs.at(p).state == core.Done, m.optionalState(p)
		if done && (seq == x.parent || y != nil && y.isClosed) {
			continue
		}
		y = m.ensureOptional(p)
		if x.waiting = append(x.waiting, seq); seq == x.parent {
			y.children = append(y.children, e.seq)
		} else {
			y.successors = append(y.successors, e.seq)
		}
	}
	slices.Sort(x.waiting)
}
