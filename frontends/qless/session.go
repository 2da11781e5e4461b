package qless

import (
	"github.com/tidwall/redcon"

	"broker/core"
	"broker/frontends"
	"broker/frontends/shared/resp"
)

// session is one connection.
type session struct {
	resp.Connection // its client is for lists of clients; the client of the front-end runs the commands
	front           *Frontend

	multi   bool // commands are queued
	inside  bool // the commands of a transaction are running; the lock is held
	aborted bool // a queued command was refused
	queued  []queuedCommand
	size    int // bytes of the queued commands
}

// queuedCommand is a command of a transaction.
type queuedCommand struct {
	command redisCommand
	args    []string
}

var _ frontends.Session = (*session)(nil)

// Serve implements resp.Session: it runs one command, or queues it in a transaction.
func (s *session) Serve(args []string) {
	c, name, refusal := resp.Find(redisCommands, &s.Connection, args)
	switch {
	case refusal != "":
	case !s.mayRun(c):
		refusal = resp.NoPermission(name)
	case !c.WhileLoading && !s.front.ready.Load():
		refusal = resp.Loading
	}
	switch {
	case refusal != "":
		s.aborted = s.aborted || s.multi
		s.Reply(redcon.AppendError(nil, refusal))
	case s.multi && !c.Immediate:
		s.enqueue(c, args)
	default:
		s.Reply(c.Run(s, nil, args))
	}
}

// enter is look for a command whose answer waits for everything that the front-end has asked so far.
func (s *session) enter() (leave func()) {
	unlock := s.look()
	return func() {
		s.WaitForShared()
		unlock()
	}
}

// look locks the shared data for a command and returns a function that unlocks it. A transaction holds the lock for all
// its commands.
func (s *session) look() (leave func()) {
	if s.inside {
		return s.front.model.jobs.pack
	}
	s.front.lock()
	return s.front.unlock
}

// Refusal implements frontends.Session.
func (s *session) Refusal() []byte { return redcon.AppendError(nil, errorText(core.ErrStopped)) }
