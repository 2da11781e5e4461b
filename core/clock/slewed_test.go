package clock

import (
	"testing"
	"time"

	"broker/core"
)

// handClock is a clock that a test sets.
type handClock struct {
	wall      core.Instant
	monotonic time.Duration
}

func (c *handClock) Now() core.Instant                   { return c.wall }
func (c *handClock) Read() (core.Instant, time.Duration) { return c.wall, c.monotonic }
func (c *handClock) set(by time.Duration)                { c.wall = c.wall.Add(by) }

// pass lets time pass in steps, in which the Slewed is read.
func (c *handClock) pass(d time.Duration, s *Slewed) {
	for step := d / 1000; d > 0; d -= step {
		c.wall, c.monotonic = c.wall.Add(step), c.monotonic+step
		s.Read()
	}
}

const noon = core.Instant(1 << 50)

// near reports whether a difference is what it should be, but for a rounding of each step.
func near(got, want time.Duration) bool { return (got - want).Abs() < 5*time.Millisecond }

func TestTimeContinuesFromTheNewestChange(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		wall, begin, hour time.Duration // wall clock, time, and time after an hour, from the newest change
	}{
		"wall clock right":          {0, 0, time.Hour},
		"down for a month":          {30 * 24 * time.Hour, 30 * 24 * time.Hour, 30*24*time.Hour + time.Hour},
		"wall clock 3 h behind":     {-3 * time.Hour, 0, 57 * time.Minute},
		"wall clock 2 min behind":   {-2 * time.Minute, 0, 58 * time.Minute},
		"wall clock years behind":   {-1000 * 24 * time.Hour, -1000 * 24 * time.Hour, -1000*24*time.Hour + time.Hour},
		"wall clock a second ahead": {time.Second, time.Second, time.Hour + time.Second},
	} {
		source := &handClock{wall: noon.Add(c.wall)}
		s := NewSlewed(source)
		if got := s.Resume(noon).Sub(noon); got != c.begin || s.Now().Sub(noon) != got {
			t.Errorf("%s: begins at %v, want %v", name, got, c.begin)
		}
		source.pass(time.Hour, s)
		if got := s.Now().Sub(noon); !near(got, c.hour) {
			t.Errorf("%s: after an hour it is %v later, want %v", name, got, c.hour)
		}
	}
}

// A machine that was suspended, or a clock that is set: the time of a single broker is set too.
func TestTimeOfASingleBrokerIsSetWithTheWallClock(t *testing.T) {
	t.Parallel()
	for _, by := range []time.Duration{time.Hour, -time.Hour, time.Second} {
		source := &handClock{wall: noon}
		s := NewSlewed(source)
		source.set(by)
		if now := s.Now(); now.Sub(noon) != by {
			t.Errorf("set by %v, and the time by %v", by, now.Sub(noon))
		}
		now, setBy := s.Read()
		if now.Sub(noon) != by || setBy.Sub(0) != by {
			t.Errorf("set by %v, and read %v, set by %v", by, now.Sub(noon), setBy)
		}
		if _, again := s.Read(); again != 0 {
			t.Errorf("set by %v twice", by)
		}
	}
	source := &handClock{wall: noon.Add(-time.Hour)}
	s := NewSlewed(source)
	s.Resume(noon)
	source.set(time.Hour) // corrected
	if now, setBy := s.Read(); now != noon || setBy != 0 {
		t.Errorf("a correction sets the time by %v", setBy)
	}
}

func TestTimeOfAClusterIsNotSetWithAWallClock(t *testing.T) {
	t.Parallel()
	source := &handClock{wall: noon.Add(-time.Hour)} // wrong
	s := NewShared(source)
	if s.Known() {
		t.Error("the time is known before anybody told it")
	}
	s.Follow(noon)
	source.pass(time.Minute, s)
	if got := s.Resume(noon.Add(time.Second)).Sub(noon); !near(got, time.Minute) && got < time.Minute-3*time.Second {
		t.Errorf("a minute later it is %v", got)
	}
	before := s.Now()
	s.Correct(time.Hour) // the other nodes agree that this clock is an hour behind
	source.set(7 * time.Hour)
	source.pass(time.Minute, s)
	if got := s.Now().Sub(before); got < 57*time.Second || got > 63*time.Second {
		t.Errorf("a minute passed in %v when the wall clock was set", got)
	}
	source.set(-7 * time.Hour)
	s.Correct(time.Hour)
	source.pass(2*time.Hour, s)
	if got := source.Now().Add(time.Hour).Sub(s.Now()); got != 0 {
		t.Errorf("the time differs from the correct one by %v after two hours", got)
	}
	s.Correct(30 * 24 * time.Hour) // all clocks were wrong and are set
	source.pass(2*time.Millisecond, s)
	if got := source.Now().Add(30 * 24 * time.Hour).Sub(s.Now()); got != 0 {
		t.Errorf("the time differs from the correct one by %v", got)
	}
}

// Whatever the clocks do, the time of a cluster never goes back, whoever reads it and when.
func TestTimeOfAClusterNeverGoesBack(t *testing.T) {
	t.Parallel()
	source := &handClock{wall: noon}
	s := NewShared(source)
	last := s.Resume(noon.Add(time.Hour))
	for i := range 20_000 {
		source.set(time.Duration(i%7-3) * time.Minute)
		step := time.Duration(i%11) * 300 * time.Microsecond
		source.wall, source.monotonic = source.wall.Add(step), source.monotonic+step
		now := s.Now()
		if i%3 == 0 {
			read, setBy := s.Read()
			if read < now || setBy != 0 {
				t.Fatalf("read %v after %v, set by %v", read, now, setBy)
			}
			now = read
		}
		if now < last {
			t.Fatalf("the time goes back by %v", last.Sub(now))
		}
		last = now
	}
}
