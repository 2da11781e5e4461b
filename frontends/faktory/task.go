package faktory

import (
	"sync"

	"broker/frontends"
)

// task is a command that takes many steps: between them other connections have their turn. Step reports that the
// command is over and answered.
type task interface {
	step(*session) (over bool)
}

// start begins a long command.
func (s *session) start(t task) {
	s.running = t
	s.proceed()
}

// proceed does one step of it.
func (s *session) proceed() {
	if s.running.step(s) {
		s.running = nil
		return
	}
	s.conn.Wake()
}

// orphanage ends long commands whose clients have gone: an order that was given is carried out, as by the reference.
type orphanage struct {
	mu       sync.Mutex // guards sessions; never held while the broker is called
	sessions []*session
}

// adopt takes a command over. Any goroutine.
func (f *Frontend) adopt(t task) {
	s := &session{f: f, conn: &detachedConn{}, phase: serving, running: t}
	s.openClient()
	f.orphans.mu.Lock()
	f.orphans.sessions = append(f.orphans.sessions, s)
	f.orphans.mu.Unlock()
}

// orphanSteps is how many steps are done at a tick.
const orphanSteps = 20

// raiseOrphans does some steps of the first command that is left. On the goroutine of Tick.
func (f *Frontend) raiseOrphans() {
	f.orphans.mu.Lock()
	var s *session
	if len(f.orphans.sessions) > 0 {
		s = f.orphans.sessions[0]
	}
	f.orphans.mu.Unlock()
	if s == nil {
		return
	}
	for range orphanSteps {
		if s.proceed(); s.running == nil {
			f.b.Close(s.client)
			f.orphans.mu.Lock()
			f.orphans.sessions = f.orphans.sessions[1:]
			f.orphans.mu.Unlock()
			return
		}
	}
}

// nobody reads what an orphan answers.
type detachedConn struct {
	frontends.Conn
	out frontends.Outbox
}

func (n *detachedConn) Out() *frontends.Outbox { return &n.out }
func (n *detachedConn) Wake()                  {}
func (n *detachedConn) CloseAfterFlush()       {}
