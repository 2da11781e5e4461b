package hostile_test

import (
	"strings"
	"testing"
	"time"

	"broker/core"
	"broker/core/coretest"
	"broker/core/engine"
	"broker/operate/hostile"
)

// rightClock is a clock that is never set.
type rightClock struct {
	*coretest.Clock
	began core.Instant
}

// Read implements clock.Monotonic.
func (c rightClock) Read() (core.Instant, time.Duration) { return c.Now(), c.Now().Sub(c.began) }

func TestClockIsSetAndLeasesKeepTheirLength(t *testing.T) {
	t.Parallel()
	fake := coretest.NewClock()
	set := hostile.NewClock(rightClock{fake, fake.Now()})
	e, err := engine.Open(engine.Options{Durability: engine.None, Clock: set, ManualTimers: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Shutdown() }) // nothing is stored
	log := hostile.NewLog(1, hostile.Rates{hostile.Jump: 1}, nil)
	h := hostile.New(e, hostile.Options{Log: log, Clock: set})
	core.DoOnce(e, core.HTTP, &core.Submit{Job: &core.Job{Queue: "held"}})
	held := core.DoOnce(e, core.HTTP,
		&core.Lease{Queues: []string{"held"}, Holder: core.HeldByNobody, LeaseFor: time.Minute})[0]
	before, ahead, behind := fake.Now(), false, false
	for i := range 10 {
		core.DoOnce(h, core.HTTP, &core.Submit{Job: &core.Job{Queue: "mail"}})
		events := log.Events()
		if len(events) != i+1 {
			t.Fatalf("%d faults after %d submissions", len(events), i+1)
		}
		words := strings.Fields(events[i].Detail) // clock set to SPAN ahead
		by, err := time.ParseDuration(words[3])
		if err != nil || by == 0 || by > 10*time.Second {
			t.Fatalf("%s (%v)", events[i].Detail, err)
		}
		if words[4] == "behind" {
			by = -by
		}
		ahead, behind = ahead || by > 0, behind || by < 0
		if got := e.Now().Sub(before); (got - by).Abs() > 500*time.Millisecond { // less is not a setting, but a drift
			t.Errorf("the clock is wrong by %v, want %v", got, by)
		}
		job := core.DoOnce(e, core.HTTP, &core.Inspect{Ref: core.Ref{Seq: held.Seq}})[0].Info
		if rest := job.LeaseUntil.Sub(e.Now()); rest < time.Minute-time.Second || rest > time.Minute+time.Second {
			t.Errorf("with the clock wrong by %v the lease has %v left", by, rest)
		}
	}
	if !ahead || !behind {
		t.Errorf("ahead %v, behind %v", ahead, behind)
	}
}
