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

	mu     sync.Mutex // guards what follows, up to the empty line
	marked []*conn
	later  []*conn // marked by themselves
	calls  []func()
	busy   bool // the loop is at work and will look at the lists itself: no need to schedule a run
	atWork bool // so it will at later only
	asked  bool // runLater is on its way

	spareMarked, spareLater []*conn // the other halves of the lists, swapped on each run
	spareCalls              []func()

	conns    map[*conn]struct{}
	departed map[*conn]struct{} // half-closed, leaving or lingering
	watched  map[*conn]struct{} // not read, though the session may be waiting
	scratch  []byte
}

func newLoop() *loop {
	return &loop{
		conns:    make(map[*conn]struct{}),
		departed: make(map[*conn]struct{}),
		watched:  make(map[*conn]struct{}),
		scratch:  make([]byte, 0, scratchBytes),
	}
}

// mark puts c on the list for the next run. Any goroutine.
func (l *loop) mark(c *conn) {
	l.mu.Lock()
	first := len(l.marked)+len(l.calls) == 0 && !l.busy
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
	ask := !l.atWork && l.askLater() // c's turn is over already: it was marked by somebody else
	l.mu.Unlock()
	if ask {
		l.scheduleLater()
	}
}

// askLater reports that runLater is to be scheduled. Under mu.
func (l *loop) askLater() bool {
	ask := len(l.later) > 0 && !l.asked
	l.asked = l.asked || ask
	return ask
}

// enter says that the loop is at work on what one socket sent.
func (l *loop) enter() {
	l.mu.Lock()
	l.busy, l.atWork = true, true
	l.mu.Unlock()
}

// exit follows enter: what was marked meanwhile, most of it by that very work (a job for a waiting worker, an outcome
// for a waiting client), is served now, which spares the system calls of waking the loop.
func (l *loop) exit() {
	l.mu.Lock()
	l.busy = false
	waiting := len(l.marked)+len(l.calls) > 0
	if !waiting {
		l.rest()
		return
	}
	l.mu.Unlock()
	l.run()
}

// rest ends what the loop was at work on, and unlocks mu.
func (l *loop) rest() {
	l.atWork = false
	ask := l.askLater()
	l.mu.Unlock()
	if ask {
		l.scheduleLater()
	}
}

// call runs f on the loop, soon. Any goroutine.
func (l *loop) call(f func()) {
	l.mu.Lock()
	first := len(l.marked)+len(l.calls) == 0 && !l.busy
	l.calls = append(l.calls, f)
	l.mu.Unlock()
	if first {
		l.schedule()
	}
}

// run serves what was marked and called for until now; what comes meanwhile is for the next run.
func (l *loop) run() {
	l.mu.Lock()
	l.atWork = true
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
	l.rest()
}

// runLater serves what had marked itself until now.
func (l *loop) runLater() {
	l.mu.Lock()
	l.atWork, l.asked = true, false
	later := l.later
	l.later = l.spareLater[:0]
	l.mu.Unlock()
	for _, c := range later {
		c.turn()
	}
	clear(later)
	l.spareLater = later
	l.mu.Lock()
	l.rest()
}

// age looks after the conns that are on their way out.
func (l *loop) age(now time.Time) {
	for c := range l.departed {
		c.age(now)
	}
}

// watch looks after the peers of conns whose sockets are not read.
func (l *loop) watch() {
	for c := range l.watched {
		c.watch()
	}
}

// retire ends the sessions of all conns; what they have written still leaves.
func (l *loop) retire() {
	for c := range l.conns {
		if c.phase == serving {
			c.retire()
		}
	}
	l.age(time.Now())
}

// kill drops all conns.
func (l *loop) kill() {
	for c := range l.conns {
		c.drop()
	}
}
