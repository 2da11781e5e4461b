package gearman

import (
	"broker/core"
	"broker/frontends"
	"broker/frontends/gearman/packet"
)

// session is one connection: client, worker and administrator at once.
type session struct {
	frontends.Pipelined[pending, *pipeline]
	front *Frontend
	entry *connEntry

	names      names
	exceptions bool // the client has enabled WORK_EXCEPTION
	grabs      int  // maximum jobs that one round may lease, see nextGrabs

	listing    *listing // the answer in progress to a text command; input waits until it is complete
	noJobDelay noJobDelay
	reading    lateGrab // if set, input waits
}

var (
	_ frontends.Session         = (*session)(nil)
	_ frontends.Blocker         = (*session)(nil)
	_ frontends.HalfCloseWaiter = (*session)(nil)
	_ frontends.Admitter        = (*session)(nil)

	_ frontends.Responder[pending] = (*session)(nil)
)

// lateGrab is a grab whose job is being read from disk.
type lateGrab struct {
	grab packet.Type // packet type of the grab; zero: none
	tag  uint64
}

// Limits of one round.
const (
	maxGrabs    = 16
	largeOutput = 1 << 20 // bytes
	largeInput  = 1 << 20 // bytes
)

// Begin implements frontends.Requests. More input ends the delay of a NO_JOB.
func (s *session) Begin() {
	s.Pipelined.Begin()
	s.interruptDelay()
}

// Step implements frontends.Requests: it handles the first message of the input.
func (s *session) Step(in []byte) (used int, more bool) {
	if s.listing != nil || s.outputFull() {
		return 0, false
	}
	m := &s.Pipeline.msg
	n, err := decode(in, s.front.opts.MaxBodyBytes, m)
	switch {
	case err != nil:
		s.refuseSyntax(err)
	case n == 0:
		return 0, false
	default:
		s.run(m)
	}
	s.Pipeline.input += n
	return n, true
}

// Due implements frontends.Requests.
func (s *session) Due() bool {
	p := s.Pipeline
	return s.Costly || s.Pipelined.Due() || p.Ops() >= maxPipeline || p.Leases.Len() >= s.grabs || p.input > largeInput
}

// usesFunctions is called for a message for which the broker looks at all functions of the worker.
func (s *session) usesFunctions() { s.Costly = len(s.entry.functions) > manyFunctions }

// Deliver implements frontends.Session.
func (s *session) Deliver() {
	s.Pipelined.Begin()
	defer s.End()
	if s.listing != nil && !s.page() {
		return
	}
	s.Run()
}

// Refusal implements frontends.Session.
func (s *session) Refusal() []byte {
	return appendPacket(nil, packet.Error, errServerStopped.code, errServerStopped.message)
}

// allowLate lets the last message of the pipeline wait for the disk, if it is a grab. Only the last message may wait,
// because answers keep the order of messages.
func (s *session) allowLate() {
	_, tag, op := s.Pipeline.Last()
	if lease, ok := op.(*core.Lease); ok && lease.Tag == tag && !s.HalfClosed {
		lease.Late = true
	}
}

// Dismiss implements frontends.Admitter.
func (s *session) Dismiss(text string) {
	s.Conn.Out().Write(appendPacket(nil, packet.Error, codeForbidden, text))
	s.HangUp()
}

// Blocked implements frontends.Blocker.
func (s *session) Blocked() bool { return s.reading.grab != 0 }

// WaitsHalfClosed implements frontends.HalfCloseWaiter: a job that was read from memory would have been sent already.
func (s *session) WaitsHalfClosed() bool { return s.reading.grab != 0 }

// Unblock implements frontends.Requests: it writes the rest of a listing.
func (s *session) Unblock() {
	if s.listing != nil {
		s.Deliver()
	}
}

// Closed implements frontends.Session.
func (s *session) Closed() {
	s.Closing, s.listing = true, nil
	s.front.workers.remove(s.entry)
	s.front.broker.Close(s.Client)
}

