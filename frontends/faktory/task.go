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

	// bytes is how much memory the task holds.
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
	s.conn.Wake()
}

// detachedTasks are long commands whose clients have disconnected. They run to their end, as in the reference, as long as there
// are not too many: then a command stops where it is. Its client has no answer to rely on.
type detachedTasks struct {
	mu    sync.Mutex // guards what follows; never held while the broker is called
	tasks []detachedTask
	count int // tasks, and those that will be added
	bytes int // that they held when they were detached
}

// detachedTask is a task, its size, and the session in whose place it runs.
type detachedTask struct {
	session *session
	bytes   int
}

// Limits of detached tasks. One of any size fits if there is no other.
const (
	maxDetached      = 1000
	maxDetachedBytes = 128 << 20
)

// reserve takes room for a task.
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

// detach keeps a command running after its connection has closed, in the name of the same principal. Any goroutine.
func (f *Frontend) detach(t task, p *access.Principal) {
	if _, reads := t.(*report); reads { // nobody gets it
		return
	}
	bytes := t.bytes()
	if !f.detached.reserve(bytes) {
		return
	}
	s := &session{f: f, conn: &detachedConn{}, phase: serving, running: t, principal: p}
	s.openClient()
	f.detached.mu.Lock()
	f.detached.tasks = append(f.detached.tasks, detachedTask{session: s, bytes: bytes})
	f.detached.mu.Unlock()
}

// detachedSteps is how many steps run at each tick.
const detachedSteps = 20

// runDetached does some steps of the oldest detached command. Called by Tick.
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
	s.begin()
	for n := 0; n < detachedSteps && s.running != nil; n++ {
		s.proceed()
	}
	s.end()
	if s.running == nil {
		f.b.Close(s.client)
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
	frontends.Conn
	out frontends.Outbox
}

func (n *detachedConn) Out() *frontends.Outbox { return &n.out }
func (n *detachedConn) Wake()                  {}
func (n *detachedConn) CloseAfterFlush()       {}
func (n *detachedConn) Abort()                 {}
func (n *detachedConn) RemoteAddr() net.Addr   { return nil }

// namesBytes is how much memory names take.
func namesBytes(names []string) (n int) {
	for _, name := range names {
		n += len(name) + 16
	}
	return n
}
