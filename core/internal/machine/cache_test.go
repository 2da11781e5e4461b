package machine_test

import (
	"testing"

	"broker/core"
	"broker/core/internal/machine"
)

// TestScheduledJobsLeaveCacheRoomForReadyJobs fills the cache with as many scheduled jobs as allowed.
func TestScheduledJobsLeaveCacheRoomForReadyJobs(t *testing.T) {
	t.Parallel()
	m := machine.New(machine.Options{Persist: true, Await: true, CacheBytes: 10_000, Wakeup: -1, StartedAt: 1})
	c := m.OpenClient(0, core.ClientOptions{Protocol: core.Faktory})
	submit := func(at core.Instant) {
		do(t, m, c,
			&core.Submit{Job: &core.Job{Queue: "q", Origin: core.Faktory, ReadyAt: at, Body: make([]byte, 500)}})
		var s machine.Sealed
		m.Seal(&s)
		m.Committed(&s)
	}
	for range 100 {
		submit(1_000_000)
	}
	submit(0)
	if r := do(t, m, c, &core.Lease{Queues: []string{"q"}, Holder: core.HeldByNobody}); r.Kind != core.Assigned ||
		r.Job == nil {
		t.Errorf("the job that came last has to be read from the store: %+v", r)
	}
}

// TestLongQueuesLeaveCacheRoomForShortOnes fills the cache with the jobs of a long queue.
func TestLongQueuesLeaveCacheRoomForShortOnes(t *testing.T) {
	t.Parallel()
	m := machine.New(machine.Options{Persist: true, Await: true, CacheBytes: 16 << 20, Wakeup: -1, StartedAt: 1})
	c := m.OpenClient(0, core.ClientOptions{Protocol: core.Faktory})
	submit := func(queue string, jobs int) {
		for range jobs {
			do(t, m, c, &core.Submit{Job: &core.Job{Queue: queue, Origin: core.Faktory, Body: make([]byte, 200)}})
		}
		var s machine.Sealed
		m.Seal(&s)
		m.Committed(&s)
	}
	for range 50 {
		submit("long", 1000)
	}
	submit("short", 1)
	if r := do(t, m, c, &core.Lease{Queues: []string{"short"}, Holder: core.HeldByNobody}); r.Kind != core.Assigned ||
		r.Job == nil {
		t.Errorf("the job of the short queue has to be read from the store: %+v", r)
	}
}