// run handles one message.
func (s *session) run(m *message) {
	switch {
	case m.text:
		s.runLine(m.line)
	case commands[m.typ] == nil:
		s.refuse(&errNoRequest)
	default:
		commands[m.typ](s, m)
	}
}

// expect adds a message that the broker answers and returns the tag for its operation.
func (s *session) expect(p pending) (tag uint64) { return s.Pipeline.Expect(p) }

// ask adds an operation.
func (s *session) ask(op core.Op) { s.Pipeline.Ask(op) }

// refuse answers the message with an ERROR packet.
func (s *session) refuse(e *wireError) { s.Pipeline.Local(pending{kind: errorAnswer, err: e}) }

// refuseSyntax answers a malformed message with an error, and closes the connection if framing is lost.
func (s *session) refuseSyntax(e *syntaxError) {
	if e == errResult {
		s.failOversized(&s.Pipeline.msg)
	}
	if e.text {
		s.say("ERR " + e.code + " " + e.message + "\r\n")
	} else {
		s.refuse(&wireError{code: e.code, message: e.message})
	}
	if e.lost {
		s.Flush()
		s.HangUp()
	}
}

// say answers the message with text.
func (s *session) say(text string) { s.Pipeline.Local(pending{kind: textAnswer, arg: []byte(text)}) }

// Flush implements frontends.Requests.
func (s *session) Flush() {
	p := s.Pipeline
	if s.Drained {
		s.delayNoJob()
		s.noJobDelay.grabbed = false
	}
	s.allowLate()
	grabbed, before := p.Leases.Len() > 0, s.Conn.Out().Len()
	s.Pipelined.Flush() // also without requests, so that older pushes come before the answers
	if grabbed {
		s.grabs = nextGrabs(s.grabs, s.Conn.Out().Len()-before)
	}
	if s.reading.grab != 0 {
		s.grabs = 1 // the next job is probably on disk too
	}
	p.Clear()
}

// nextGrabs is the number of jobs that the next round may lease, after a round that has written so many bytes. It keeps
// the output small when a worker grabs many large jobs at once.
func nextGrabs(grabs, written int) int {
	if written > largeOutput {
		return 1
	}
	return min(2*grabs, maxGrabs)
}

// outputFull reports that the client reads too slowly: its next messages must wait.
func (s *session) outputFull() bool {
	return s.Conn.Out().Len() > frontends.PauseAt && !s.HalfClosed && s.Conn.Backpressured()
}

// Respond implements frontends.Responder.
func (s *session) Respond(p *pending, r *core.Reply) {
	if r != nil {
		if s.endDelay(r); r.Kind == core.Reading {
			s.reading = lateGrab{grab: p.typ, tag: r.Tag}
			return
		}
		s.write(p, r)
		return
	}
	out := s.Conn.Out()
	switch p.kind {
	case brokerAnswer, noAnswer:
	case echoAnswer:
		out.Put(appendPacket(out.Buf(), p.typ, p.arg), 0)
	case unknownStatusAnswer:
		out.Put(appendStatus(out.Buf(), p.arg, nil), 0)
	case errorAnswer:
		out.Put(appendPacket(out.Buf(), packet.Error, p.err.code, p.err.message), 0)
	case textAnswer:
		out.Write(p.arg)
	}
}

// Push implements frontends.Responder.
func (s *session) Push(r *core.Reply) {
	p := &s.Pipeline.delayed
	p.typ = s.endDelay(r)
	switch {
	case r.Kind == core.Reading:
		s.reading = lateGrab{grab: p.typ, tag: r.Tag}
		return
	case s.reading.grab != 0 && s.reading.tag == r.Tag:
		p.typ, s.reading = s.reading.grab, lateGrab{}
	}
	s.write(p, r)
}

// write writes a reply; p is empty for a push.
func (s *session) write(p *pending, r *core.Reply) {
	if p.kind == noAnswer {
		return
	}
	out := s.Conn.Out()
	out.Put(s.encode(out.Buf(), r, p), r.Commit)
}
