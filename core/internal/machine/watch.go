package machine

import (
	"broker/core"
	"broker/core/internal/table"
	"broker/core/internal/timer"
)

// watcher is a client's interest in a job, linked in the lists of the job and of the client.
type watcher struct {
	tag              uint64
	client, job      uint32
	nextJob, prevJob uint32
	nextOwn, prevOwn uint32
	deadline         timer.ID
	kind             core.Watch
	over             bool   // WatchRun: its deadline passed while the job was leased
	count, owners    uint32 // in the first of a job's list: all watchers, and those for which the job runs
}

// owns reports whether an ephemeral job runs for this watcher. Others that wait for its outcome do not keep it.
func (w *watcher) owns() bool { return w.kind != core.WatchOutcome }

// watcherSlab assigns numbers, from 1.
type watcherSlab struct {
	all  []watcher
	free uint32 // linked through nextJob
}

func (s *watcherSlab) at(n uint32) *watcher { return &s.all[n-1] }

func (s *watcherSlab) alloc() uint32 {
	if n := s.free; n != 0 {
		s.free = s.at(n).nextJob
		*s.at(n) = watcher{}
		return n
	}
	s.all = append(s.all, watcher{})
	return uint32(len(s.all))
}

// watch attaches a client to a job.
func (m *Machine) watch(c *client, h uint32, kind core.Watch, tag uint64, until core.Instant) {
	n := m.watchers.alloc()
	w := m.watchers.at(n)
	e := m.table.At(h)
	w.tag, w.client, w.job, w.kind = tag, c.slot, h, kind
	w.nextJob, w.nextOwn = e.Watchers, c.watches
	w.count, w.owners = m.watcherCount(e)
	w.count++
	if w.owns() {
		w.owners++
	}
	if e.Watchers != 0 {
		m.watchers.at(e.Watchers).prevJob = n
	}
	if c.watches != 0 {
		m.watchers.at(c.watches).prevOwn = n
	}
	e.Watchers, c.watches = n, n
	if until != 0 {
		w.deadline = m.table.Timers.Add(until, timer.Owner{Kind: table.TimerWatch, Handle: n})
	}
}

// unwatch detaches a watcher. If its client has left and it was the last one for which an ephemeral, unleased job runs, the job
// is cancelled.
func (m *Machine) unwatch(n uint32, left bool) {
	w := m.watchers.at(n)
	c, e, h := m.clients[w.client], m.table.At(w.job), w.job
	m.table.Timers.Remove(&w.deadline)
	count, owners := m.watcherCount(e)
	count--
	if w.owns() {
		owners--
	}
	if w.nextJob != 0 {
		m.watchers.at(w.nextJob).prevJob = w.prevJob
	}
	if w.prevJob != 0 {
		m.watchers.at(w.prevJob).nextJob = w.nextJob
	} else {
		e.Watchers = w.nextJob
	}
	if w.nextOwn != 0 {
		m.watchers.at(w.nextOwn).prevOwn = w.prevOwn
	}
	if w.prevOwn != 0 {
		m.watchers.at(w.prevOwn).nextOwn = w.nextOwn
	} else {
		c.watches = w.nextOwn
	}
	*w = watcher{nextJob: m.watchers.free}
	m.watchers.free = n
	if e.Watchers != 0 {
		first := m.watchers.at(e.Watchers)
		first.count, first.owners = count, owners
	}
	if left && owners == 0 && e.Has(table.Ephemeral) && e.State != core.Leased {
		m.end(h, &core.Outcome{Cause: core.Cancelled})
	}
}

// eachWatcher calls fn for the watchers of a job; fn may detach the one it is given.
func (m *Machine) eachWatcher(e *table.Entry, fn func(n uint32, w *watcher)) {
	for n := e.Watchers; n != 0; {
		w := m.watchers.at(n)
		next := w.nextJob
		fn(n, w)
		n = next
	}
}

// watcherCount is how many clients wait for a job, and for how many of them it runs.
func (m *Machine) watcherCount(e *table.Entry) (count, owners uint32) {
	if e.Watchers == 0 {
		return 0, 0
	}
	first := m.watchers.at(e.Watchers)
	return first.count, first.owners
}

