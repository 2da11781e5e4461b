package conveyor

import (
	"errors"
	"slices"
	"strings"

	"github.com/tidwall/redcon"

	"broker/core"
	"broker/frontends"
	"broker/frontends/access"
	"broker/frontends/resp"
)

// session is one connection.
type session struct {
	front      *Frontend
	conn       frontends.Conn
	client     core.ClientID
	reader     resp.Reader
	authorized bool
	closing    bool
	login      *access.Principal // principal of AUTH; nil: none
	tag        uint64            // of the last lease
	waiting    *pop              // the BRPOP that waits for its reply; nil: none
	replies    []core.Reply

	dismantled map[string]uint32 // jobs whose failure or restart has begun, by uuid, with the epochs of their leases
	popped     map[string]bool   // jobs that SPOP has returned
	subscriber resp.Subscriber
}

var (
	_ frontends.Session         = (*session)(nil)
	_ frontends.Blocker         = (*session)(nil)
	_ frontends.Stopper         = (*session)(nil)
	_ frontends.HalfCloseWaiter = (*session)(nil)
)

// Feed implements frontends.Session.
func (s *session) Feed(in []byte) int {
	used := 0
	var buf [16][]byte
	for !s.closing && s.waiting == nil && used < len(in) {
		args, n, err := s.reader.Next(in[used:], buf[:0])
		if errors.Is(err, resp.ErrShort) {
			break
		}
		if err != nil {
			s.reply(redcon.AppendError(nil, "ERR "+err.Error()), 0)
			s.hangUp()
			break
		}
		used += n
		if len(args) == 0 {
			continue
		}
		s.serve(args)
		if used < len(in) && s.conn.Out().Len() > pauseAt {
			s.conn.Wake() // for the rest
			return used
		}
	}
	if s.closing {
		return len(in)
	}
	return used
}

// serve runs one command.
func (s *session) serve(raw [][]byte) {
	args := make([]string, len(raw))
	for i, a := range raw {
		args[i] = string(a)
	}
	name := strings.ToLower(args[0])
	if name == "post" || name == "host:" { // a web page made the browser connect here: the rest of the request could contain commands
		s.hangUp()
		return
	}
	c, known := commands[name]
	switch {
	case !s.authorized && !c.open:
		s.reply(redcon.AppendError(nil, "NOAUTH Authentication required."), 0)
	case !known:
		s.reply(redcon.AppendError(nil, resp.UnknownCommand(args)), 0)
	case len(args) < c.min || c.max > 0 && len(args) > c.max:
		s.reply(redcon.AppendError(nil, resp.WrongArity(name)), 0)
	case s.subscriber.Count() > 0 && !c.subscribed:
		s.reply(redcon.AppendError(nil, resp.OnlySubscriptions(name)), 0)
	case !s.hasRole(c.roles):
		s.reply(redcon.AppendError(nil, resp.NoPermission(name)), 0)
	default:
		b, commit := c.run(s, nil, args)
		s.reply(b, commit)
	}
}

// hasRole reports whether the client has one of some roles for some queue.
func (s *session) hasRole(roles []access.Role) bool {
	if len(roles) == 0 || s.front.opts.Access == nil || !s.front.opts.Access.Enabled() {
		return true
	}
	p := access.PrincipalOf(s.front.broker, s.client)
	if slices.ContainsFunc(roles, p.MaySome) {
		return true
	}
	s.front.opts.Access.CountRefusal(core.Conveyor)
	return false
}

// ask runs an operation that is answered at once.
func (s *session) ask(op core.Op) *core.Reply {
	s.replies = s.front.broker.Do(s.client, []core.Op{op}, s.replies[:0])
	for i := range s.replies {
		if r := &s.replies[i]; r.Tag == op.TagOf() {
			return r
		}
	}
	return &core.Reply{Kind: core.Failed, Err: core.ErrShutdown}
}

// reply writes an answer that rests on a commit, behind the messages that were published before.
func (s *session) reply(b []byte, commit core.Commit) {
	s.deliverMessages()
	out := s.conn.Out()
	out.Put(append(out.Buf(), b...), commit)
}

// deliverMessages writes the messages that wait.
func (s *session) deliverMessages() {
	out := s.conn.Out()
	for _, d := range s.front.messages.Take(&s.subscriber) {
		out.Put(append(out.Buf(), d.Bytes...), d.Commit)
	}
}

// Deliver implements frontends.Session.
func (s *session) Deliver() {
	s.deliverMessages()
	if s.waiting == nil {
		return
	}
	s.replies = s.front.broker.Do(s.client, nil, s.replies[:0])
	for i := range s.replies {
		s.leased(&s.replies[i])
	}
}

// Blocked implements frontends.Blocker.
func (s *session) Blocked() bool { return s.waiting != nil }

// Refusal implements frontends.Session.
func (s *session) Refusal() []byte { return redcon.AppendError(nil, errorText(core.ErrStopped)) }

// WaitsHalfClosed implements frontends.HalfCloseWaiter: a client that is gone gets no job.
func (s *session) WaitsHalfClosed() bool {
	s.cancelWait()
	return false
}

// EOF implements frontends.Session: all whole commands are answered, without waiting. The rest is not a command.
func (s *session) EOF(in []byte) {
	s.cancelWait()
	for !s.closing {
		in = in[s.Feed(in):]
		if s.waiting == nil {
			return
		}
		s.cancelWait()
	}
}

// Stop implements frontends.Stopper.
func (s *session) Stop() { s.cancelWait() }

// cancelWait answers the waiting BRPOP like a timeout. It replaces the broker client, which returns a job that has arrived in
// the meantime.
func (s *session) cancelWait() {
	if s.waiting == nil {
		return
	}
	s.waiting = nil
	s.reply(appendNoJob(nil), 0)
	s.reopen(s.login)
}

// hangUp closes the connection once all is sent.
func (s *session) hangUp() {
	s.closing = true
	s.conn.CloseAfterFlush()
}

// reopen replaces the client of the broker by one of a principal; nil: of nobody in particular.
func (s *session) reopen(p *access.Principal) {
	s.front.broker.Close(s.client)
	s.login = p
	s.client = frontends.OpenClient(s.front.broker, core.Conveyor, s.conn, p)
}

// Closed implements frontends.Session. Jobs that were popped and not confirmed go back with the client of the broker.
func (s *session) Closed() {
	s.closing = true
	s.front.messages.Leave(&s.subscriber)
	s.releaseDismantled()
	s.front.broker.Close(s.client)
}
