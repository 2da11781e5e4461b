package machine

import (
	"broker/core"
	"broker/core/internal/table"
)

// subscribe adds a subscription of a client.
func (m *Machine) subscribe(c *client, op *core.Subscribe) {
	if c.subscriptions == core.MaxSubscriptions || !m.hub.Subscribe(c.slot, op) {
		m.failed(c, op.Tag, core.ErrInvalid)
		return
	}
	c.subscriptions++
	m.reply(c, core.Reply{Kind: core.Accepted, Tag: op.Tag})
}

// record adds an event to the job's timeline and publishes it, after the decision that caused it. Without a timeline
// and subscriptions, it costs two comparisons.
func (m *Machine) record(h uint32, e *table.Entry, kind core.EventKind, detail string) {
	if hasTimeline(e, kind) || m.hub.Wanted(kind) {
		m.recordWanted(h, e, kind, detail)
	}
}

func (m *Machine) recordWanted(h uint32, e *table.Entry, kind core.EventKind, detail string) {
	if hasTimeline(e, kind) {
		m.addToTimeline(m.actor, h, e, kind, detail)
	}
	m.emit(h, e, kind, detail)
}

// emit publishes an event of a job.
func (m *Machine) emit(h uint32, e *table.Entry, kind core.EventKind, detail string) {
	if m.hub.Wanted(kind) {
		m.emitWanted(h, e, kind, detail)
	}
}

func (m *Machine) emitWanted(h uint32, e *table.Entry, kind core.EventKind, detail string) {
	m.publishJob(h, e, core.Event{Kind: kind, Detail: detail})
}

// recordRunEnd records the end of a run, and of the job unless it runs again.
func (m *Machine) recordRunEnd(h uint32, e *table.Entry, kind core.EventKind, detail string) {
	if e.Has(table.Rerun) {
		m.record(h, e, kind, detail)
	} else {
		m.recordFinal(h, e, kind, detail)
	}
}

// recordFinal adds the last event of a job to its timeline and publishes it.
func (m *Machine) recordFinal(h uint32, e *table.Entry, kind core.EventKind, detail string) {
	if hasTimeline(e, kind) {
		m.addToTimeline(m.actor, h, e, kind, detail)
	}
	m.emitFinal(h, e, kind, detail)
}

// emitFinal publishes the last event of a job.
func (m *Machine) emitFinal(h uint32, e *table.Entry, kind core.EventKind, detail string) {
	m.noteFinished(h, e, kind, detail)
	if m.hub.Wanted(kind) {
		m.publishJob(h, e, core.Event{Kind: kind, Detail: detail, Over: true})
	}
}

// publishJob sends an event of a job to its subscribers.
func (m *Machine) publishJob(h uint32, e *table.Entry, ev core.Event) {
	ev.Seq, ev.Queue, ev.Type, ev.ID = e.Seq, m.queues[e.Queue].Name, m.table.TypeOf(e), m.identity(h, e)
	if m.actor != nil {
		ev.Protocol = m.actor.protocol
	}
	if e.Has(table.Traced) {
		ev.Trace = m.table.TraceOf(h)
	}
	switch {
	case e.Has(table.Held):
		ev.Protocol, ev.Worker = e.HolderFrom, m.holderName(e)
		if ev.Kind == core.EventLeased {
			ev.Since = m.waited
		}
	case m.lastHolder.seq == e.Seq:
		if e.State == core.Leased { // just now
			ev.Protocol, ev.Worker = e.HolderFrom, m.lastHolder.name
		}
		ev.Since, m.lastHolder.leasedAt = m.lastHolder.leasedAt, 0
	}
	m.publish(&ev, m.eventCommit(e, ev.Kind))
}

// eventCommit returns the commit that an event of a job depends on.
func (m *Machine) eventCommit(e *table.Entry, kind core.EventKind) core.Commit {
	switch {
	case e.Unstored():
		return 0
	case kind == core.EventReady, kind == core.EventLeased, kind == core.EventProgress, kind == core.EventReleased,
		kind == core.EventLeaseExpired: // possibly not stored at all
		return m.table.JobCommit(e)
	}
	return m.table.Promise()
}

// lastHolder is the holder of a job while a decision ends its lease.
type lastHolder struct {
	seq           uint64
	name, address string
	leasedAt      core.Instant // zero once an event has reported it
}

// identity returns the job's Identity; empty if it is only in the store.
func (m *Machine) identity(h uint32, e *table.Entry) string {
	if e.ID == (table.Digest{}) {
		return core.MintedID(e.Seq, e.CreatedAt)
	}
	if j := m.table.Payload(h); j != nil {
		return j.ID
	}
	return ""
}

// holderName returns the worker of a leased job: its id, or the name of its connection.
func (m *Machine) holderName(e *table.Entry) string {
	switch e.HolderKind {
	case core.HeldByWorker:
		return m.table.Workers.NameOf(e.Holder)
	case core.HeldByConn:
		return m.clients[e.Holder].name
	case core.HeldByNobody:
	}
	return ""
}

// queueEvent publishes an event of a queue.
func (m *Machine) queueEvent(q *jobQueue, kind core.EventKind) {
	if !m.hub.Wanted(kind) {
		return
	}
	ev := core.Event{Kind: kind, Queue: q.Name}
	if m.actor != nil {
		ev.Protocol = m.actor.protocol
	}
	m.publish(&ev, m.table.Promise())
}

// worksNow records that a client requests jobs.
func (m *Machine) worksNow(c *client) {
	if !c.works {
		c.works = true
		m.workerEvent(c, core.EventWorkerCame)
	}
}

func (m *Machine) workerEvent(c *client, kind core.EventKind) {
	if m.hub.Wanted(kind) {
		m.publish(&core.Event{Kind: kind, Protocol: c.protocol, Worker: workerName(c), Detail: c.address}, 0)
	}
}

// workerName returns the id of a client's worker, or the name of the client.
func workerName(c *client) string {
	if c.worker != "" {
		return c.worker
	}
	return c.name
}

// publish sends an event to its subscribers.
func (m *Machine) publish(ev *core.Event, commit core.Commit) {
	ev.At = m.table.Now
	m.hub.Publish(ev, func(slot uint32, tag uint64, own core.Event) {
		m.reply(m.clients[slot],
			core.Reply{Kind: core.EventReply, Tag: tag, Seq: own.Seq, Commit: commit, Answer: &core.Answer{Event: own}})
	})
}
