package qless

import (
	"github.com/tidwall/redcon"

	"broker/core"
	"broker/frontends"
	"broker/frontends/shared/resp"
)

// session is one connection.
type session struct {
	resp.Connection // its client is for lists of clients; the front-end's own client runs the commands
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
		s.Reply(redcon.AppendError(nil, refusal), 0)
	case s.multi && !c.Immediate:
		s.enqueue(c, args)
	default:
		b, commit := c.Run(s, nil, args)
		s.Reply(b, commit)
	}
}

// enter locks the shared data for a command and returns a function that unlocks it. A transaction holds the lock for
// all its commands.
func (s *session) enter() (leave func()) {
	if s.inside {
		return s.front.model.jobs.pack
	}
	s.front.lock()
	return s.front.unlock
}

// Reply implements resp.Session. It writes an answer that waits for a commit, after the messages that were published
// earlier.
func (s *session) Reply(b []byte, commit core.Commit) {
	s.deliverMessages()
	s.put(b, commit)
}

func (s *session) put(b []byte, commit core.Commit) {
	if commit <= s.front.broker.Committed() {
		commit = 0
	}
	out := s.Conn.Out()
	out.Put(append(out.Buf(), b...), commit)
	if commit == 0 {
		return
	}
	s.front.waiters.add(s, commit)
	if commit <= s.front.broker.Committed() || s.front.broker.Stopped() { // it may just have become durable
		s.Conn.Wake()
	}
}

// deliverMessages writes the waiting messages.
func (s *session) deliverMessages() {
	for _, d := range s.front.messages.Take(&s.Subscriber) {
		s.put(d.Bytes, d.Commit)
	}
}

// Deliver implements frontends.Session.
func (s *session) Deliver() { s.deliverMessages() }

// Refusal implements frontends.Session.
func (s *session) Refusal() []byte { return redcon.AppendError(nil, errorText(core.ErrStopped)) }

// Closed implements frontends.Session.
func (s *session) Closed() {
	s.Closing = true
	s.front.messages.Leave(&s.Subscriber)
	s.front.waiters.remove(s)
	s.front.broker.Close(s.Client)
}
