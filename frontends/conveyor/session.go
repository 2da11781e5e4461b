package conveyor

import (
	"slices"

	"github.com/tidwall/redcon"

	"broker/access"
	"broker/core"
	"broker/frontends"
	"broker/frontends/shared/resp"
)

// session is one connection.
type session struct {
	resp.Connection
	front   *Frontend
	tag     uint64 // of the last lease
	waiting *pop   // the BRPOP that waits for its reply; nil: none
	replies []core.Reply

	walking *walk // the walk in progress; nil: none

	pipelines map[string]uint32 // jobs whose failure or restart has begun, by uuid, with the epochs of their leases
	popped    map[string]bool   // jobs that SPOP has returned
}

var (
	_ frontends.Session         = (*session)(nil)
	_ frontends.Blocker         = (*session)(nil)
	_ frontends.Stopper         = (*session)(nil)
	_ frontends.HalfCloseWaiter = (*session)(nil)
)

// Serve implements resp.Session: it runs one command.
func (s *session) Serve(args []string) {
	c, name, refusal := resp.Find(commands, &s.Connection, args)
	if refusal == "" && !s.hasRole(c.Roles) {
		refusal = resp.NoPermission(name)
	}
	if refusal != "" {
		s.Reply(redcon.AppendError(nil, refusal))
		return
	}
	s.Reply(c.Run(s, nil, args))
}

// hasRole reports whether the client has one of some roles for some queue.
func (s *session) hasRole(roles []access.Role) bool {
	if len(roles) == 0 || !s.front.broker.Control().Enabled() {
		return true
	}
	p := s.Principal()
	if slices.ContainsFunc(roles, p.MaySome) {
		return true
	}
	s.front.broker.CountRefusal()
	return false
}

// ask runs an operation that is answered at once.
func (s *session) ask(op core.Op) *core.Reply { return s.askOf(s.front.broker, op) }

// unguarded is ask for what the front-end needs for its own work, whatever the rights of the principal. It asks as the
// session's client too: that is the client which the commit wakes.
func (s *session) unguarded(op core.Op) *core.Reply {
	return s.askOf(s.front.broker.Unguarded(), op)
}

func (s *session) askOf(b core.Broker, op core.Op) *core.Reply {
	s.replies = s.Do(b, []core.Op{op}, s.replies[:0])
	for i := range s.replies {
		if r := &s.replies[i]; r.Tag == op.TagOf() {
			return r
		}
	}
	return &core.Reply{Kind: core.Failed, Err: core.ErrShutdown}
}

// Deliver implements frontends.Session.
func (s *session) Deliver() {
	s.Connection.Deliver()
	if s.walking != nil {
		s.walkOn()
	}
	if s.waiting == nil {
		return
	}
	s.replies = s.Do(s.front.broker, nil, s.replies[:0])
	for i := range s.replies {
		s.leased(&s.replies[i])
	}
}

// Blocked implements frontends.Blocker.
func (s *session) Blocked() bool { return s.waiting != nil || s.walking != nil }

// Refusal implements frontends.Session.
func (s *session) Refusal() []byte { return redcon.AppendError(nil, errorText(core.ErrStopped)) }

// WaitsHalfClosed implements frontends.HalfCloseWaiter: a half-closed client gets no job.
func (s *session) WaitsHalfClosed() bool {
	s.Unblock()
	return false
}

// Stop implements frontends.Stopper.
func (s *session) Stop() { s.Unblock() }

// Unblock implements frontends.Requests: it answers the waiting BRPOP like a timeout. A job that has arrived in the
// meantime returns to its queue.
func (s *session) Unblock() {
	for s.walking != nil {
		s.walkOn()
	}
	if s.waiting == nil {
		return
	}
	s.waiting = nil
	s.CancelWaits()
	s.Reply(appendNoJob(nil))
}

// Closed implements frontends.Session. Jobs that were popped and not confirmed go back with the client of the broker.
func (s *session) Closed() {
	s.abortPipelines()
	s.Connection.Closed()
}
