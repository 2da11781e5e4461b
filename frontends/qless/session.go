package qless

import (
	"errors"
	"strings"

	"github.com/tidwall/redcon"

	"broker/core"
	"broker/frontends"
	"broker/frontends/access"
	"broker/frontends/resp"
)

// session is one connection.
type session struct {
	f          *Frontend
	conn       frontends.Conn
	client     core.ClientID // for lists of clients; the front-end's own client runs the commands
	reader     resp.Reader
	authorized bool
	closing    bool
	name       string

	multi   bool // commands are queued
	inside  bool // the commands of a transaction are running; the lock is held
	aborted bool // a queued command was refused
	queued  []queuedCommand
	size    int // bytes of the queued commands

	subscriber resp.Subscriber
}

// queuedCommand is a command of a transaction.
type queuedCommand struct {
	run  redisCommand
	args []string
}

var _ frontends.Session = (*session)(nil)

// Feed implements frontends.Session.
func (s *session) Feed(in []byte) int {
	used := 0
	s.reader.Max = s.f.opts.MaxBodyBytes
	var buf [16][]byte
	for !s.closing && used < len(in) {
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
			s.conn.Wake() // to continue with the rest
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
	c, known := redisCommands[name]
	b, commit := []byte(nil), core.Commit(0)
	switch {
	case !s.authorized && !c.open:
		b = redcon.AppendError(nil, "NOAUTH Authentication required.")
	case !known:
		b = redcon.AppendError(nil, resp.UnknownCommand(args))
	case len(args) < c.min || c.max > 0 && len(args) > c.max:
		b = redcon.AppendError(nil, resp.WrongArity(name))
	case s.subscribed() && !c.subscribed:
		b = redcon.AppendError(nil, resp.OnlySubscriptions(name))
	case !s.mayRun(name):
		b = redcon.AppendError(nil, resp.NoPermission(name))
	case s.multi && !c.immediate:
		s.enqueue(c, args)
		return
	default:
		b, commit = c.run(s, nil, args)
		s.reply(b, commit)
		return
	}
	s.aborted = s.aborted || s.multi
	s.reply(b, commit)
}

// enter locks the shared data for a command and returns a function that unlocks it. A transaction holds the lock for all its
// commands.
func (s *session) enter() (leave func()) {
	if s.inside {
		return s.f.model.jobs.pack
	}
	s.f.lock()
	return s.f.unlock
}

// reply writes an answer that waits for a commit, after the messages that were published earlier.
func (s *session) reply(b []byte, commit core.Commit) {
	s.deliverMessages()
	s.put(b, commit)
}

func (s *session) put(b []byte, commit core.Commit) {
	if commit <= s.f.broker.Committed() {
		commit = 0
	}
	out := s.conn.Out()
	out.Put(append(out.Buf(), b...), commit)
	if commit == 0 {
		return
	}
	s.f.waiters.add(s, commit)
	if commit <= s.f.broker.Committed() || s.f.broker.Stopped() { // it may just have become durable
		s.conn.Wake()
	}
}

// deliverMessages writes the waiting messages.
func (s *session) deliverMessages() {
	for _, d := range s.f.messages.Take(&s.subscriber) {
		s.put(d.Bytes, d.Commit)
	}
}

// subscribed reports whether the client listens to any channel.
func (s *session) subscribed() bool {
	return s.subscriber.Count() > 0
}

// Deliver implements frontends.Session.
func (s *session) Deliver() { s.deliverMessages() }

// Refusal implements frontends.Session.
func (s *session) Refusal() []byte { return redcon.AppendError(nil, errorText(core.ErrStopped)) }

// EOF implements frontends.Session. Every whole command has been answered; the rest is not a command.
func (s *session) EOF([]byte) {}

// hangUp closes the connection once all output is sent.
func (s *session) hangUp() {
	s.closing = true
	s.conn.CloseAfterFlush()
}

// reopen replaces the broker's client by a client of a principal; nil: without a principal.
func (s *session) reopen(p *access.Principal) {
	s.f.broker.Close(s.client)
	s.client = frontends.OpenClient(s.f.broker, core.Qless, s.conn, p)
}

// Closed implements frontends.Session.
func (s *session) Closed() {
	s.closing = true
	s.f.messages.Leave(&s.subscriber)
	s.f.waiters.remove(s)
	s.f.broker.Close(s.client)
}
