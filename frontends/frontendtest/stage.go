package frontendtest

import (
	"slices"
	"testing"
	"time"

	"broker/core"
	"broker/core/coretest"
	"broker/core/notify"
	"broker/frontends"
)

// Maker builds the front-end under test on a broker.
type Maker func(core.Broker) frontends.Frontend

// Backend is the broker as a stage needs it: one whose timers the test fires.
type Backend interface {
	core.Broker

	// Tick handles everything that is due by now before it returns; it tells when to call it again.
	Tick() core.Instant
}

// patience is how long a stage waits, in real time, for something that must come: a commit, a wake-up.
const patience = 2 * time.Minute

// Stage is a broker, a clock and a front-end. Use it from the test's own goroutine.
type Stage struct {
	Broker Backend
	Clock  *coretest.Clock
	Front  frontends.Frontend

	// Split offers everything that is sent byte by byte.
	Split bool

	t       testing.TB
	maker   Maker
	reopen  func() Backend
	clients []*Client // those that are connected
	dialled int
	wake    notify.Signal // something has changed for some client
	where   string        // in front of messages: the line of a transcript
}

// NewStage builds a stage on any broker. Reopen stops the broker and starts it on the same disk; nil: it cannot.
func NewStage(t testing.TB, b Backend, clk *coretest.Clock, maker Maker, reopen func() Backend) *Stage {
	t.Helper()
	return &Stage{
		Broker: b, Clock: clk, Front: maker(b),
		t: t, maker: maker, reopen: reopen, wake: notify.NewSignal(),
	}
}

// Dial opens a connection; name is for messages.
func (s *Stage) Dial(name string) *Client {
	c := &Client{Name: name, stage: s, number: s.dialled}
	s.dialled++
	s.clients = append(slices.DeleteFunc(s.clients, func(c *Client) bool { return c.closed }), c)
	c.session = s.Front.Open(c)
	c.flush()
	return c
}

// Advance moves the clock by d and lets the broker and the front-end do what is due.
func (s *Stage) Advance(d time.Duration) {
	s.t.Helper()
	s.Settle()
	now := s.Clock.Advance(d)
	s.Broker.Tick()
	s.Front.Tick(now)
	s.Settle()
}

// Settle returns once no client has anything to fetch and no reply waits for a commit.
func (s *Stage) Settle() {
	s.t.Helper()
	if !s.until(func() bool { return s.holder() == nil }) {
		s.fatalf("%s: a reply is held for ever, committed is %d", s.holder().Name, s.Broker.Committed())
	}
}

// Restart hangs up every client, stops the broker and starts it on the same disk. Clients must be dialled anew.
func (s *Stage) Restart() {
	s.t.Helper()
	s.Settle()
	for _, c := range s.clients {
		c.Hangup()
	}
	s.clients = nil
	s.Broker = s.reopen()
	s.Front = s.maker(s.Broker)
}

// turn does what an event loop does after wake-ups, for all clients until none is left to wake.
func (s *Stage) turn() {
	for busy := true; busy; {
		busy = false
		for _, c := range s.clients {
			switch {
			case c.woken.CompareAndSwap(true, false):
				busy = true
				c.deliver()
			case c.ended:
				c.flush()
			}
		}
	}
}

// holder finds a client with replies that wait for a commit.
func (s *Stage) holder() *Client {
	for _, c := range s.clients {
		if !c.closed && c.out.Held() > 0 {
			return c
		}
	}
	return nil
}

// until turns the loop until done says so or patience ends; it reports which. Connections whose session is closed hear
// of no commit any more: as in the event loop, they are looked at now and then.
func (s *Stage) until(done func() bool) bool {
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	for {
		s.turn()
		if done() {
			return true
		}
		select {
		case <-s.wake:
		case <-look.C:
		case <-timeout.C:
			return false
		}
	}
}

// fatalf ends the test, saying where a transcript stands.
func (s *Stage) fatalf(format string, args ...any) {
	s.t.Helper()
	s.t.Fatalf(s.where+format, args...)
}
