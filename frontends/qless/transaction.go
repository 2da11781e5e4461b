package qless

import (
	"github.com/tidwall/redcon"

	"broker/core"
	"broker/frontends/shared/resp"
)

func multi(s *session, b []byte, _ []string) ([]byte, core.Commit) {
	if s.multi {
		return resp.Refuse(b, "ERR MULTI calls can not be nested")
	}
	s.multi = true
	return resp.OK(b)
}

// Limits of a transaction.
const (
	maxQueued      = 10_000
	maxQueuedBytes = 64 << 20
)

// enqueue keeps a command for EXEC.
func (s *session) enqueue(c redisCommand, args []string) {
	for _, a := range args {
		s.size += len(a)
	}
	if len(s.queued) == maxQueued || s.size > maxQueuedBytes {
		s.aborted = true
		s.Reply(redcon.AppendError(nil, "OOM the transaction is too large"), 0)
		return
	}
	s.queued = append(s.queued, queuedCommand{c, args})
	s.Reply(redcon.AppendString(nil, "QUEUED"), 0)
}

func (s *session) endMulti() { s.multi, s.aborted, s.queued, s.size = false, false, nil, 0 }

func exec(s *session, b []byte, _ []string) ([]byte, core.Commit) {
	if !s.multi {
		return resp.Refuse(b, "ERR EXEC without MULTI")
	}
	queued, aborted := s.queued, s.aborted
	s.endMulti()
	if aborted {
		return resp.Refuse(b, "EXECABORT Transaction discarded because of previous errors.")
	}
	defer s.enter()()
	s.inside = true
	defer func() { s.inside = false }()
	newest := core.Commit(0)
	b = redcon.AppendArray(b, len(queued))
	for _, q := range queued {
		var commit core.Commit
		b, commit = q.command.Run(s, b, q.args)
		newest = max(newest, commit)
	}
	return b, newest
}

func discard(s *session, b []byte, _ []string) ([]byte, core.Commit) {
	if !s.multi {
		return resp.Refuse(b, "ERR DISCARD without MULTI")
	}
	s.endMulti()
	return resp.OK(b)
}
