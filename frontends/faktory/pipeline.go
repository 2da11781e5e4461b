package faktory

import (
	"errors"

	"github.com/tidwall/redcon"

	"broker/core"
	"broker/frontends"
)

// maxPipeline is the maximum number of requests that go to the broker in one call.
const maxPipeline = 256

// maxIdleBuffer is the largest buffer that a pipeline keeps between two uses, in bytes.
const maxIdleBuffer = 1 << 20

// pipeline holds the requests and buffers of one call of a session.
type pipeline struct {
	frontends.Pipeline[pending]
	unit     workUnit
	json     []byte
	commands int // requests that INFO does not count yet
}

// pending is a request in the pipeline.
type pending struct {
	kind requestKind
	jid  string
	job  *core.Job // pushRequest
	text string    // badRequest: what is wrong
}

// requestKind selects how the broker's reply is written. A badRequest has no reply.
type requestKind uint8

const (
	badRequest requestKind = iota
	pushRequest
	ackRequest
	failRequest
	fetchRequest
)

// End implements frontends.Requests: it counts the commands for INFO.
func (s *session) End() {
	p := s.Pipeline
	s.front.commands.Add(uint64(p.commands))
	s.Pipelined.End()
}

// Clear implements frontends.Pipelined. It keeps the buffers of usual size.
func (p *pipeline) Clear() {
	p.commands = 0
	clear(p.unit.unknown[:cap(p.unit.unknown)])
	p.unit.reset()
	if cap(p.json) > maxIdleBuffer {
		p.json = nil
	}
}

// refuse adds a request that is answered with an error.
func (p *pipeline) refuse(text string) { p.Local(pending{text: text}) }

func (p *pipeline) submit(job *core.Job) {
	op := p.Submits.Next()
	op.Tag, op.Job = p.Expect(pending{kind: pushRequest, jid: job.ID, job: job}), job
	p.Ask(op)
}

func (p *pipeline) complete(jid string, result []byte) {
	op := p.Completes.Next()
	op.Tag = p.Expect(pending{kind: ackRequest, jid: jid})
	op.Ref, op.Authority, op.Result = core.Ref{ID: jid}, core.ByLeased, result
	p.Ask(op)
}

func (p *pipeline) fail(jid string, failure *core.Failure) {
	op := p.Fails.Next()
	op.Tag = p.Expect(pending{kind: failRequest, jid: jid})
	op.Ref, op.Authority, op.Failure = core.Ref{ID: jid}, core.ByLeased, failure
	p.Ask(op)
}

// lease adds a FETCH. It is the last request of its pipeline, because later requests must wait for its answer.
func (p *pipeline) lease(queues []string, s *session, until core.Instant) (tag uint64) {
	op := p.Leases.Next()
	op.Tag = p.Expect(pending{kind: fetchRequest})
	op.Queues, op.Pick, op.Deadline = queues, core.PickInOrder, until
	op.Holder, op.Worker, op.Version, op.Late = core.HeldByWorker, s.workerID, s.version, true
	p.Ask(op)
	return op.Tag
}

// Flush runs the requests of the pipeline and answers them. A FETCH at its end may stay parked.
func (s *session) Flush() {
	if s.Pipeline.Len() > 0 {
		s.run()
	}
}

// run is like Flush but also runs an empty pipeline, to get the reply to a parked FETCH.
func (s *session) run() {
	s.Run()
	for len(s.lateReplies) > 0 {
		r := s.lateReplies[0]
		s.lateReplies = s.lateReplies[1:]
		s.Push(&r)
	}
	s.lateReplies = nil
}

// Respond implements frontends.Responder.
func (s *session) Respond(p *pending, r *core.Reply) {
	switch p.kind {
	case badRequest:
		s.refuse(p.text)
	case pushRequest:
		commit, err := s.pushResult(p.job, r)
		if err != nil {
			s.fail(err, s.front.subject(p.job, err), commit)
			return
		}
		s.ok(commit)
	case ackRequest:
		if r.Kind == core.Failed && (fatal(r.Err) || errors.Is(r.Err, core.ErrForbidden)) {
			s.fail(r.Err, p.jid, r.Commit)
			return
		}
		s.ok(r.Commit) // a removed job needs no ACK
	case failRequest:
		if r.Kind == core.Failed {
			s.fail(r.Err, p.jid, r.Commit)
			return
		}
		s.ok(r.Commit)
	case fetchRequest:
		s.Push(r)
	}
}

// Push implements frontends.Responder. It answers the parked FETCH.
func (s *session) Push(r *core.Reply) {
	switch {
	case s.fetch.tag == 0, r.Tag != s.fetch.tag:
		return // no FETCH waits, or this is the reply to a cancelled request
	case r.Kind == core.Reading:
		s.fetch.reading = true
		return
	}
	s.fetch = parkedFetch{}
	switch r.Kind { //nolint:exhaustive // a lease has no other replies
	case core.Assigned:
		p := s.Pipeline
		p.json = s.front.appendJob(p.json[:0], r.Job,
			jobState{enqueuedAt: r.Lease.EnqueuedAt, failure: r.Lease.Failure})
		s.bulk(p.json, r.Commit)
		s.deliveries.Add(s.Conn.Out(), r)
	case core.Failed:
		s.fail(r.Err, "", r.Commit)
	default:
		s.put(redcon.AppendNull(s.Conn.Out().Buf()), r.Commit)
	}
}

// fatal reports whether an error means that the broker has stopped.
func fatal(err error) bool {
	return errors.Is(err, core.ErrStopped) || errors.Is(err, core.ErrShutdown)
}
