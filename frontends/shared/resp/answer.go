package resp

import (
	"sync"

	"broker/access"
	"broker/core"
)

// An answer waits for the commits that it depends on. No command passes a commit on: it is noted together with the
// client that the commit wakes. That is the client of the connection (Do), or a SharedClient (WaitForShared).

// Do runs operations as the client of the connection. The next answer waits for the commits of the replies, which wake
// the connection.
func (c *Connection) Do(b core.Broker, ops []core.Op, into []core.Reply) []core.Reply {
	from := len(into)
	into = b.Do(c.Client, ops, into)
	for i := from; i < len(into); i++ {
		c.commit = max(c.commit, into[i].Commit)
	}
	return into
}

// WaitForShared makes the next answer wait for everything that the front-end's SharedClient has asked so far. The
// caller holds the lock that guards the SharedClient.
func (c *Connection) WaitForShared() { c.commit = max(c.commit, c.server.Shared.newest) }

// Reply writes an answer, after the messages that were published earlier. The answer waits for what was asked since the
// last one.
func (c *Connection) Reply(b []byte) {
	c.Deliver()
	if len(b) == 0 {
		return // it comes later, and waits for this too
	}
	commit := c.commit
	c.commit = 0
	c.put(b, commit)
}

// Deliver implements frontends.Session: it writes the waiting messages.
func (c *Connection) Deliver() {
	for _, m := range c.server.Messages.Take(&c.Subscriber) {
		c.put(m.bytes, m.commit)
	}
}

func (c *Connection) put(b []byte, commit core.Commit) {
	shared := c.server.Shared
	if shared != nil && commit <= c.Broker.Committed() {
		commit = 0
	}
	out := c.Conn.Out()
	out.Put(append(out.Buf(), b...), commit)
	if shared != nil && commit != 0 {
		shared.wakeFor(c, commit)
	}
}

// SharedClient is a client of the broker that runs the commands of many connections. It wakes those whose answers or
// messages wait for its commits. The zero value is ready for Open. A lock of the front-end guards it, apart from what
// mu guards.
type SharedClient struct {
	broker *access.Guard
	id     core.ClientID
	newest core.Commit // of all replies so far

	mu      sync.Mutex // guards waiting
	waiting map[*Connection]core.Commit
}

// Open opens the client. It may do everything: the front-end checks the rights of its clients before it uses it.
func (s *SharedClient) Open(b *access.Guard) {
	s.broker = b
	s.id = b.Admit(core.ClientOptions{Unlisted: true, Wake: s.wake}, access.Credentials{Login: access.Everyone})
}

// Close closes the client.
func (s *SharedClient) Close() { s.broker.Close(s.id) }

// Do runs operations; see core.Broker.
func (s *SharedClient) Do(ops []core.Op, into []core.Reply) []core.Reply {
	from := len(into)
	into = s.broker.Do(s.id, ops, into)
	for i := from; i < len(into); i++ {
		s.newest = max(s.newest, into[i].Commit)
	}
	return into
}

// wakeFor wakes a connection once a commit is durable.
func (s *SharedClient) wakeFor(c *Connection, commit core.Commit) {
	s.mu.Lock()
	if s.waiting == nil {
		s.waiting = map[*Connection]core.Commit{}
	}
	s.waiting[c] = max(s.waiting[c], commit)
	s.mu.Unlock()
	if commit <= c.Broker.Committed() || c.Broker.Stopped() { // it may just have become durable
		c.Conn.Wake()
	}
}

// forget undoes wakeFor for a connection that is closed.
func (s *SharedClient) forget(c *Connection) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.waiting, c)
}

// wake is called by the broker when a commit is durable or an event waits.
func (s *SharedClient) wake() {
	committed, stopped := s.broker.Committed(), s.broker.Stopped()
	s.mu.Lock()
	defer s.mu.Unlock()
	for c, commit := range s.waiting {
		if commit <= committed || stopped {
			delete(s.waiting, c)
			c.Conn.Wake()
		}
	}
}
