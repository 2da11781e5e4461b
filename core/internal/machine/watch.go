package machine

import (
	"fmt"

	"broker/core"
	"broker/core/internal/table"
	"broker/core/internal/watch"
)

// errWatched refuses another client that wants to wait for a job.
var errWatched = fmt.Errorf("%w: %d clients wait for the job already", core.ErrFull, core.MaxWatchers)

// watchRefusal returns why no further client may watch a job.
func (m *Machine) watchRefusal(h uint32) error {
	if count, _ := m.watchers.Count(m.table.At(h)); count >= core.MaxWatchers {
		return errWatched
	}
	return nil
}

// watch attaches a client to a job.
func (m *Machine) watch(c *client, h uint32, kind core.Watch, tag uint64, until core.Instant) {
	m.watchers.Add(&c.watches, h, watch.Watcher{Client: c.slot, Kind: kind, Tag: tag}, until)
}

// unwatch detaches a watcher. If its client has left, and it was the last watcher that keeps an ephemeral, unleased job
// alive, the job is cancelled.
func (m *Machine) unwatch(n uint32, left bool) {
	w := m.watchers.At(n)
	e, h := m.table.At(w.Job), w.Job
	owners := m.watchers.Remove(&m.clients[w.Client].watches, n)
	if left && owners == 0 && e.Has(table.Ephemeral) && e.State != core.Leased {
		m.end(h, &core.Outcome{Cause: core.Cancelled})
	}
}

// notifyEnd sends the outcome to every watcher of a job and detaches them. Clients that received the stream get only
// the last bytes, other clients the chunks too.
func (m *Machine) notifyEnd(h uint32, streamed, whole *core.Outcome, commit core.Commit) {
	e := m.table.At(h)
	job := m.table.Payload(h)
	order := m.watchers.Of(e)
	m.looked += len(order)
	for i := len(order) - 1; i >= 0; i-- { // the first watcher is notified first
		w := m.watchers.At(order[i])
		r := core.Reply{
			Kind: core.Ended, Tag: w.Tag, Seq: e.Seq, Job: job, Outcome: whole, Data: streamed.Result, Commit: commit,
		}
		if w.Kind == core.WatchStream {
			r.Outcome = streamed
		}
		c := m.clients[w.Client]
		m.unwatch(order[i], false)
		m.reply(c, r)
	}
}

// watchTimeout handles the deadline of a wait.
func (m *Machine) watchTimeout(n uint32) {
	w := m.watchers.At(n)
	w.Deadline = 0
	h, c := w.Job, m.clients[w.Client]
	e := m.table.At(h)
	if w.Kind == core.WatchRun && e.State == core.Leased {
		w.Over = true // the current attempt may still produce the outcome
		e.Set(table.RunOver)
		return
	}
	r := core.Reply{Kind: core.TimedOut, Tag: w.Tag, Seq: e.Seq}
	m.unwatch(n, w.Kind == core.WatchRun)
	m.reply(c, r)
}

// await waits for the outcome of a job, or replies with a kept outcome.
func (m *Machine) await(c *client, op *core.Await) {
	h := m.table.Find(op.Ref)
	if h == 0 {
		m.refused(c, op.Tag, nil, core.ErrNotFound)
		return
	}
	e := m.table.At(h)
	switch {
	case e.State == core.Done && e.Has(table.KeepsOutcome):
		r := core.Reply{
			Kind: core.Ended, Tag: op.Tag, Seq: e.Seq, Job: m.table.Payload(h), Commit: m.table.JobCommit(e),
		}
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
	case m.watchRefusal(h) != nil:
		m.refused(c, op.Tag, e, m.watchRefusal(h))
	default:
		m.watch(c, h, core.WatchOutcome, op.Tag, op.Deadline)
	}
}

// replyDeath replies to a client that waits for a dead job.
func (m *Machine) replyDeath(c *client, tag uint64, h uint32, e *table.Entry) {
	outcome, known := m.deathOutcome(h, e)
	r := core.Reply{
		Kind: core.Ended, Tag: tag, Seq: e.Seq, Job: m.table.Payload(h), Outcome: outcome, Commit: m.table.JobCommit(e),
	}
	if known {
		m.reply(c, r)
		return
	}
	m.replyWith(c, r, Work{Needs: FailureOfDead, Fails: e.Fails})
}

// deathOutcome returns the outcome of a dead job; known is false if its failure is only in the store.
func (m *Machine) deathOutcome(h uint32, e *table.Entry) (o *core.Outcome, known bool) {
	if e.Has(table.HasTransient) {
		if f := m.table.Transient(h).Failure; f != nil {
			return &core.Outcome{Failure: f, Result: f.Data}, true
		}
	}
	if !m.table.HasPriorFailure(h) {
		return &core.Outcome{}, !e.Has(table.FailureStored)
	}
	if j := m.table.Payload(h); j != nil {
		return &core.Outcome{Failure: j.Failure}, true
	}
	return &core.Outcome{}, false
}
