package faktory

import (
	"net"
	"sync"

	"broker/access"
	"broker/frontends"
)

// task is a long command that runs in steps, so that other connections are served in between. step reports whether the
// command is done and answered.
type task interface {
	step(*session) (over bool)

	// bytes is the memory that the task uses.
	bytes() int
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
	s.Conn.Wake()
}

// detachedTasks are long commands whose clients have disconnected. They run to their end, as in the reference server.
// If there are too many, a command stops where it is: its client never got an answer to rely on.
type detachedTasks struct {
	mu    sync.Mutex // guards the fields below; never held while the broker is called
	tasks []detachedTask
	count int // tasks, including reserved ones
	bytes int // memory of the tasks when they were detached
}

// detachedTask is a task, its size, and a session without a client that runs it.
type detachedTask struct {
	session *session
	bytes   int
}

// Limits of detached tasks. A single task may have any size.
const (
	maxDetached      = 1000
	maxDetachedBytes = 128 << 20
)

// reserve reports whether there is room for a task, and reserves it.
func (d *detachedTasks) reserve(bytes int) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.count > 0 && (d.count >= maxDetached || d.bytes+bytes > maxDetachedBytes) {
		return false
	}
	d.count++
	d.bytes += bytes
	return true
}

// detach keeps a command running after its connection has closed, with the rights of the same principal. Any goroutine
// may call it.
func (f *Frontend) detach(t task, p *access.Principal) {
	if _, reads := t.(*report); reads { // its answer has no reader
		return
	}
	bytes := t.bytes()
	if !f.detached.reserve(bytes) {
		return
	}
	s := newSession(f, &detachedConn{})
	s.phase, s.running = serving, t
	s.openClient(p)
	f.detached.mu.Lock()
	f.detached.tasks = append(f.detached.tasks, detachedTask{session: s, bytes: bytes})
	f.detached.mu.Unlock()
}

// detachedSteps is the number of steps at each tick.
const detachedSteps = 20

// runDetached runs some steps of the oldest detached command. Tick calls it.
func (f *Frontend) runDetached() {
	f.detached.mu.Lock()
	var s *session
	if len(f.detached.tasks) > 0 {
		s = f.detached.tasks[0].session
	}
	f.detached.mu.Unlock()
	if s == nil {
		return
	}
	s.Begin()
	for n := 0; n < detachedSteps && s.running != nil; n++ {
		s.proceed()
	}
	s.Flush()
	s.End()
	if s.running == nil {
		f.broker.Close(s.Client)
		f.detached.mu.Lock()
		f.detached.count--
		f.detached.bytes -= f.detached.tasks[0].bytes
		f.detached.tasks[0] = detachedTask{}
		f.detached.tasks = f.detached.tasks[1:]
		f.detached.mu.Unlock()
	}
}

// detachedConn drops the replies of a detached command.
type detachedConn struct {
	frontends.Conn // nil: tasks use the methods below only
	out            frontends.Outbox
}

func (n *detachedConn) Out() *frontends.Outbox { return &n.out }
func (n *detachedConn) Wake()                  {}
func (n *detachedConn) CloseAfterFlush()       {}
func (n *detachedConn) Abort()                 {}
func (n *detachedConn) RemoteAddr() net.Addr   { return nil }

// namesBytes is the memory that names use.
func namesBytes(names []string) (n int) {
	for _, name := range names {
		n += len(name) + 16
	}
	return n
}
