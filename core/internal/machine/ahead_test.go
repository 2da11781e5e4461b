package machine_test

import (
	"testing"
	"time"

	"broker/core"
	"broker/core/coretest"
	"broker/core/internal/machine"
)

// TestRefillKeepsWhatHasNotChanged changes, takes and removes jobs between Ahead and Refill.
func TestRefillKeepsWhatHasNotChanged(t *testing.T) {
	t.Parallel()
	clk, shelf := coretest.NewClock(), newMemStore()
	opts := machine.Options{Persist: true, Await: true, Wakeup: -1, DefaultLease: time.Minute}
	m := machine.New(opts)
	c := m.OpenClient(0, core.ClientOptions{Protocol: core.Faktory})
	for _, queue := range []string{"stays", "changed", "taken", "removed"} {
		do(t, m, c, &core.Submit{Job: &core.Job{Queue: queue, Origin: core.Faktory, Body: []byte("old")}})
	}
	commit := func() {
		var s machine.Sealed
		m.Seal(&s)
		if _, err := shelf.put(&s.Batch); err != nil {
			t.Fatal(err)
		}
		m.Committed(&s)
	}
	commit()
	for _, cache := range []int{1, 3000} {
		opts.CacheBytes = cache
		m = machine.New(opts)
		if err := shelf.load(m, clk.Now()); err != nil {
			t.Fatal(err)
		}
		if jobs := m.Ahead(1); cache == 1 && len(jobs) != 0 {
			t.Errorf("without room in the cache %d jobs are read ahead", len(jobs))
		}
	}
	jobs := m.Ahead(1)
	if len(jobs) != 4 {
		t.Fatalf("%d of 4 jobs are read ahead", len(jobs))
	}
	for k := range jobs {
		j := *shelf.jobs[jobs[k].Seq].Job
		jobs[k].Job = &j
	}
	c = m.OpenClient(0, core.ClientOptions{Protocol: core.Faktory})
	shelf.apply(m, clk.Now(), c, &core.Update{
		Ref: core.Ref{Seq: jobs[1].Seq}, Set: core.JobChange{Body: &core.Body{Bytes: []byte("new")}},
	})
	do(t, m, c, &core.Submit{Job: &core.Job{Queue: "large", Origin: core.Faktory, Body: make([]byte, 4000)}})
	do(t, m, c, &core.Lease{Queues: []string{"taken"}, Holder: core.HeldByNobody})
	do(t, m, c, &core.Cancel{Ref: core.Ref{Seq: jobs[3].Seq}})
	commit()
	m.Refill(jobs)
	if err := m.Check(); err != nil {
		t.Error(err)
	}
	for queue, want := range map[string]string{"stays": "old", "changed": "new"} {
		shelf.apply(m, clk.Now(), c, &core.Lease{Queues: []string{queue}, Holder: core.HeldByNobody})
		got, needs := shelf.take(m, c)
		if w, needed := needs[0]; needed != (queue == "changed") || shelf.complete(&got[0], w, needed) != nil ||
			string(got[0].Job.Body) != want {
			t.Errorf("%s: %+v with %+v, from the store: %v", queue, got[0], got[0].Job, needed)
		}
	}
}
