package machine

import (
	"testing"
	"time"

	"broker/core"
)

// TestStaleJobsAreDroppedInSteps has many jobs past their StartBefore, and a good job behind them.
func TestStaleJobsAreDroppedInSteps(t *testing.T) {
	t.Parallel()
	const stale = 1000
	r := newRig(t)
	c := r.client(core.Faktory)
	for range stale {
		job := &core.Job{Queue: "q", Origin: core.Faktory, StartBefore: r.now.Add(time.Second)}
		r.m.Apply(r.now, c, []core.Op{&core.Submit{Job: job}})
	}
	r.m.Take(c, nil)
	good := r.submit(c, &core.Job{Queue: "q", Origin: core.Faktory})
	r.now = r.now.Add(2 * time.Second)
	ready := func() int { return r.m.Stats().Jobs[core.Ready] }
	lease := &core.Lease{
		Tag: 7, Queues: []string{"q"}, Holder: core.HeldByWorker, Worker: "w", Deadline: r.now.Add(time.Hour),
	}
	if got := r.do(c, lease); len(got) != 0 {
		t.Fatalf("the lease is answered %+v: it waited for all stale jobs to be dropped", got)
	}
	for left := ready(); r.m.Tick(r.now, 50); left = ready() {
		if dropped := left - ready(); dropped > 50 {
			t.Errorf("%d jobs were dropped in one step", dropped)
		}
	}
	got := r.m.Take(c, nil)
	if len(got) != 1 || got[0].Kind != core.Assigned || got[0].Seq != good {
		t.Errorf("the parked lease gets %+v, want job %d", got, good)
	}
	if expired := r.m.Stats().Totals.Expired; expired != stale {
		t.Errorf("%d jobs have expired, want %d", expired, stale)
	}
}

// TestStaleJobsExpireWithoutWorkers has no worker that requests them.
func TestStaleJobsExpireWithoutWorkers(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.client(core.Faktory)
	r.submit(c, &core.Job{Queue: "q", Origin: core.Faktory, StartBefore: r.now.Add(time.Second)})
	later := r.submit(c, &core.Job{
		Queue: "q", Origin: core.Faktory, StartBefore: r.now.Add(time.Minute), ReadyAt: r.now.Add(time.Second),
	})
	taken := r.submit(c, &core.Job{Queue: "p", Origin: core.Faktory, StartBefore: r.now.Add(time.Second)})
	lease := r.one(c, &core.Lease{Queues: []string{"p"}, Holder: core.HeldByWorker, Worker: "w"})
	r.now = r.now.Add(2 * time.Second)
	r.m.Tick(r.now, 100)
	if jobs := r.m.Stats().Jobs; jobs[core.Ready] != 1 || jobs[core.Leased] != 1 || r.m.table.Handle(later) == 0 {
		t.Errorf("jobs by state: %v, want the one that has time and the one that was taken", jobs)
	}
	r.one(c, &core.Release{Ref: core.Ref{Seq: taken}, Epoch: lease.Lease.Epoch})
	r.m.Tick(r.now, 100)
	if r.m.table.Handle(taken) != 0 {
		t.Error("a job that came back after its time to start is still there")
	}
}
