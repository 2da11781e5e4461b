package qless

import (
	"github.com/tidwall/redcon"

	"broker/core"
	"broker/frontends/access"
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
	given := args[len(args)-1]
	if s.login(name, given) {
		s.authorized = true
		return ok(b)
	}
	open := s.f.opts.Password == "" && (s.f.opts.Access == nil || !s.f.opts.Access.Enabled())
	switch {
	case open && name == "default": // as Redis has it, any password of a user without one is right
		return ok(b)
	case open && name == "":
		return refuse(b, "ERR AUTH <password> called without any password configured for the default user. "+
			"Are you sure your configuration is correct?")
	}
	right := s.f.opts.Password != "" && access.SamePassword(given, s.f.opts.Password)
	if !right || name != "" && name != "default" {
		return s.wrongPassword(b, name)
	}
	s.authorized = true
	return ok(b)
}

// wrongPassword refuses AUTH. After too many failed logins it ends the connection too.
func (s *session) wrongPassword(b []byte, name string) ([]byte, core.Commit) {
	from := ""
	if a := s.conn.RemoteAddr(); a != nil {
		from = a.String()
	}
	if s.f.opts.Access.Logins().Failed(from, name, s.f.broker.Now()) > 0 {
		defer s.hangUp()
	}
	return refuse(b, "WRONGPASS invalid username-password pair or user is disabled.")
}
