package workq

import (
	"broker/core"
	"broker/frontends"
)

// Session is one connection: where it stands in its input, and the command it is blocked on.
type Session struct {
	front  *Frontend
	conn   frontends.Conn
	client core.ClientID
	tag    uint64 // of the last operation

	scanned  int    // bytes of unread input known to hold no line end
	needed   int    // bytes without which the command in front is not complete; zero: unknown
	eofError string // what is said if they never come; empty: nothing
	skip     skippedBody
	waiting  pending // the command that waits for its reply; tag zero: none
	closing  bool    // nothing more is read

	deliveries frontends.Deliveries

	queueName   string // the last queue's name as the client gave it, and in the core
	queueOfName string
	queues      []string // and in the core
}

var (
	_ frontends.Session         = (*Session)(nil)
	_ frontends.Blocker         = (*Session)(nil)
	_ frontends.HalfCloseWaiter = (*Session)(nil)
	_ frontends.UnsentHandler   = (*Session)(nil)
	_ frontends.Stopper         = (*Session)(nil)

	_ frontends.Responder[pending] = (*Session)(nil)
)

// skippedBody is a body that is not wanted: it is left out of the input.
type skippedBody struct {
	state       skipState
	size        int64 // still to come
	alternative int64 // skipWhole: what the size may be instead, and larger; below zero: nothing
}

// skipState says how a refused body is left out.
type skipState uint8

// There is none. It is left out just as the body of a command that is right. It is left out once it is there as a whole
// and ends in CRLF: else it was not sent, and what is there are commands. It may not have been sent at all, for the line
// lacked an argument: it is left out if the next line is just as long as it is. It is too large to be kept: it is left
// out as it comes, then the CRLF behind it, if there is one.
const (
	skipNone skipState = iota
	skipExact
	skipWhole
	skipLine
	skipStream
	skipEnd
)

// Feed implements frontends.Session.
func (s *Session) Feed(in []byte) int {
	if s.closing {
		return len(in)
	}
	if s.waiting.tag != 0 || len(in) < s.needed {
		return 0
	}
	p := s.begin()
	defer s.end(p)
	used := 0
	for len(in) > used && !s.closing && s.waiting.tag == 0 {
		n, more := s.step(p, in[used:])
		used += n
		if !more {
			break
		}
		if p.due {
			s.flush(p)
			if s.conn.Out().Len() > pauseAt {
				return used // so that the loop can send before there is more
			}
		}
	}
	s.flush(p)
	if s.closing {
		return len(in)
	}
	return used
}

