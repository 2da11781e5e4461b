package workq

import (
	"broker/access"
	"broker/core"
	"broker/frontends"
)

// session is one connection: the state of its parser, and the command that it is blocked on.
type session struct {
	frontends.Pipelined[pending, *pipeline]
	front *Frontend

	scanned  int    // bytes of unread input without a line end
	eofError string // the answer if the client sends EOF instead
	skip     skippedBody
	waiting  pending  // the command that waits for its reply; tag zero: none
	listing  *listing // a reply in progress; nil: none

	deliveries frontends.Deliveries

	queueName   string   // the last name in a submission or inspection
	queueOfName string   // its queue in the core
	queues      []string // of the last lease
}

var (
	_ frontends.Session         = (*session)(nil)
	_ frontends.Blocker         = (*session)(nil)
	_ frontends.HalfCloseWaiter = (*session)(nil)
	_ frontends.UnsentHandler   = (*session)(nil)
	_ frontends.Stopper         = (*session)(nil)
	_ frontends.Admitter        = (*session)(nil)

	_ frontends.Responder[pending] = (*session)(nil)
)

// Step implements frontends.Requests: it runs the first command of the input, or skips a part of a body.
func (s *session) Step(in []byte) (used int, more bool) {
	p := s.Pipeline
	s.eofError = ""
	if s.skip.state != skipNone {
		return s.skipBody(in)
	}
	line, n, bare := cutLine(in, min(s.scanned, len(in)))
	if limit := s.front.maxCommand(); n > limit || n == 0 && len(in) > limit {
		s.close(p, tooLong)
		return 0, false
	}
	if n == 0 {
		s.scanned = len(in)
		return 0, false
	}
	s.scanned = 0
	r := &p.request
	r.parse(line)
	cmd, known := commands[string(r.word)]
	if !known && frontends.IsHTTP(line) {
		s.Flush()
		s.HangUp()
		return n, false
	}
	if bare {
		p.say(badLineEnd)
		return n, true
	}
	if !cmd.body {
		s.runLine(p, cmd, known)
		return n, true
	}
	return s.runWithBody(p, cmd, n, in)
}

// runLine runs a command without a body.
func (s *session) runLine(p *pipeline, cmd command, known bool) {
	r := &p.request
	switch {
	case r.badFlags:
		p.say(badFlags)
	case !known:
		p.say(badCommand)
	case !cmd.fits(r):
		p.say(badArgs)
	default:
		cmd.run(s, p, r)
	}
}

// runWithBody runs a command whose line is the first n bytes of in, once its body is complete. A malformed line is
// answered at once, and its body is skipped.
func (s *session) runWithBody(p *pipeline, cmd command, n int, in []byte) (used int, more bool) {
	r := &p.request
	if wrong := cmd.lineError(r); wrong != "" {
		p.say(wrong)
		if size := cmd.guessedBody(r); size >= 0 {
			s.skip = skippedBody{state: skipLine, size: size}
			return n, true
		}
		s.skipBodyOf(p, cmd)
		return n, true
	}
	size, ok := parseSize(r.args[cmd.args-1])
	if !ok || size < 0 || size > int64(s.front.opts.MaxBodyBytes) {
		p.say(cmd.badSize)
		s.startSkip(size)
		return n, true
	}
	end := n + int(size)
	if end+len(crlf) > s.front.maxCommand() {
		s.close(p, tooLong)
		return n, false
	}
	at, found := cutBodyEnd(in[min(end, len(in)):])
	switch found {
	case endShort:
		s.Needed, s.eofError = max(end, len(in))+1, cmd.badSize
		return 0, false
	case endLost:
		s.close(p, cmd.badSize)
	case endWrong:
		p.say(cmd.badSize)
	case endGood:
		r.body = in[n:end]
		if len(r.flags) > cmd.flags && cmd.standardFlags(r) > cmd.flags {
			p.say(badArgs)
			break
		}
		cmd.run(s, p, r)
	}
	return end + at, true
}

// close answers and closes the connection.
func (s *session) close(p *pipeline, text string) {
	p.say(text)
	s.Flush()
	s.HangUp()
}

// Flush runs the pipeline. Its last command may still wait for its reply afterwards.
func (s *session) Flush() {
	p := s.Pipeline
	if p.Len() == 0 {
		return
	}
	s.RunOnly()
	if last, tag, _ := p.Last(); last.mayWait && !last.answered {
		s.waiting = *last
		s.waiting.tag = tag
	}
	p.Reset()
}

