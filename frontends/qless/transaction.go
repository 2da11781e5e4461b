package qless

import (
	"github.com/tidwall/redcon"

	"broker/core"
	"broker/frontends/resp"
)

func multi(s *session, b []byte, _ []string) ([]byte, core.Commit) {
	if s.multi {
		return refuse(b, "ERR MULTI calls can not be nested")
	}
	s.multi = true
	return ok(b)
}

// Limits of a transaction.
const (
	maxQueued      = 10_000
	maxQueuedBytes = 64 << 20
)

// enqueue keeps a command for EXEC.
func (s *session) enqueue(c redisEntry, args []string) {
	for _, a := range args {
		s.size += len(a)
	}
	if len(s.queued) == maxQueued || s.size > maxQueuedBytes {
		s.aborted = true
		s.reply(redcon.AppendError(nil, "OOM the transaction is too large"), 0)
		return
	}
	s.queued = append(s.queued, queuedCommand{c.run, args})
	s.reply(redcon.AppendString(nil, "QUEUED"), 0)
}

func (s *session) endMulti() { s.multi, s.aborted, s.queued, s.size = false, false, nil, 0 }

func exec(s *session, b []byte, _ []string) ([]byte, core.Commit) {
	if !s.multi {
		return refuse(b, "ERR EXEC without MULTI")
	}
	queued, aborted := s.queued, s.aborted
	s.endMulti()
	if aborted {
		return refuse(b, "EXECABORT Transaction discarded because of previous errors.")
	}
	defer s.enter()()
	s.inside = true
	defer func() { s.inside = false }()
	newest := core.Commit(0)
	b = redcon.AppendArray(b, len(queued))
	for _, q := range queued {
		var commit core.Commit
		b, commit = q.run(s, b, q.args)
		newest = max(newest, commit)
	}
	return b, newest
}

func discard(s *session, b []byte, _ []string) ([]byte, core.Commit) {
	if !s.multi {
		return refuse(b, "ERR DISCARD without MULTI")
	}
	s.endMulti()
	return ok(b)
}

// auth [user] password
func auth(s *session, b []byte, args []string) ([]byte, core.Commit) {
	name := ""
	if len(args) == 3 {
		name = args[1]
	}
	o := &s.f.opts
	login := resp.Credentials{Password: o.Password, Access: o.Access}.Auth(name, args[len(args)-1], s.address(), s.f.broker.Now())
	if login.HangUp {
		defer s.hangUp()
	}
	if login.Refusal != "" {
		return refuse(b, login.Refusal)
	}
	if login.Principal != nil {
		s.reopen(login.Principal)
	}
	s.authorized = true
	return ok(b)
}

// address is the client's address, for the audit log and the login limiter.
func (s *session) address() string {
	if a := s.conn.RemoteAddr(); a != nil {
		return a.String()
	}
	return ""
}