// abandoned reports whether an ephemeral job runs for no client any more.
func (m *Machine) abandoned(e *table.Entry) bool {
	_, owners := m.watcherCount(e)
	return owners == 0 && e.Has(table.Ephemeral)
}

// hasOutcomeWatcher reports whether a client waits for the whole result rather than the stream.
func (m *Machine) hasOutcomeWatcher(e *table.Entry) (found bool) {
	m.eachWatcher(e, func(_ uint32, w *watcher) { found = found || w.kind != core.WatchStream })
	return found
}

// notifyEnd sends the outcome to every watcher of a job and detaches them. Clients that received the stream get the last bytes
// only, others the chunks too.
func (m *Machine) notifyEnd(h uint32, streamed, whole *core.Outcome, commit core.Commit) {
	e := m.table.At(h)
	job := m.table.Payload(h)
	// The list is from the newest to the oldest; the first to come is notified first.
	var order []uint32
	for n := e.Watchers; n != 0; n = m.watchers.at(n).nextJob {
		order = append(order, n)
	}
	for i := len(order) - 1; i >= 0; i-- {
		w := m.watchers.at(order[i])
		r := core.Reply{Kind: core.Ended, Tag: w.tag, Seq: e.Seq, Job: job, Outcome: whole, Data: streamed.Result, Commit: commit}
		if w.kind == core.WatchStream {
			r.Outcome = streamed
		}
		c := m.clients[w.client]
		m.unwatch(order[i], false)
		m.reply(c, r)
	}
}

// watchTimeout handles the deadline of a wait.
func (m *Machine) watchTimeout(n uint32) {
	w := m.watchers.at(n)
	w.deadline = 0
	h, c := w.job, m.clients[w.client]
	e := m.table.At(h)
	if w.kind == core.WatchRun && e.State == core.Leased {
		w.over = true // the present attempt may still produce the outcome
		e.Set(table.RunOver)
		return
	}
	r := core.Reply{Kind: core.TimedOut, Tag: w.tag, Seq: e.Seq}
	m.unwatch(n, w.kind == core.WatchRun)
	m.reply(c, r)
}

// await waits for the outcome of a job, or replies with a kept one.
func (m *Machine) await(c *client, op *core.Await) {
	h := m.table.Find(op.Ref)
	if h == 0 {
		m.refused(c, op.Tag, nil, core.ErrNotFound)
		return
	}
	e := m.table.At(h)
	switch {
	case e.State == core.Done && e.Has(table.KeepsOutcome):
		r := core.Reply{Kind: core.Ended, Tag: op.Tag, Seq: e.Seq, Job: m.table.Payload(h), Commit: m.table.JobCommit(e)}
		if n := m.table.Transient(h); n != nil {
			r.Outcome = n.Outcome
		}
		if r.Outcome != nil {
			m.reply(c, r)
			return
		}
		m.replyWith(c, r, Work{Needs: KeptOutcome})
	case e.State == core.Dead:
		m.replyDeath(c, op.Tag, h, e)
	case e.State == core.Done: // only its children are not closed
		m.refused(c, op.Tag, e, core.ErrNotFound)
	case op.Deadline <= m.table.Now:
		m.reply(c, core.Reply{Kind: core.TimedOut, Tag: op.Tag, Seq: e.Seq})
	default:
		m.watch(c, h, core.WatchOutcome, op.Tag, op.Deadline)
	}
}

// replyDeath replies to a client that waits for a dead job.
func (m *Machine) replyDeath(c *client, tag uint64, h uint32, e *table.Entry) {
	outcome, known := m.deathOutcome(h, e)
	r := core.Reply{Kind: core.Ended, Tag: tag, Seq: e.Seq, Job: m.table.Payload(h), Outcome: outcome, Commit: m.table.JobCommit(e)}
	if known {
		m.reply(c, r)
		return
	}
	m.replyWith(c, r, Work{Needs: FailureOfDead, Fails: e.Fails})
}

// deathOutcome is the outcome of a dead job; not known: only the store has the failure that made it dead.
func (m *Machine) deathOutcome(h uint32, e *table.Entry) (o *core.Outcome, known bool) {
	if e.Has(table.HasTransient) {
		if f := m.table.Transient(h).Failure; f != nil {
			return &core.Outcome{Failure: f, Result: f.Data}, true
		}
	}
	return &core.Outcome{}, !e.Has(table.FailureStored)
}