// step takes one command, or one part of a refused body, from the front of in. More is false when what is left is not
// complete.
func (s *Session) step(p *pipeline, in []byte) (used int, more bool) {
	s.needed, s.eofError = 0, ""
	if s.skip.state != skipNone {
		return s.skipBody(p, in)
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
	if bare {
		p.say(badLineEnd)
		return n, true
	}
	r := &p.request
	r.parse(line)
	cmd, known := commands[string(r.word)]
	if !cmd.body {
		s.runLine(p, cmd, known)
		return n, true
	}
	return s.runWithBody(p, cmd, n, in)
}

// plain runs a command that is a line only.
func (s *Session) runLine(p *pipeline, cmd command, known bool) {
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

// runWithBody runs a command whose line is the first n bytes of in, once its body is there. What can be seen to be wrong
// by the line alone is answered at once, and the body that was declared is left out.
func (s *Session) runWithBody(p *pipeline, cmd command, n int, in []byte) (used int, more bool) {
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
		s.startSkip(p, size)
		return n, true
	}
	end := n + int(size)
	if end+len(crlf) > s.front.maxCommand() {
		s.close(p, tooLong)
		return n, false
	}
	at, found := bodyEndAt(in, end)
	switch found {
	case endShort:
		s.needed, s.eofError = max(end, len(in))+1, cmd.badSize
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

// skipBodyOf begins to leave out the body behind a line that has all arguments and is wrong.
func (s *Session) skipBodyOf(p *pipeline, cmd command) {
	r, limit := &p.request, int64(s.front.opts.MaxBodyBytes)
	switch {
	case len(r.args) < cmd.args:
	case len(r.args) > cmd.args:
		size, other := cmd.declaredBodies(r, limit)
		s.startSkip(p, size)
		s.skip.alternative = other
	default:
		if size, ok := parseSize(r.args[cmd.args-1]); ok {
			if s.startSkip(p, size); s.skip.state == skipWhole {
				s.skip.state = skipExact
			}
		}
	}
}

// refuse begins to leave out a body of a declared size.
func (s *Session) startSkip(p *pipeline, size int64) {
	switch {
	case size < 0:
	case size <= int64(s.front.opts.MaxBodyBytes):
		s.skip = skippedBody{state: skipWhole, size: size, alternative: -1}
	case size <= maxSkip:
		s.skip = skippedBody{state: skipStream, size: size}
	default:
		s.flush(p)
		s.shutdown()
	}
}

// skipBody takes what it can of a refused body.
func (s *Session) skipBody(p *pipeline, in []byte) (used int, more bool) {
	switch s.skip.state {
	case skipNone:
	case skipExact:
		end := int(s.skip.size)
		at, found := bodyEndAt(in, end)
		if found == endShort {
			s.needed = max(end, len(in)) + 1
			return 0, false
		}
		if s.skip = (skippedBody{}); found == endLost {
			s.flush(p)
			s.shutdown()
		}
		used = end + at
	case skipWhole:
		end := int(s.skip.size)
		if len(in) < end+len(crlf) {
			s.needed = end + len(crlf)
			return 0, false
		}
		if string(in[end:end+len(crlf)]) == crlf {
			used = end + len(crlf)
		} else if s.skip.alternative >= 0 {
			s.skip.size, s.skip.alternative = s.skip.alternative, -1
			return 0, true
		}
		s.skip = skippedBody{}
	case skipLine:
		line, n, bare := cutLine(in, min(s.scanned, len(in)))
		if n == 0 && len(in) < int(s.skip.size)+len(crlf) {
			s.scanned = len(in)
			return 0, false
		}
		if s.scanned = 0; n > 0 && !bare && len(line) == int(s.skip.size) {
			used = n
		}
		s.skip = skippedBody{}
	case skipStream:
		used = int(min(s.skip.size, int64(len(in))))
		s.skip.size -= int64(used)
		if s.skip.size > 0 {
			return used, false
		}
		s.skip.state = skipEnd
	case skipEnd:
		if len(in) == 0 || len(in) == 1 && in[0] == '\r' {
			return 0, false
		}
		if string(in[:len(crlf)]) == crlf {
			used = len(crlf)
		}
		s.skip = skippedBody{}
	}
	return used, true
}

// close says a last word.
func (s *Session) close(p *pipeline, text string) {
	p.say(text)
	s.flush(p)
	s.shutdown()
}

// shutdown reads nothing more and closes the connection when all that was written is sent.
func (s *Session) shutdown() {
	s.closing = true
	s.conn.CloseAfterFlush()
}

// flush has the commands of the pipeline decided and answered. The last command may be left waiting.
func (s *Session) flush(p *pipeline) {
	if p.Len() == 0 {
		return
	}
	p.Run(s.front.broker, s.client, s)
	if last, tag, _ := p.Last(); last.mayWait && !last.answered {
		s.waiting = *last
		s.waiting.tag = tag
	}
	p.reset()
}

// Respond implements frontends.Responder.
func (s *Session) Respond(p *pending, r *core.Reply) {
	switch {
	case r == nil:
		s.say(p.text)
	case p.mayWait && r.Kind == core.Submitted: // the first of two replies to run
	default:
		p.answered = true
		s.write(p, r)
	}
}

// Push implements frontends.Responder: it answers the command that the session is blocked on.
func (s *Session) Push(r *core.Reply) {
	if r.Tag == s.waiting.tag && r.Kind != core.Submitted {
		p := s.waiting
		s.waiting = pending{}
		s.write(&p, r)
	}
}

// write puts the answer to one command into the outbox.
func (s *Session) write(p *pending, r *core.Reply) {
	out := s.conn.Out()
	buf := out.Buf()
	if r.Kind == core.Failed {
		buf = append(buf, errorText(r.Err)...)
	} else {
		buf = p.answer(s, buf, p, r)
	}
	out.Put(buf, r.Commit)
	if p.isLease && r.Kind == core.Assigned {
		s.deliveries.Add(out, r)
	}
}

// say puts text that rests on no commit into the outbox.
func (s *Session) say(text string) { s.conn.Out().WriteString(text) }

// Deliver implements frontends.Session.
func (s *Session) Deliver() {
	if s.waiting.tag == 0 {
		return
	}
	p := s.begin()
	defer s.end(p)
	p.Run(s.front.broker, s.client, s)
}

// Refusal implements frontends.Session.
func (s *Session) Refusal() []byte { return []byte(storeFailed) }

// EOF implements frontends.Session: everything that was sent is answered, without waiting for anything.
func (s *Session) EOF(input []byte) {
	for !s.closing {
		if s.waiting.tag != 0 {
			s.cancelWait(timedOut)
		}
		input = input[s.Feed(input):]
		if s.waiting.tag == 0 {
			break
		}
	}
	if !s.closing {
		s.say(s.eofError)
		s.closing = true
	}
}

// Blocked implements frontends.Blocker.
func (s *Session) Blocked() bool { return s.waiting.tag != 0 }

// WaitsHalfClosed implements frontends.HalfCloseWaiter: a client that may be gone takes no job and has no run, but may have a result.
func (s *Session) WaitsHalfClosed() bool {
	if s.waiting.tag != 0 && !s.waiting.isResult {
		s.cancelWait(timedOut)
	}
	return s.waiting.tag != 0
}

// Stop implements frontends.Stopper.
func (s *Session) Stop() {
	if s.waiting.tag != 0 {
		s.cancelWait(stopping)
	}
}

// abandon ends the wait of the command in work, and says why if nothing else has come. The client of the broker is
// exchanged for a new one: that takes back whatever was parked in its name. An outcome that has come meanwhile is still
// told; a job is not taken any more, and stands at its place again.
func (s *Session) cancelWait(text string) {
	if !s.waiting.isLease {
		s.Deliver()
	}
	if s.waiting.tag == 0 {
		return
	}
	s.waiting = pending{}
	s.front.broker.Close(s.client)
	s.client = s.front.open(s.conn)
	s.say(text)
}

// Closed implements frontends.Session.
func (s *Session) Closed() {
	s.closing = true
	s.front.broker.Close(s.client)
}

// HandleUnsent implements frontends.UnsentHandler.
func (s *Session) HandleUnsent(bytes int) {
	s.deliveries.Release(s.front.broker, core.Workq, s.conn.Out(), bytes)
}
