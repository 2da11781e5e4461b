package qless

import "github.com/tidwall/redcon"

func multi(s *session, b []byte, _ []string) []byte {
	if s.multi {
		return redcon.AppendError(b, "ERR MULTI calls can not be nested")
	}
	s.multi = true
	return redcon.AppendOK(b)
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
		s.Reply(redcon.AppendError(nil, "OOM the transaction is too large"))
		return
	}
	s.queued = append(s.queued, queuedCommand{c, args})
	s.Reply(redcon.AppendString(nil, "QUEUED"))
}

func (s *session) endMulti() { s.multi, s.aborted, s.queued, s.size = false, false, nil, 0 }

func exec(s *session, b []byte, _ []string) []byte {
	if !s.multi {
		return redcon.AppendError(b, "ERR EXEC without MULTI")
	}
	queued, aborted := s.queued, s.aborted
	s.endMulti()
	if aborted {
		return redcon.AppendError(b, "EXECABORT Transaction discarded because of previous errors.")
	}
	defer s.enter()()
	s.inside = true
	defer func() { s.inside = false }()
	b = redcon.AppendArray(b, len(queued))
	for _, q := range queued {
		b = q.command.Run(s, b, q.args)
	}
	return b
}

func discard(s *session, b []byte, _ []string) []byte {
	if !s.multi {
		return redcon.AppendError(b, "ERR DISCARD without MULTI")
	}
	s.endMulti()
	return redcon.AppendOK(b)
}
