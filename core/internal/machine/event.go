package machine

import (
	"slices"
	"strings"

	"broker/core"
)

// subscription is what a client wants to be told of.
type subscription struct {
	op      core.Subscribe
	kinds   uint32 // bits
	client  *client
	waiting int    // events that the client has not fetched
	dropped uint64 // since the last one that it was given
}

const (
	usualEventBuffer = 1000
	maxEventBuffer   = 100_000
)

func bit(k core.EventKind) uint32 { return 1 << k }

// subscribe lets a client listen to events.
func (m *Machine) subscribe(c *client, op *core.Subscribe) {
	s := &subscription{op: *op, client: c}
	for _, k := range op.Kinds {
		if !slices.Contains(core.EventKinds[:], k) {
			m.failed(c, op.Tag, core.ErrInvalid)
			return
		}
		s.kinds |= bit(k)
	}
	if c.subscriptions == core.MaxSubscriptions {
		m.failed(c, op.Tag, core.ErrInvalid)
		return
	}
	if len(op.Kinds) == 0 {
		s.kinds = ^uint32(0)
	}
	if s.op.Buffer <= 0 {
		s.op.Buffer = usualEventBuffer
	}
	s.op.Buffer = min(s.op.Buffer, maxEventBuffer)
	s.op.Queues, s.op.Types = slices.Clone(op.Queues), slices.Clone(op.Types) // the caller may reuse them
	c.subscriptions++
	m.subscriptions = append(m.subscriptions, s)
	m.heard |= s.kinds
	m.reply(c, core.Reply{Kind: core.Accepted, Tag: op.Tag})
}

// unsubscribe ends the subscriptions of a client for which which is true.
func (m *Machine) unsubscribe(c *client, which func(*subscription) bool) {
	if c.subscriptions == 0 {
		return
	}
	m.heard = 0
	m.subscriptions = slices.DeleteFunc(m.subscriptions, func(s *subscription) bool {
		if s.client == c && which(s) {
			c.subscriptions--
			return true
		}
		m.heard |= s.kinds
		return false
	})
}

// fetched notes that a client has taken all that waited for it.
func (m *Machine) fetched(c *client) {
	if c.subscriptions == 0 {
		return
	}
	for _, s := range m.subscriptions {
		if s.client == c {
			s.waiting = 0
		}
	}
}

// happened tells of an event of a job, after the decision that makes it so. It costs a comparison while nobody listens.
func (m *Machine) happened(h uint32, e *entry, kind core.EventKind, detail string) {
	if m.heard&bit(kind) != 0 {
		m.publishJob(h, e, core.Event{Kind: kind, Detail: detail})
	}
}

// ended tells of the end of a run, with which the job ends too unless it is to run once more.
func (m *Machine) ended(h uint32, e *entry, kind core.EventKind, detail string) {
	if e.has(rerun) {
		m.happened(h, e, kind, detail)
	} else {
		m.over(h, e, kind, detail)
	}
}

// over tells of the event that is a job's last.
func (m *Machine) over(h uint32, e *entry, kind core.EventKind, detail string) {
	if m.heard&bit(kind) != 0 {
		m.publishJob(h, e, core.Event{Kind: kind, Detail: detail, Over: true})
	}
}

// publishJob gives an event of a job to those who listen to it.
func (m *Machine) publishJob(h uint32, e *entry, ev core.Event) {
	ev.Seq, ev.Queue, ev.Type, ev.ID = e.seq, m.queues[e.queue].name, m.typeOf(e), m.identity(h, e)
	if m.actor != nil {
		ev.Protocol = m.actor.protocol
	}
	switch {
	case e.has(held):
		ev.Protocol, ev.Worker = e.holderFrom, m.holderName(e)
	case m.left.seq == e.seq && e.state == core.Leased: // just now
		ev.Protocol, ev.Worker = e.holderFrom, m.left.name
	}
	m.publish(&ev, m.eventCommit(e, ev.Kind))
}

// eventCommit is the commit that makes an event of a job true.
func (m *Machine) eventCommit(e *entry, kind core.EventKind) core.Commit {
	switch {
	case e.has(ephemeral):
		return 0
	case kind == core.EventReady, kind == core.EventLeased, kind == core.EventProgress, kind == core.EventReleased,
		kind == core.EventLeaseExpired: // may not be stored at all
		return m.jobCommit(e)
	}
	return m.promise()
}

// lastHolder is who has had a job, while it is decided what becomes of that.
type lastHolder struct {
	seq  uint64
	name string
}

// identity is a job's name in every protocol; empty if only the store has it.
func (m *Machine) identity(h uint32, e *entry) string {
	if e.id == (digest{}) {
		return core.MintedID(e.seq, e.createdAt)
	}
	if j := m.jobs.payload(h); j != nil {
		return j.ID
	}
	return ""
}

// holderName is the worker that has a leased job: its id, or the name of its connection.
func (m *Machine) holderName(e *entry) string {
	switch e.holderKind {
	case core.HeldByWorker:
		return m.workers.names[e.holder]
	case core.HeldByConn:
		return m.clients[e.holder].name
	case core.HeldByNobody:
	}
	return ""
}

// queueEvent tells of an event of a queue.
func (m *Machine) queueEvent(q *jobQueue, kind core.EventKind) {
	if m.heard&bit(kind) == 0 {
		return
	}
	ev := core.Event{Kind: kind, Queue: q.name}
	if m.actor != nil {
		ev.Protocol = m.actor.protocol
	}
	m.publish(&ev, m.promise())
}

// worksNow notes that a client asks for jobs.
func (m *Machine) worksNow(c *client) {
	if !c.works {
		c.works = true
		m.workerEvent(c, core.EventWorkerCame)
	}
}

func (m *Machine) workerEvent(c *client, kind core.EventKind) {
	if m.heard&bit(kind) != 0 {
		m.publish(&core.Event{Kind: kind, Protocol: c.protocol, Worker: workerName(c), Detail: c.address}, 0)
	}
}

// workerName is the id of a client's worker, or its own name.
func workerName(c *client) string {
	if c.worker != "" {
		return c.worker
	}
	return c.name
}

// publish gives an event to those who listen to it.
func (m *Machine) publish(ev *core.Event, commit core.Commit) {
	m.events++
	ev.Number, ev.At = m.events, m.now
	for _, s := range m.subscriptions {
		if !s.wants(ev) {
			continue
		}
		if s.waiting == s.op.Buffer {
			s.dropped++
			continue
		}
		own := *ev
		own.Dropped, s.dropped = s.dropped, 0
		s.waiting++
		m.reply(s.client, core.Reply{
			Kind: core.EventReply, Tag: s.op.Tag, Seq: ev.Seq, Commit: commit, Answer: &core.Answer{Event: own},
		})
	}
}

func (s *subscription) wants(ev *core.Event) bool {
	op := &s.op
	return s.kinds&bit(ev.Kind) != 0 && (op.Job == 0 || op.Job == ev.Seq) &&
		(len(op.Queues) == 0 || slices.Contains(op.Queues, ev.Queue)) && strings.HasPrefix(ev.Queue, op.QueuePrefix) &&
		(len(op.Types) == 0 || ev.Seq != 0 && slices.Contains(op.Types, ev.Type))
}
