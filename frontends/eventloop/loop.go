package eventloop

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// scratchBytes is the size of a loop's space for joining messages that are split over two reads.
const scratchBytes = 128 << 10

// loop is a single-threaded event loop that drives conns: one of gnet's, one of this package for TLS, or, where the
// broker blocks, one for each conn. Everything that mu does not guard is used on the loop only: on gnet's goroutine, or
// in a turn.
type loop struct {
	turn sync.Mutex // held by the goroutine that serves a loop that is not gnet's
	own  bool       // it has one conn
	// an own loop has something for the ticker to look at
	watched atomic.Bool

	// schedule requests one call of run, soon. scheduleLater requests one call of runLater after the sockets were
	// polled.
	schedule, scheduleLater func()

	mu             sync.Mutex // guards the fields up to the blank line
	marked         []*conn
	later          []*conn // conns that woke themselves
	calls          []func()
	inRead         bool // input is being handled; run follows, so it need not be scheduled
	active         bool // the loop is running; it checks later when it is done
	laterScheduled bool

	spareMarked, spareLater []*conn // the other halves of the double buffers
	spareCalls              []func()

	conns   map[*conn]struct{}
	closing map[*conn]struct{} // half-closed, leaving or lingering
	unread  map[*conn]struct{} // paused; their peers are polled
	held    []*conn            // that have held replies since the last tick
	scratch []byte

	loginDue map[*conn]struct{} // their clients must log in
}

func newLoop() *loop {
	return &loop{
		conns:   make(map[*conn]struct{}),
		closing: make(map[*conn]struct{}),
		unread:  make(map[*conn]struct{}),
		scratch: make([]byte, 0, scratchBytes),

		loginDue: make(map[*conn]struct{}),
	}
}

// mark puts c on the list of the next run. Any goroutine may call it.
func (l *loop) mark(c *conn) {
	l.mu.Lock()
	first := len(l.marked)+len(l.calls) == 0 && !l.inRead
	l.marked = append(l.marked, c)
	l.mu.Unlock()
	if first {
		l.schedule()
	}
}

// markLater is mark for a conn that wakes itself during its turn: the sockets are served first.
func (l *loop) markLater(c *conn) {
	l.mu.Lock()
	l.later = append(l.later, c)
	ask := !l.active && l.needsLater() // c's turn has ended: another goroutine woke it
	l.mu.Unlock()
	if ask {
		l.scheduleLater()
	}
}

// needsLater reports that runLater must be scheduled. The caller holds mu.
func (l *loop) needsLater() bool {
	ask := len(l.later) > 0 && !l.laterScheduled
	l.laterScheduled = l.laterScheduled || ask
	return ask
}

// enter is called before the input of one socket is handled.
func (l *loop) enter() {
	l.mu.Lock()
	l.inRead, l.active = true, true
	l.mu.Unlock()
}

// exit follows enter. It serves the conns that have been marked since. Most were marked by the input just handled: a
// job for a waiting worker, a result for a waiting client. Serving them here saves the system calls that would wake the
// loop.
func (l *loop) exit() {
	l.mu.Lock()
	l.inRead = false
	waiting := len(l.marked)+len(l.calls) > 0
	if !waiting {
		l.finish()
		return
	}
	l.mu.Unlock()
	l.run()
}

// finish ends the loop's activity and unlocks mu.
func (l *loop) finish() {
	if l.own {
		l.watched.Store(len(l.held)+len(l.closing)+len(l.unread)+len(l.loginDue) > 0)
	}
	l.active = false
	ask := l.needsLater()
	l.mu.Unlock()
	if ask {
		l.scheduleLater()
	}
}

// inTurn calls f when no other goroutine serves this loop.
func (l *loop) inTurn(f func()) {
	l.turn.Lock()
	defer l.turn.Unlock()
	f()
}

// call runs f on the loop, soon. Any goroutine may call it.
func (l *loop) call(f func()) {
	l.mu.Lock()
	first := len(l.marked)+len(l.calls) == 0 && !l.inRead
	l.calls = append(l.calls, f)
	l.mu.Unlock()
	if first {
		l.schedule()
	}
}

// run serves the conns and calls that are listed now. Later additions wait for the next run.
func (l *loop) run() {
	l.mu.Lock()
	l.active = true
	marked, calls := l.marked, l.calls
	l.marked, l.calls = l.spareMarked[:0], l.spareCalls[:0]
	l.mu.Unlock()
	for _, f := range calls {
		f()
	}
	for _, c := range marked {
		c.turn()
	}
	clear(marked) // the lists must not keep closed conns alive
	clear(calls)
	l.spareMarked, l.spareCalls = marked, calls
	l.mu.Lock()
	l.finish()
}

// runLater serves the conns that have woken themselves.
func (l *loop) runLater() {
	l.mu.Lock()
	l.active, l.laterScheduled = true, false
	later := l.later
	l.later = l.spareLater[:0]
	l.mu.Unlock()
	for _, c := range later {
		c.turn()
	}
	clear(later)
	l.spareLater = later
	l.mu.Lock()
	l.finish()
}

// checkTimeouts checks the closing conns.
func (l *loop) checkTimeouts(now time.Time) {
	for c := range l.closing {
		c.checkTimeouts(now)
	}
}

// checkLogins dismisses the clients that have not logged in in time.
func (l *loop) checkLogins(now time.Time) {
	for c := range l.loginDue {
		c.checkLogin(now)
	}
}

// watchPeers checks the peers of conns whose sockets are not read.
func (l *loop) watchPeers() {
	for c := range l.unread {
		c.watchPeer()
	}
}

// wakeLate wakes the conns that hold replies which have missed their wake-up.
func (l *loop) wakeLate(m missed) {
	l.held = slices.DeleteFunc(l.held, func(c *conn) bool { return !c.wakeLate(m) })
}

// stopSessions closes the sessions of all conns; their output is still sent.
func (l *loop) stopSessions() {
	for c := range l.conns {
		if c.phase == serving {
			c.stopSession()
		}
	}
	l.checkTimeouts(time.Now())
}

// dropAll drops all conns.
func (l *loop) dropAll() {
	for c := range l.conns {
		c.drop()
	}
}
