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

// Backend is a broker whose timers the test fires.
type Backend interface {
	core.Broker

	// Tick runs all due timers and returns the next deadline.
	Tick() core.Instant
}

// waitLimit is the real time that a stage waits for a commit or a wake-up.
const waitLimit = 2 * time.Minute

// Stage is a broker, a clock and a front-end. It is used by the test's own goroutine.
type Stage struct {
	Broker Backend
	Clock  *coretest.Clock
	Front  frontends.Frontend

	// Split feeds all input byte by byte.
	Split bool

	t       testing.TB
	maker   Maker
	reopen  func() Backend
	clients []*Client // connected
	dialled int
	wake    notify.Signal // a client was woken
	where   string        // prefix of messages: the line of a transcript
}

// NewStage builds a stage on any broker. Reopen restarts the broker on the same disk; nil: the stage cannot restart.
func NewStage(t testing.TB, b Backend, clk *coretest.Clock, maker Maker, reopen func() Backend) *Stage {
	t.Helper()
	return &Stage{
		Broker: b, Clock: clk, Front: maker(b),
		t: t, maker: maker, reopen: reopen, wake: notify.NewSignal(),
	}
}

// Dial opens a connection; name appears in messages.
func (s *Stage) Dial(name string) *Client {
	c := &Client{Name: name, stage: s, number: s.dialled}
	s.dialled++
	s.clients = append(slices.DeleteFunc(s.clients, func(c *Client) bool { return c.closed }), c)
	c.session = s.Front.Open(c)
	c.loginBy = s.Clock.Now().Add(s.Front.Bounds().LoginTime())
	c.flush()
	return c
}

// Advance moves the clock by d and runs the due timers of the broker and the front-end.
func (s *Stage) Advance(d time.Duration) {
	s.t.Helper()
	s.Settle()
	now := s.Clock.Advance(d)
	s.Broker.Tick()
	s.Front.Tick(now)
	for _, c := range s.clients {
		c.checkLogin(now)
	}
	s.Settle()
}

// Settle returns when no client has replies to fetch and no reply waits for a commit.
func (s *Stage) Settle() {
	s.t.Helper()
	if !s.until(func() bool { return s.heldClient() == nil }) {
		s.fatalf("%s: a reply is still held, committed is %d", s.heldClient().Name, s.Broker.Committed())
	}
}

// Restart closes all connections and restarts the broker on the same disk.
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

// turn serves woken clients like an event loop, until there are none.
func (s *Stage) turn() {
	for busy := true; busy; {
		busy = false
		for _, c := range s.clients {
			switch {
			case c.woken.CompareAndSwap(true, false):
				busy = true
				c.deliver()
			case c.sessionClosed:
				c.flush()
			}
		}
		if !busy {
			busy = s.arrive()
		}
	}
}

// arrive waits for what comes over a link, and reports whether it woke a client.
func (s *Stage) arrive() bool {
	l, follows := s.Broker.(*linked)
	if !follows {
		return false
	}
	l.arrive()
	return slices.ContainsFunc(s.clients, func(c *Client) bool { return c.woken.Load() })
}

// heldClient returns a client with replies that wait for a commit.
func (s *Stage) heldClient() *Client {
	for _, c := range s.clients {
		if !c.closed && c.out.Held() > 0 {
			return c
		}
	}
	return nil
}

// until serves clients until done returns true, or returns false after waitLimit. Commits do not wake closed sessions.
// As in the event loop, they are polled.
func (s *Stage) until(done func() bool) bool {
	timeout := time.NewTimer(waitLimit)
	defer timeout.Stop()
	poll := time.NewTicker(time.Millisecond)
	defer poll.Stop()
	for {
		s.turn()
		if done() {
			return true
		}
		select {
		case <-s.wake:
		case <-poll.C:
		case <-timeout.C:
			return false
		}
	}
}

// fatalf fails the test with the current line of the transcript.
func (s *Stage) fatalf(format string, args ...any) {
	s.t.Helper()
	s.t.Fatalf(s.where+format, args...)
}
