package beanstalk

import (
	"broker/access"
	"broker/core"
	"broker/frontends"
)

// session is one connection.
type session struct {
	frontends.Pipelined[pending, *pipeline]
	front *Frontend

	scanned  int    // bytes of unread input without a line end
	skip     uint64 // bytes of a refused body left to skip
	skipLine bool   // the current line is too long and is skipped

	used    string
	usedIn  string // the core's name of the used tube; empty: not computed yet
	watched []string
	queues  []string // the core's names of watched; nil: not computed yet

	held   map[uint64]lease // jobs of the client
	soonAt core.Instant     // see soon
	wait   reserving        // the waiting reserve
	waits  bool             // it counts as waiting
	again  bool             // the reserve must ask again
	task   task             // the running long command; nil: none

	produces, consumes bool // counts as a producer, as a worker
}

var (
	_ frontends.Session         = (*session)(nil)
	_ frontends.Blocker         = (*session)(nil)
	_ frontends.HalfCloseWaiter = (*session)(nil)
	_ frontends.Stopper         = (*session)(nil)
	_ frontends.Admitter        = (*session)(nil)

	_ frontends.Responder[pending] = (*session)(nil)
)

// Step implements frontends.Requests: it runs the first command of the input, or skips input that is not a command.
func (s *session) Step(in []byte) (used int, more bool) {
	p := s.Pipeline
	if s.skip > 0 {
		used = int(min(s.skip, uint64(len(in))))
		s.skip -= uint64(used)
		return used, s.skip == 0
	}
	line, n := cutLine(in, min(s.scanned, len(in)))
	if n == 0 {
		return s.wantLineEnd(in)
	}
	s.scanned = 0
	long := s.skipLine || n > maxLine
	switch {
	case !long && len(line) >= 4 && string(line[:4]) == "put ":
		return s.put(p, line[3:], n, in)
	case !s.skipLine && frontends.IsHTTP(line[:min(len(line), maxLine)]): // also if the line is too long
		s.Flush()
		s.HangUp()
	case long || !validLine(line):
		s.skipLine = false
		p.say(badFormat)
	default:
		s.runLine(p, line)
	}
	return n, true
}

// wantLineEnd keeps an incomplete line, or skips a part of a line that is too long.
func (s *session) wantLineEnd(in []byte) (used int, more bool) {
	if len(in) < maxLine {
		s.scanned = len(in)
		return 0, false
	}
	if !s.skipLine && frontends.IsHTTP(in[:maxLine]) {
		s.Flush()
		s.HangUp()
		return len(in), false
	}
	s.skipLine, s.scanned = true, 0
	used = len(in)
	if in[used-1] == '\r' { // may be the first half of a CRLF
		used--
		s.scanned = 1
	}
	return used, false
}

// runLine runs a command without a body.
func (s *session) runLine(p *pipeline, line []byte) {
	word := line
	for i, c := range line {
		if c == ' ' {
			word = line[:i]
			break
		}
	}
	cmd, known := commands[string(word)]
	a := &args{rest: line[len(word):]}
	switch {
	case !known:
		p.say(unknown)
	case cmd.args && len(a.rest) == 0 && !cmd.bare:
		p.say(unknown)
	case cmd.args == (len(a.rest) == 0):
		p.say(badFormat)
	default:
		cmd.run(s, p, a)
	}
}

// put runs "put pri delay ttr bytes", whose line is the first n bytes of in, once its body is complete.
func (s *session) put(p *pipeline, rest []byte, n int, in []byte) (used int, more bool) {
	a := &args{rest: rest}
	pri, delay, ttr, size := a.small(), a.small(), a.small(), a.small()
	if !a.end() {
		p.say(badFormat)
		if size, ok := bodySize(rest); ok {
			s.skip = size + uint64(len(crlf))
		}
		return n, true
	}
	if size > uint64(s.front.opts.MaxBodyBytes) {
		s.count(verbPut)
		p.say(tooBig)
		s.skip = size + uint64(len(crlf))
		return n, true
	}
	end := n + int(size)
	if len(in) < end+len(crlf) {
		s.Needed = end + len(crlf)
		return 0, false
	}
	s.count(verbPut)
	if string(in[end:end+len(crlf)]) != crlf {
		p.say(expectedCRLF)
		s.Flush()
		s.HangUp()
		return n, false
	}
	if !s.produces {
		s.produces = true
		s.front.producers.Add(1)
	}
	op := p.Submits.Next()
	op.Job = s.newJob(pri, delay, ttr, in[n:end])
	op.Tag = p.expect(pending{answer: answerPut, put: true})
	p.Ask(op)
	return end + len(crlf), true
}

