package engine

import (
	"errors"
	"testing"
	"time"

	"broker/core"
	"broker/core/internal/store/storetest"
)

// successor is an engine on what another one had committed, whose clients may resume.
func successor(t *testing.T, disk *storetest.Disk) *Engine {
	t.Helper()
	e, err := Open(Options{Dir: "data", FS: disk.FS(), ManualCommits: true, Resumes: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Check(); err != nil {
			t.Error(err)
		}
		_ = e.Shutdown() // reported by the checks above
	})
	return e
}

func openWorker(e *Engine) func(core.Op) core.Reply {
	id := e.Open(core.ClientOptions{Protocol: core.Gearman, Wake: func() {}})
	return func(op core.Op) core.Reply {
		for _, r := range e.Do(id, []core.Op{op}, nil) {
			if r.Tag == op.TagOf() {
				return r
			}
		}
		return core.Reply{}
	}
}

// A connection continues its lease at the next engine, also one with the last attempt of the job; others end.
func TestLeaseOfConnectionContinuesAtNextEngine(t *testing.T) {
	t.Parallel()
	disk := storetest.NewDisk()
	e := successor(t, disk)
	e.Settle()
	first := openWorker(e)
	for range 3 {
		first(&core.Submit{Tag: 1, Job: &core.Job{Queue: "q", MaxAttempts: 1, Origin: core.Gearman}})
	}
	lease := func() core.Reply { return first(&core.Lease{Tag: 2, Queues: []string{"q"}}) }
	kept, left := lease(), lease()
	e.Flush()
	next := successor(t, disk.Crash(nil, 0))
	worker, other := openWorker(next), openWorker(next)
	resume := &core.LeaseJob{Tag: 3, Ref: core.Ref{Seq: kept.Seq}, ByConn: true, Resumes: &kept.Lease}
	r := worker(resume)
	if r.Kind != core.Accepted || r.Lease.Epoch != kept.Lease.Epoch || r.Lease.Attempts != 1 {
		t.Errorf("the lease continues with %+v", r)
	}
	if r := other(resume); !errors.Is(r.Err, core.ErrNotLeased) {
		t.Errorf("a second client continues it: %+v", r)
	}
	next.Settle()
	if r := other(&core.Inspect{Tag: 4, Ref: core.Ref{Seq: left.Seq}}); r.Kind == core.Inspected {
		t.Errorf("the job without attempts is %v", r.Info.State)
	}
	if r := worker(&core.Complete{Tag: 5, Ref: core.Ref{Seq: kept.Seq}}); r.Kind != core.Accepted {
		t.Errorf("completion: %+v", r)
	}
}

// A job that only the memory of the engine before had comes back under its number, once.
func TestForegroundJobComesBackUnderItsNumber(t *testing.T) {
	t.Parallel()
	disk := storetest.NewDisk()
	e := successor(t, disk)
	e.Settle()
	submit := func(seq uint64, again core.Again) *core.Submit {
		job := &core.Job{Seq: seq, Queue: "q", Ephemeral: true, Body: []byte("b"), Origin: core.Gearman}
		return &core.Submit{Tag: 1, Job: job, Watch: core.WatchStream, Again: again}
	}
	seq := openWorker(e)(submit(0, core.AgainNo)).Seq
	e.Flush()
	next := successor(t, disk.Crash(nil, 0))
	client := openWorker(next)
	if r := client(submit(seq, core.AgainJoin)); !errors.Is(r.Err, core.ErrNotFound) {
		t.Errorf("joined before it is there: %+v", r)
	}
	for _, existing := range []bool{false, true} {
		if r := client(submit(seq, core.AgainAdmit)); r.Seq != seq || r.Existing != existing {
			t.Errorf("not %d, %v: %+v", seq, existing, r)
		}
	}
	if r := client(submit(1<<40, core.AgainAdmit)); !errors.Is(r.Err, core.ErrInvalid) {
		t.Errorf("a number that was not given out: %+v", r)
	}
	if r := client(submit(0, core.AgainNo)); r.Seq <= seq {
		t.Errorf("the next number is %d", r.Seq)
	}
}

// Who leases a job with a window waits for the commit that stores the window, and not longer than that.
func TestLeaseOfJobWithWindowWaitsForTheWindow(t *testing.T) {
	t.Parallel()
	e := successor(t, storetest.NewDisk())
	e.Settle()
	client := openWorker(e)
	submit := func(key string, window core.Instant) core.Reply {
		return client(&core.Submit{Tag: 1, Window: window, Job: &core.Job{
			Queue: key, UniqueKey: key, Unique: core.UniqueCoalesce, Origin: core.SQS,
		}})
	}
	lease := func(queue string) core.Reply {
		return client(&core.Lease{Tag: 2, Queues: []string{queue}, Holder: core.HeldByNobody})
	}
	until := e.Now().Add(time.Hour)
	sent := submit("fresh", until)
	submit("plain", 0)
	if r := lease("fresh"); r.Kind != core.Assigned || r.Commit < sent.Commit {
		t.Errorf("submitted in commit %d, leased: %+v", sent.Commit, r)
	}
	if r := lease("plain"); r.Kind != core.Assigned || r.Commit != 0 {
		t.Errorf("a job without a window was leased with %+v", r)
	}
	submit("stored", until)
	e.Flush()
	if r := lease("stored"); r.Kind != core.Assigned || r.Commit != 0 {
		t.Errorf("a job whose window is stored was leased with %+v", r)
	}
}