// Respond implements frontends.Responder.
func (s *session) Respond(p *pending, r *core.Reply) {
	switch {
	case r == nil:
		s.say(p.text)
	case p.mayWait && r.Kind == core.Submitted: // the first of two replies to run
	case r.Kind == core.Reading:
		p.reading = true
	default:
		p.answered = true
		s.write(p, r)
	}
}

// Push implements frontends.Responder. The only push is the reply to the command that the session is blocked on.
func (s *session) Push(r *core.Reply) {
	switch {
	case s.waiting.tag == 0 || r.Tag != s.waiting.tag || r.Kind == core.Submitted:
	case r.Kind == core.Reading:
		s.waiting.reading = true
	default:
		p := s.waiting
		s.waiting = pending{}
		s.write(&p, r)
	}
}

// write writes the answer to a command.
func (s *session) write(p *pending, r *core.Reply) {
	out := s.Conn.Out()
	buf := out.Buf()
	if r.Kind == core.Failed {
		buf = append(buf, errorText(r.Err)...)
	} else {
		buf = p.answer(s, buf, p, r)
	}
	out.Put(buf, r.Commit)
	if p.isDelete && r.Kind != core.Failed {
		s.noteDelete(p.id)
	}
	if p.isLease && r.Kind == core.Assigned {
		s.deliveries.Add(out, r)
	}
}

// noteDelete reports a deleted job for the audit log.
func (s *session) noteDelete(id string) {
	s.Note(s.front.opts.Audit, access.Change{Action: "job.delete", Target: id})
}

// say writes an answer that needs no commit.
func (s *session) say(text string) { s.Conn.Out().WriteString(text) }

// Deliver implements frontends.Session.
func (s *session) Deliver() {
	if s.listing != nil {
		s.proceed()
		return
	}
	if s.waiting.tag == 0 {
		return
	}
	s.Begin()
	defer s.End()
	s.Run()
}

// Refusal implements frontends.Session.
func (s *session) Refusal() []byte { return []byte(storeFailed) }

// EOF implements frontends.Session. It answers all remaining commands without waiting.
func (s *session) EOF(input []byte) {
	closing := s.Closing
	s.Pipelined.EOF(input)
	if !closing {
		s.say(s.eofError)
	}
}

// Unblock implements frontends.Requests.
func (s *session) Unblock() {
	if s.waiting.tag != 0 {
		s.cancelWait(timedOut)
	}
	if s.listing != nil {
		s.proceed()
	}
}

// Dismiss implements frontends.Admitter.
func (s *session) Dismiss(text string) {
	s.say("-CLIENT-ERROR Not allowed: " + text + crlf)
	s.HangUp()
}

// Blocked implements frontends.Blocker.
func (s *session) Blocked() bool { return s.waiting.tag != 0 || s.listing != nil }

// WaitsHalfClosed implements frontends.HalfCloseWaiter: a half-closed client starts no run and gets no new job. It
// still gets results, lists, and a job whose body is being read from disk.
func (s *session) WaitsHalfClosed() bool {
	if s.waiting.tag != 0 && !s.waiting.isResult && !s.waiting.reading {
		s.cancelWait(timedOut)
	}
	return s.Blocked()
}

// Stop implements frontends.Stopper.
func (s *session) Stop() {
	if s.waiting.tag != 0 {
		s.cancelWait(stopping)
	}
}

// cancelWait answers the blocked command with text, unless its reply has arrived. If an outcome has arrived in the
// meantime, it is still written. A job that has arrived is not: it returns to its place in the queue.
func (s *session) cancelWait(text string) {
	if !s.waiting.isLease {
		s.Deliver()
	}
	if s.waiting.tag == 0 {
		return
	}
	s.waiting = pending{}
	s.CancelWaits()
	s.say(text)
}

// Closed implements frontends.Session.
func (s *session) Closed() {
	s.Closing, s.listing = true, nil
	s.front.broker.Close(s.Client)
}

// HandleUnsent implements frontends.UnsentHandler.
func (s *session) HandleUnsent(bytes int) {
	s.deliveries.Release(s.front.broker, s.Conn.Out(), bytes)
}
