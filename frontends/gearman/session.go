package gearman

import (
	"broker/core"
	"broker/frontends"
	"broker/frontends/gearman/packet"
)

// session is one connection: client, worker and administrator at once.
type session struct {
	front  *Frontend
	conn   frontends.Conn
	client core.ClientID
	entry  *connEntry

	names      names
	exceptions bool // the client has enabled WORK_EXCEPTION
	closing    bool // no more input is read
	eof        bool // the client has closed its sending side
	grabs      int  // maximum jobs that one round may lease, see nextGrabs

	tag        uint64    // tag of the last message
	pipeline   *pipeline // during Feed and Deliver only
	listing    *listing  // the answer in progress to a text command; input waits until it is complete
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

// Feed implements frontends.Session.
func (s *session) Feed(in []byte) int {
	if s.closing {
		return len(in)
	}
	if s.reading.grab != 0 {
		return 0
	}
	s.begin()
	defer s.end()
	s.interruptDelay()
	used, decided := 0, 0
	for !s.closing && s.listing == nil && s.reading.grab == 0 && !s.outputFull() {
		n, err := decode(in[used:], s.front.opts.MaxBodyBytes, &s.pipeline.msg)
		if err != nil {
			s.refuseSyntax(err)
		} else if n == 0 {
			break
		} else {
			s.run(&s.pipeline.msg)
		}
		used += n
		if s.pipeline.full() || s.pipeline.Leases.Len() >= s.grabs || used-decided > largeInput {
			s.flush(used == len(in))
			decided = used
		}
	}
	s.flush(used == len(in))
	if used == len(in) {
		s.noJobDelay.grabbed = false
	}
	if s.closing {
		s.conn.CloseAfterFlush()
		return len(in)
	}
	return used
}

// Deliver implements frontends.Session.
func (s *session) Deliver() {
	s.begin()
	defer s.end()
	if s.listing != nil && !s.page() {
		return
	}
	s.pipeline.Run(s.front.broker, s.client, s)
}

// Refusal implements frontends.Session.
func (s *session) Refusal() []byte {
	return appendPacket(nil, packet.Error, errServerStopped.code, errServerStopped.message)
}

// allowLate lets the last message of the pipeline wait for the disk, if it is a grab. Only the last message may wait,
// because answers keep the order of messages.
func (s *session) allowLate() {
	_, tag, op := s.pipeline.Last()
	if lease, ok := op.(*core.Lease); ok && lease.Tag == tag && !s.eof {
		lease.Late = true
	}
}

// Admission implements frontends.Admitter: the certificate and the port alone say who the client is.
func (s *session) Admission() frontends.Admission {
	return frontends.AdmissionOf(s.front.broker, s.client, frontends.NoRights)
}

// Dismiss implements frontends.Admitter.
func (s *session) Dismiss(text string) {
	s.closing = true
	s.conn.Out().Write(appendPacket(nil, packet.Error, codeForbidden, text))
	s.conn.CloseAfterFlush()
}

// Blocked implements frontends.Blocker.
func (s *session) Blocked() bool { return s.reading.grab != 0 }

// WaitsHalfClosed implements frontends.HalfCloseWaiter: a job that was read from memory would have been sent already.
func (s *session) WaitsHalfClosed() bool { return s.reading.grab != 0 }

// EOF implements frontends.Session: all messages are answered.
func (s *session) EOF(in []byte) {
	s.eof = true
	if s.listing != nil {
		s.Deliver()
	}
	s.Feed(in)
	s.closing = true
}

// Closed implements frontends.Session.
func (s *session) Closed() {
	s.closing, s.listing = true, nil
	s.front.workers.remove(s.entry)
	s.front.broker.Close(s.client)
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
func (s *session) expect(p pending) (tag uint64) { return s.pipeline.Expect(p) }

// ask adds an operation.
func (s *session) ask(op core.Op) { s.pipeline.Ask(op) }

// refuse answers the message with an ERROR packet.
func (s *session) refuse(e *wireError) { s.pipeline.Local(pending{kind: errorAnswer, err: e}) }

// refuseSyntax answers a malformed message with an error, and closes the connection if framing is lost.
func (s *session) refuseSyntax(e *syntaxError) {
	s.closing = e.lost
	if e == errResult {
		s.failOversized(&s.pipeline.msg)
	}
	if e.text {
		s.say("ERR " + e.code + " " + e.message + "\r\n")
		return
	}
	s.refuse(&wireError{code: e.code, message: e.message})
}

// say answers the message with text.
func (s *session) say(text string) { s.pipeline.Local(pending{kind: textAnswer, arg: []byte(text)}) }

// flush runs the pipeline. drained means that no input is left.
func (s *session) flush(drained bool) {
	p := s.pipeline
	if drained {
		s.delayNoJob()
	}
	s.allowLate()
	before := s.conn.Out().Len()
	if p.Len() > 0 || p.Ops() > 0 { // also without operations, so that older pushes come before the answers
		p.Run(s.front.broker, s.client, s)
	}
	if p.Leases.Len() > 0 {
		s.grabs = nextGrabs(s.grabs, s.conn.Out().Len()-before)
	}
	if s.reading.grab != 0 {
		s.grabs = 1 // the next job is probably on disk too
	}
	s.reset()
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
	return s.conn.Out().Len() > frontends.PauseAt && !s.eof && s.conn.Backpressured()
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
	out := s.conn.Out()
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
	p := &s.pipeline.delayed
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
	out := s.conn.Out()
	out.Put(s.encode(out.Buf(), r, p), r.Commit)
}