// countWorker counts the connection as a worker.
func (s *session) countWorker() {
	if !s.consumes {
		s.consumes = true
		s.front.workers.Add(1)
	}
}

// Flush runs the pipeline. A reserve may still wait afterwards.
func (s *session) Flush() {
	for s.Pipeline.Len() > 0 {
		s.Run()
		s.waitAgain(s.Pipeline)
	}
}

// waitAgain makes the waiting reserve ask again if needed.
func (s *session) waitAgain(p *pipeline) {
	if s.again {
		s.again = false
		s.lease(p)
		return
	}
	if s.wait.tag != 0 {
		s.beginWait()
	}
}

// Respond implements frontends.Responder.
func (s *session) Respond(p *pending, r *core.Reply) {
	if r == nil {
		out := s.Conn.Out()
		out.Put(append(out.Buf(), p.text...), p.commit)
		return
	}
	if p.left > 0 {
		p.left--
	}
	if p.answered {
		return
	}
	if r.Kind == core.Reading {
		s.wait.reads = true
		return
	}
	if r.Kind == core.Failed && p.left > 0 {
		return
	}
	s.write(p, r)
}

// Push implements frontends.Responder. The only push is the reply to the reserve that the session is blocked on.
func (s *session) Push(r *core.Reply) {
	switch {
	case s.wait.tag == 0 || r.Tag != s.wait.tag:
	case r.Kind == core.Reading:
		s.wait.reads = true
	default:
		s.write(&pending{answer: answerReserve}, r)
	}
}

// write writes the answer to a command, unless it comes with a later reply.
func (s *session) write(p *pending, r *core.Reply) {
	out := s.Conn.Out()
	buf := out.Buf()
	if r.Kind == core.Failed {
		if s.wait.tag == r.Tag {
			s.endWait()
		}
		if isNotFound(r.Err) { // the client has lost the job; after other errors it may try again
			delete(s.held, p.seq)
		}
		p.answered = true
		out.Put(append(buf, errorText(r.Err, p.put)...), r.Commit)
		return
	}
	b, done := p.answer(s, buf, p, r)
	if done {
		p.answered = true
		out.Put(b, r.Commit)
	}
}

// hold keeps a tube alive for the connection; free ends that.
func (s *session) hold(tube string) { s.do(&core.HoldQueue{Queue: s.front.queue(tube)}) }

func (s *session) free(tube string) { s.do(&core.HoldQueue{Queue: s.front.queue(tube), Free: true}) }

// do applies operations that are answered at once. There must be no waiting lease.
func (s *session) do(ops ...core.Op) []core.Reply { return s.front.broker.Do(s.Client, ops, nil) }

// unguarded asks as the session's client what the front-end needs for its own work, whatever the rights of the
// principal. A client of its own would be wrong: the commits of the replies wake the client that asked, and the session
// must be woken.
func (s *session) unguarded(ops ...core.Op) []core.Reply {
	return s.front.broker.Unguarded().Do(s.Client, ops, nil)
}

// queueInfo returns a queue, nil if there is none, and the commit that the answer depends on.
func (s *session) queueInfo(name string) (info *core.QueueInfo, commit core.Commit) {
	for _, r := range s.unguarded(&core.InspectQueue{Tag: 1, Queue: name}) {
		commit = max(commit, r.Commit)
		if r.Kind == core.Queues && len(r.Queues) == 1 {
			info = &r.Queues[0]
		}
	}
	return info, commit
}

