package clock

import (
	"sync"
	"sync/atomic"
	"time"

	"broker/core"
)

const (
	// maxDrift is the largest change of the difference between wall clock and monotonic clock from one reading to the
	// next. With more, the wall clock counts as set. Time servers slew by far less.
	maxDrift = core.Instant(500 * time.Millisecond / time.Microsecond)

	// maxSlew is the largest difference between a Slewed and the wall clock that is slewed. With more, the wall clock
	// was or is wrong by so much that slewing would take weeks, so the Slewed is set.
	maxSlew = 24 * time.Hour

	slewPart    = 20               // it runs faster or slower by one part of this many
	anchorEvery = time.Millisecond // between corrections
)

// Slewed is the time of the jobs of a broker or a cluster. It continues from the time of the newest change in the
// store with the monotonic clock, so that delays and leases keep their length when a process is restarted or another
// node takes over. It runs up to 5 % faster or slower until it agrees with the wall clock, and never goes back, with
// two exceptions: see Read. Any goroutine may call its methods.
type Slewed struct {
	source Clock
	shared bool
	anchor atomic.Pointer[anchor]

	mu         sync.Mutex // guards anchor against other writers, and the fields below
	known      bool       // of a shared Slewed: the time of the cluster is known
	correction core.Instant
}

// anchor is a moment at which the time is known. Time is computed from it until the next one.
type anchor struct {
	at        core.Instant // the time
	ahead     core.Instant // of it, the correct time
	wall      core.Instant
	monotonic time.Duration
}

// NewSlewed returns the time of a single broker. Before Resume, it is that of the wall clock.
func NewSlewed(source Clock) *Slewed {
	c := &Slewed{source: source}
	wall, monotonic := c.read()
	c.anchor.Store(&anchor{at: wall, wall: wall, monotonic: monotonic})
	return c
}

// NewShared returns the time of a cluster, on one of its nodes. It is unknown until Follow or Resume.
func NewShared(source Clock) *Slewed {
	c := NewSlewed(source)
	c.shared = true
	return c
}

// read reads the source. A source without a monotonic clock counts as one.
func (c *Slewed) read() (core.Instant, time.Duration) {
	if m, ok := c.source.(Monotonic); ok {
		return m.Read()
	}
	now := c.source.Now()
	return now, now.Sub(0)
}

// timeAt returns the time for a reading, and by how much it is set because the wall clock was set.
func (c *Slewed) timeAt(a *anchor, wall core.Instant, monotonic time.Duration) (now, setBy core.Instant) {
	passed := monotonic - a.monotonic
	limit := max(core.Instant(0).Add(passed/slewPart), 0)
	now = a.at.Add(passed) + max(-limit, min(a.ahead, limit))
	by := wallSetBy(a, wall, monotonic)
	switch {
	case by == 0 || c.shared:
		return now, 0
	case by > 0:
		by = max(wall-now, 0) // the time may have been ahead
	}
	return now + by, by
}

// wallSetBy returns by how much the wall clock was set since an anchor.
func wallSetBy(a *anchor, wall core.Instant, monotonic time.Duration) core.Instant {
	by := wall - a.wall.Add(monotonic-a.monotonic)
	if by > -maxDrift && by < maxDrift {
		return 0
	}
	return by
}

// Now implements Clock.
func (c *Slewed) Now() core.Instant {
	a := c.anchor.Load()
	wall, monotonic := c.read()
	now, _ := c.timeAt(a, wall, monotonic)
	return now
}

// Read returns the time, and by how much it was set since the last call. That happens when the wall clock of a single
// broker is set: its machine may have been suspended, and what was due meanwhile is due then. And it happens when the
// wall clocks of a cluster differ from its time by more than maxSlew. The engine calls Read; it must tell the machine
// before any decision.
func (c *Slewed) Read() (now, setBy core.Instant) {
	a := c.anchor.Load()
	wall, monotonic := c.read()
	if now, setBy = c.timeAt(a, wall, monotonic); setBy == 0 && monotonic-a.monotonic < anchorEvery {
		return now, 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	a = c.anchor.Load()
	wall, monotonic = c.read()
	now, setBy = c.timeAt(a, wall, monotonic)
	if c.shared {
		c.correction -= wallSetBy(a, wall, monotonic) // measured with the old setting
	}
	ahead := wall + c.correction - now
	if c.shared && beyondSlew(ahead) {
		now, setBy, ahead = now+ahead, ahead, 0
	}
	c.anchor.Store(&anchor{now, ahead, wall, monotonic})
	return now, setBy
}

func beyondSlew(ahead core.Instant) bool { return max(ahead, -ahead).Sub(0) > maxSlew }

// Resume makes the time continue after a change that was made at last, before the machine is built from the store. A
// single broker, and a cluster whose time no node knows, take the wall clock unless it is behind: then all that was
// due while no process ran is due.
func (c *Slewed) Resume(last core.Instant) core.Instant {
	c.mu.Lock()
	defer c.mu.Unlock()
	wall, monotonic := c.read()
	right := wall + c.correction
	now := right
	if c.known {
		now, _ = c.timeAt(c.anchor.Load(), wall, monotonic)
	}
	if now < last && (c.known || !beyondSlew(last-right)) {
		now = last
	}
	c.known = c.shared
	c.anchor.Store(&anchor{now, right - now, wall, monotonic})
	return now
}

// Follow sets the time of a node to that of the leader.
func (c *Slewed) Follow(at core.Instant) {
	c.mu.Lock()
	defer c.mu.Unlock()
	wall, monotonic := c.read()
	c.known = true
	c.anchor.Store(&anchor{at: at, wall: wall, monotonic: monotonic})
}

// Known reports whether this node knows the time of the cluster.
func (c *Slewed) Known() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.known
}

// Correct sets by how much the wall clock of this node is behind the correct time, as far as the nodes agree on it.
// The time is slewed towards the corrected wall clock.
func (c *Slewed) Correct(by time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	wall, monotonic := c.read()
	now, _ := c.timeAt(c.anchor.Load(), wall, monotonic)
	c.correction = core.Instant(0).Add(by)
	c.anchor.Store(&anchor{now, wall + c.correction - now, wall, monotonic})
}

// Offset returns by how much the wall clock of this node is ahead of the time; negative: behind it.
func (c *Slewed) Offset() time.Duration {
	a := c.anchor.Load()
	wall, monotonic := c.read()
	now, _ := c.timeAt(a, wall, monotonic)
	return wall.Sub(now)
}
