package replica

import (
	"log/slog"
	"slices"
	"sync/atomic"
	"testing"
	"time"
)

var usual = Options{}.withDefaults().checks

// checks repeats a check and returns after how many the leader hands over to n2; zero: it does not.
func (s *slowness) checks(times int, own, n2, n3 time.Duration) int {
	for i := range times {
		if s.check(usual, own, map[string]time.Duration{"n2": n2, "n3": n3})["n2"] {
			return i + 1
		}
	}
	return 0
}

func TestALeaderHandsOverWhenItsDiskIsMuchSlowerForAWhile(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	long := leadChecks + 10*slowChecks
	for name, c := range map[string]struct {
		own, n2, n3 time.Duration
		want        int
	}{
		"one other disk is fast":  {100 * ms, 10 * ms, 90 * ms, slowChecks},
		"all disks are slow":      {100 * ms, 90 * ms, 90 * ms, 0},
		"a little slower":         {100 * ms, 30 * ms, 30 * ms, 0},
		"slower, but fast enough": {40 * ms, 1 * ms, 1 * ms, 0},
		"nothing is written":      {0, 0, 0, 0},
		"the others do not write": {100 * ms, 0, 0, 0},
	} {
		s := slowness{led: leadChecks}
		if got := s.checks(long, c.own, c.n2, c.n3); got != c.want {
			t.Errorf("%s: handed over after %d checks, want %d", name, got, c.want)
		}
	}
}

func TestASlowLeaderDoesNotFlap(t *testing.T) {
	t.Parallel()
	const slow, fast = 100 * time.Millisecond, time.Millisecond
	s := slowness{led: leadChecks}
	for range 10 { // one good second is enough to begin again
		if got := s.checks(slowChecks-1, slow, fast, fast); got != 0 {
			t.Fatalf("handed over after %d checks", got)
		}
		s.check(usual, fast, map[string]time.Duration{"n2": fast})
	}
	if got := s.checks(slowChecks-1, slow, fast, fast) + s.checks(9, 0, 0, 0) + s.checks(9, slow, 0, 0); got != 0 {
		t.Errorf("handed over after %d checks", got)
	}
	if got := s.checks(1, slow, fast, fast); got != 1 {
		t.Error("a second without writes begins again")
	}
	s.follow()
	if got := s.checks(2*leadChecks, slow, fast, fast); got != leadChecks {
		t.Errorf("a new leader handed over after %d checks, want %d", got, leadChecks)
	}
}

func TestWritesOfTheLogAreMeasured(t *testing.T) {
	t.Parallel()
	var m writeMeter
	m.add(10 * time.Millisecond)
	m.add(30 * time.Millisecond)
	if got := m.take(); got != 20*time.Millisecond {
		t.Errorf("the average is %v", got)
	}
	if got := m.take(); got != 0 {
		t.Errorf("without writes it is %v", got)
	}
}

// A node says that its disk is slow, or fast again, after many such checks in a row.
func TestANodeLogsThatItsDiskIsSlow(t *testing.T) {
	t.Parallel()
	var logged []string
	n := &Node{logs: &logStore{}}
	n.lease.clock = &handClock{}
	n.log = newLogger(func(_ slog.Level, text string, _ ...any) { logged = append(logged, text) })
	checks := func(times int, write time.Duration) {
		for range times {
			if write > 0 {
				n.logs.meter.add(write)
			}
			n.checkWrites()
		}
	}
	want := func(slow bool, lines ...string) {
		t.Helper()
		if n.diskSlow.Load() != slow || !slices.Equal(logged, lines) {
			t.Errorf("slow: %v, log %q", n.diskSlow.Load(), logged)
		}
	}
	checks(2*slowChecks, slowWrite-1)
	checks(slowChecks-1, slowWrite)
	checks(1, slowWrite-1) // it begins again
	checks(slowChecks-1, slowWrite)
	checks(slowChecks, 0)
	want(false)
	checks(1, slowWrite)
	const is, was = "the disk of this node is slow", "the disk of this node is fast again"
	want(true, is)
	checks(slowChecks, 0) // nothing is known of its disk
	checks(slowChecks-1, slowWrite-1)
	want(true, is)
	checks(1, slowWrite-1)
	want(false, is, was)
}

// A leader whose writes take much longer than those of a follower hands the lead over, and clients go on there. The
// disk is as slow as the test says, by the time that the log measures, so that it is slow compared with any machine.
func TestTheLeadLeavesASlowDisk(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "n1", "n2", "n3")
	var slow atomic.Pointer[Node]
	var handedOver atomic.Int32
	c.change = func(o *Options) {
		o.checks = pace{every: 10 * time.Millisecond, slowChecks: 3, leadChecks: 6}
		o.writeTakes = func() time.Duration {
			if n := slow.Load(); n != nil && n.o.ID == o.ID {
				return time.Hour
			}
			return 0
		}
		log := o.Log
		o.Log = func(level slog.Level, text string, fields ...any) {
			if n := slow.Load(); n != nil && n.o.ID == o.ID && text == handsOverSlow {
				handedOver.Add(1)
			}
			log(level, text, fields...)
		}
	}
	c.start("n1", "n2", "n3")
	n, _, e := c.leader()
	submit(t, e, 0, 1, 10)
	c.caughtUp()
	for next := n; next == n || handedOver.Load() == 0; { // a transfer may fail, or the lead end before
		n = next
		slow.Store(n)
		submitUntilStopped(t, e)
		next, _, e = c.leader()
	}
	submit(t, e, 10, 1, 10)
}