// usedQueue is the queue of the used tube.
func (s *session) usedQueue() string {
	if s.usedIn == "" {
		s.usedIn = s.front.queue(s.used)
	}
	return s.usedIn
}

// watchedQueues returns the queues of the watched tubes. The core only reads the slice.
func (s *session) watchedQueues() []string {
	if s.queues == nil {
		for _, tube := range s.watched {
			s.queues = append(s.queues, s.front.queue(tube))
		}
	}
	return s.queues
}

// note reports a change for the audit log.
func (s *session) note(action, target, detail string) {
	s.Note(s.front.opts.Audit, access.Change{
		Action: action, Target: target, Detail: detail,
	})
}

// Deliver implements frontends.Session.
func (s *session) Deliver() {
	if s.task != nil {
		s.stepTask()
		return
	}
	if s.wait.tag == 0 {
		return
	}
	s.Begin()
	defer s.End()
	s.Run()
	s.waitAgain(s.Pipeline)
	s.Flush()
}

// Refusal implements frontends.Session.
func (s *session) Refusal() []byte { return []byte(internalError) }

// Unblock implements frontends.Requests.
func (s *session) Unblock() {
	s.stopTask()
	s.endReserve(timedOut)
}

// Dismiss implements frontends.Admitter. The protocol's error for a refused command has no room for the text.
func (s *session) Dismiss(string) {
	s.Conn.Out().WriteString(unknown)
	s.HangUp()
}

// Blocked implements frontends.Blocker.
func (s *session) Blocked() bool { return s.wait.tag != 0 || s.task != nil }

// WaitsHalfClosed implements frontends.HalfCloseWaiter: a half-closed client gets no new job, but still gets a job
// whose body is being read from disk, and the answer of a long command.
func (s *session) WaitsHalfClosed() bool {
	s.HalfClosed = true
	if !s.wait.reads {
		s.endReserve(timedOut)
	}
	return s.Blocked()
}

// Stop implements frontends.Stopper.
func (s *session) Stop() { s.Unblock() }

// endReserve ends the waiting reserve: with a job that has arrived, else with text.
func (s *session) endReserve(text string) {
	if s.wait.tag == 0 {
		return
	}
	s.wait.until = s.front.broker.Now()
	s.Begin()
	defer s.End()
	s.Pipeline.Ask(&core.CancelLease{})
	s.Run()
	s.again = false
	if s.wait.tag != 0 {
		s.endWait()
		s.Conn.Out().WriteString(text)
	}
}

// Closed implements frontends.Session.
func (s *session) Closed() {
	s.Closing = true
	s.task = nil
	s.endWait()
	s.front.broker.Close(s.Client)
	s.front.connections.Add(-1)
	if s.produces {
		s.front.producers.Add(-1)
	}
	if s.consumes {
		s.front.workers.Add(-1)
	}
	s.front.tubes.change(s.used, func(t *tube) { t.using-- })
	s.eachWatched(func(t *tube) { t.watching-- })
}

// first finds the first jobs of the used tube in an order, whether there are more, and the commit that the answer
// depends on. It may read any number of jobs.
func (s *session) first(order core.Order, limit int) (found []core.JobInfo, more bool, commit core.Commit) {
	queue := s.usedQueue()
	if !s.AllowedFor(access.Read, queue) {
		return nil, false, 0
	}
	for cursor := ""; ; {
		op := &core.Find{
			Filter: core.Filter{Queues: []string{queue}, States: order.States()}, Order: order, Limit: limit,
			Cursor: cursor, Brief: true,
		}
		for _, r := range s.unguarded(op) {
			commit = max(commit, r.Commit)
			if r.Kind != core.Listed {
				return found, false, commit
			}
			found = append(found, r.Jobs...)
			if cursor = r.NextCursor; cursor == "" || len(found) >= limit || r.Answer != nil && !r.Stopped {
				return found, cursor != "", commit
			}
		}
	}
}
