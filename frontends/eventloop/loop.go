package eventloop

import (
	"sync"
	"time"
)

// scratchBytes is the size of a loop's space for mending the joint of two reads.
const scratchBytes = 128 << 10

// loop is one thread of control that drives conns: one of gnet's loops, or a goroutine of ours for TLS. Everything in it
// that is not under the mutex is used on the loop only.
type loop struct {
	// schedule asks the carrier for one call of run, soon; scheduleLater for one of runLater once the sockets had their
	// turn.
	schedule, scheduleLater func()

	mu             sync.Mutex // guards what follows, up to the empty line
	marked         []*conn
	later          []*conn // marked by themselves
	calls          []func()
	inRead         bool // the loop is at work and will look at the lists itself: no need to schedule a run
	active         bool // so it will at later only
	laterScheduled bool // runLater is on its way

	spareMarked, spareLater []*conn // the other halves of the lists, swapped on each run
	spareCalls              []func()

	conns   map[*conn]struct{}
	closing map[*conn]struct{} // half-closed, leaving or lingering
	unread  map[*conn]struct{} // not read, though the session may be waiting
	scratch []byte
}

func newLoop() *loop {
	return &loop{
		conns:   make(map[*conn]struct{}),
		closing: make(map[*conn]struct{}),
		unread:  make(map[*conn]struct{}),
		scratch: make([]byte, 0, scratchBytes),
	}
}

// mark puts c on the list for the next run. Any goroutine.
func (l *loop) mark(c *conn) {
	l.mu.Lock()
	first := len(l.marked)+len(l.calls) == 0 && !l.inRead
	l.marked = append(l.marked, c)
	l.mu.Unlock()
	if first {
		l.schedule()
	}
}

// markLater is mark for a conn that wants another turn during its own: the sockets come first.
func (l *loop) markLater(c *conn) {
	l.mu.Lock()
	l.later = append(l.later, c)
	ask := !l.active && l.needsLater() // c's turn is over already: it was marked by somebody else
	l.mu.Unlock()
	if ask {
		l.scheduleLater()
	}
}

// needsLater reports that runLater is to be scheduled. Under mu.
func (l *loop) needsLater() bool {
	ask := len(l.later) > 0 && !l.laterScheduled
	l.laterScheduled = l.laterScheduled || ask
	return ask
}

// enter says that the loop is at work on what one socket sent.
func (l *loop) enter() {
	l.mu.Lock()
	l.inRead, l.active = true, true
	l.mu.Unlock()
}

// exit follows enter: what was marked meanwhile, most of it by that very work (a job for a waiting worker, an outcome
// for a waiting client), is served now, which spares the system calls of waking the loop.
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

// rest ends what the loop was at work on, and unlocks mu.
func (l *loop) finish() {
	l.active = false
	ask := l.needsLater()
	l.mu.Unlock()
	if ask {
		l.scheduleLater()
	}
}

// call runs f on the loop, soon. Any goroutine.
func (l *loop) call(f func()) {
	l.mu.Lock()
	first := len(l.marked)+len(l.calls) == 0 && !l.inRead
	l.calls = append(l.calls, f)
	l.mu.Unlock()
	if first {
		l.schedule()
	}
}

// run serves what was marked and called for until now; what comes meanwhile is for the next run.
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
	clear(marked) // the lists must not keep dead conns alive
	clear(calls)
	l.spareMarked, l.spareCalls = marked, calls
	l.mu.Lock()
	l.finish()
}

// runLater serves what had marked itself until now.
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

// age looks after the conns that are on their way out.
func (l *loop) checkTimeouts(now time.Time) {
	for c := range l.closing {
		c.checkTimeouts(now)
	}
}

// watch looks after the peers of conns whose sockets are not read.
func (l *loop) watchPeers() {
	for c := range l.unread {
		c.watchPeer()
	}
}

// retire ends the sessions of all conns; what they have written still leaves.
func (l *loop) stopSessions() {
	for c := range l.conns {
		if c.phase == serving {
			c.stopSession()
		}
	}
	l.checkTimeouts(time.Now())
}

// kill drops all conns.
func (l *loop) dropAll() {
	for c := range l.conns {
		c.drop()
	}
}
