package faktory

import (
	"net"
	"sync"

	"broker/frontends"
	"broker/frontends/access"
)

// task is a long command that runs in steps, so that other connections are served in between. step reports whether the
// command is done and answered.
type task interface {
	step(*session) (over bool)
}

// start starts a long command.
func (s *session) start(t task) {
	s.running = t
	s.proceed()
}

// proceed does one step of the running command.
func (s *session) proceed() {
	if s.running.step(s) {
		s.running = nil
		return
	}
	s.conn.Wake()
}

// detachedTasks are long commands whose clients have disconnected. They run to their end, as in the reference.
type detachedTasks struct {
	mu       sync.Mutex // guards sessions; never held while the broker is called
	sessions []*session
}

// detach keeps a command running after its connection has closed, in the name of the same principal. Any goroutine.
func (f *Frontend) detach(t task, p *access.Principal) {
	s := &session{f: f, conn: &detachedConn{}, phase: serving, running: t, principal: p}
	s.openClient()
	f.detached.mu.Lock()
	f.detached.sessions = append(f.detached.sessions, s)
	f.detached.mu.Unlock()
}

// detachedSteps is how many steps run at each tick.
const detachedSteps = 20

// runDetached does some steps of the oldest detached command. Called by Tick.
func (f *Frontend) runDetached() {
	f.detached.mu.Lock()
	var s *session
	if len(f.detached.sessions) > 0 {
		s = f.detached.sessions[0]
	}
	f.detached.mu.Unlock()
	if s == nil {
		return
	}
	s.begin()
	for n := 0; n < detachedSteps && s.running != nil; n++ {
		s.proceed()
	}
	s.end()
	if s.running == nil {
		f.b.Close(s.client)
		f.detached.mu.Lock()
		f.detached.sessions = f.detached.sessions[1:]
		f.detached.mu.Unlock()
	}
}

// detachedConn drops the replies of a detached command.
type detachedConn struct {
	frontends.Conn
	out frontends.Outbox
}

func (n *detachedConn) Out() *frontends.Outbox { return &n.out }
func (n *detachedConn) Wake()                  {}
func (n *detachedConn) CloseAfterFlush()       {}
func (n *detachedConn) Abort()                 {}
func (n *detachedConn) RemoteAddr() net.Addr   { return nil }
