package engine_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"broker/core"
	"broker/core/coretest"
	"broker/core/engine"
	"broker/core/internal/store/storetest"
)

// recordingListener records the failures and commits of an engine.
type recordingListener struct {
	core.NopListener
	mu      sync.Mutex
	failed  []error
	commits []int
	full    chan bool
}

func (e *recordingListener) StoreFailed(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.failed = append(e.failed, err)
}

func (e *recordingListener) CommitDone(records int, _ time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.commits = append(e.commits, records)
}

func (e *recordingListener) DiskFull(reached bool, _ uint64) { e.full <- reached }

// counts returns the number of failures and the number of records of each commit.
func (e *recordingListener) counts() (failures int, commits []int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.failed), e.commits
}

var errTorn = errors.New("torn out")

// failFrom makes every write from the n-th on fail, counted from 1.
func failFrom(disk *storetest.Disk, n int64) (failed *atomic.Bool) {
	failed = &atomic.Bool{}
	var writes atomic.Int64
	disk.Before(func(write bool) error {
		if write && writes.Add(1) >= n {
			failed.Store(true)
			return errTorn
		}
		return nil
	})
	return failed
}

// TestFailedWriteStopsTheEngine plays each story on a disk that fails at each of its writes in turn.
func TestFailedWriteStopsTheEngine(t *testing.T) {
	t.Parallel()
	for _, s := range stories {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			for n := int64(1); ; n++ {
				disk, clk, listener := storetest.NewDisk(), coretest.NewClock(), &recordingListener{}
				w := newRecorder(t, disk, clk, func(o *engine.Options) { o.Listener = listener })
				woken := watched{engine: w.Engine}
				woken.open(core.Workq, core.Gearman)
				failed := failFrom(disk, n)
				s.play(w)
				w.flush()
				if !failed.Load() {
					disk.Before(nil)
					w.shutdown()
					t.Logf("%d writes", n-1)
					return
				}
				checkStopped(t, n, w, listener, &woken)
				disk.Before(nil)
				committed, after := w.Committed(), disk.Crash(nil, 0)
				_ = w.Shutdown() // says that the store failed
				d := &fixture{t: t, clk: clk, fs: after.FS()}
				d.open(nil)
				if err := w.compare(d, committed); err != nil {
					t.Fatalf("failure at write %d: %v", n, err)
				}
				d.shutdown()
			}
		})
	}
}

// watched counts the wake-ups of clients that do nothing.
type watched struct {
	engine *engine.Engine
	wakes  []*atomic.Int64
}

func (w *watched) open(protocols ...core.Protocol) {
	for _, p := range protocols {
		n := &atomic.Int64{}
		w.wakes = append(w.wakes, n)
		w.engine.Open(core.ClientOptions{Protocol: p, Wake: func() { n.Add(1) }})
	}
}

// checkStopped checks the behaviour of an engine whose store has failed.
func checkStopped(t *testing.T, n int64, w *recorder, listener *recordingListener, woken *watched) {
	t.Helper()
	fatal := func(format string, args ...any) {
		t.Helper()
		t.Fatalf("failure at write %d: "+format, append([]any{n}, args...)...)
	}
	if !w.Stopped() {
		fatal("the engine goes on")
	}
	committed := w.Committed()
	for _, op := range []core.Op{
		&core.Submit{Job: &core.Job{Queue: "q", Origin: core.Gearman}}, &core.Lease{Queues: []string{"q"}},
		&core.Complete{Ref: w.ref(1), Authority: core.ByAnyone}, &core.CreateQueue{Queue: "new"},
	} {
		if r := w.one(w.client, op); r.Kind != core.Failed || !errors.Is(r.Err, core.ErrStopped) {
			fatal("%T: %+v", op, r)
		}
	}
	w.flush()
	if now := w.Committed(); now != committed {
		fatal("commit %d was announced after %d and the failure", now, committed)
	}
	for _, op := range []core.Op{&core.Inspect{Ref: w.ref(1)}, &core.InspectQueue{Queue: "q"}} {
		if r := w.one(w.client, op); r.Kind == core.Failed && errors.Is(r.Err, core.ErrStopped) {
			fatal("%T is refused: %v", op, r.Err)
		}
	}
	if stats := w.one(w.client, &core.ReadStats{}).Stats; stats == nil || !stats.Stopped {
		fatal("the counters do not say so: %+v", stats)
	}
	if failures, _ := listener.counts(); failures != 1 {
		fatal("the listener got %d times", failures)
	}
	if !errors.Is(listener.failed[0], errTorn) {
		fatal("the listener got %v", listener.failed[0])
	}
	for i, n := range woken.wakes {
		if n.Load() == 0 {
			fatal("client %d was not woken", i)
		}
	}
}

// TestHeldReplyIsNeverReleasedAfterAFailure checks a single reply whose commit is never announced.
func TestHeldReplyIsNeverReleasedAfterAFailure(t *testing.T) {
	t.Parallel()
	disk := storetest.NewDisk()
	w := newRecorder(t, disk, coretest.NewClock(), nil)
	r := w.one(w.client, &core.Submit{Job: &core.Job{Queue: "q", Origin: core.Gearman}})
	failFrom(disk, 1)
	w.flush()
	w.flush()
	if r.Commit == 0 || w.Committed() >= r.Commit {
		t.Fatalf("reply of commit %d, announced %d", r.Commit, w.Committed())
	}
	_ = w.Shutdown() // says that the store failed
}

// TestFailureWithRealCommitsAndTimers makes a write fail in an engine that commits on its own.
func TestFailureWithRealCommitsAndTimers(t *testing.T) {
	t.Parallel()
	disk, listener := storetest.NewDisk(), &recordingListener{}
	w := newRecorder(t, disk, coretest.NewClock(), func(o *engine.Options) {
		o.ManualCommits, o.ManualTimers, o.Listener = false, false, listener
	})
	woken := make(chan struct{}, 100)
	parked := w.Open(core.ClientOptions{Protocol: core.Workq, Wake: func() { woken <- struct{}{} }})
	w.Do(parked, []core.Op{&core.Lease{Tag: 7, Queues: []string{"other"}, Deadline: w.Now().Add(time.Hour)}}, nil)
	failFrom(disk, 1)
	w.one(w.client, &core.Submit{Job: &core.Job{Queue: "q", Origin: core.Gearman}})
	<-woken
	if !w.Stopped() {
		t.Error("woken, but not stopped")
	}
	if r := w.Do(parked, nil, nil); len(r) != 1 || r[0].Tag != 7 || !errors.Is(r[0].Err, core.ErrStopped) {
		t.Errorf("the parked lease got %+v", r)
	}
	_ = w.Shutdown() // says that the store failed
}

// TestNearlyFullDiskRefusesOnlyNewJobs lets the disk fill up and become free again.
func TestNearlyFullDiskRefusesOnlyNewJobs(t *testing.T) {
	t.Parallel()
	room, listener := storetest.NewRoom(storetest.NewDisk(), 2000), &recordingListener{full: make(chan bool, 10)}
	d := &fixture{t: t, clk: coretest.NewClock(), fs: room}
	d.open(func(o *engine.Options) {
		o.ManualTimers, o.ManualCommits, o.MinFreeDiskBytes, o.Listener = false, false, 1000, listener
	})
	defer d.shutdown()
	c := d.client(core.Gearman)
	submit := func(ephemeral bool) core.Reply {
		op := &core.Submit{Job: &core.Job{Queue: "q", Origin: core.Gearman, Ephemeral: ephemeral}}
		if ephemeral {
			op.Watch = core.WatchStream
		}
		return d.one(c, op)
	}
	if r := submit(false); r.Kind != core.Submitted {
		t.Fatalf("before: %+v", r)
	}
	room.Free.Store(999)
	d.clk.Advance(time.Second)
	if reached := <-listener.full; !reached {
		t.Fatal("the listener got an event that there is room")
	}
	want := core.DiskFullError{Free: 999, Least: 1000}
	if r := submit(false); !errors.Is(r.Err, core.ErrDiskFull) || r.Err.Error() != want.Error() {
		t.Errorf("a job: %+v", r)
	}
	if r := submit(true); r.Kind != core.Submitted {
		t.Errorf("a job that is not stored: %+v", r)
	}
	if r := d.one(c, &core.OpenBatch{}); !errors.Is(r.Err, core.ErrDiskFull) {
		t.Errorf("a batch: %+v", r)
	}
	if !d.one(c, &core.ReadStats{}).Stats.DiskFull {
		t.Error("the counters do not say so")
	}
	r := d.one(c, &core.Lease{Queues: []string{"q"}})
	if r.Kind != core.Assigned {
		t.Fatalf("a lease: %+v", r)
	}
	if r := d.one(c, &core.Complete{Ref: core.Ref{Seq: r.Seq}}); r.Kind != core.Accepted {
		t.Errorf("a result: %+v", r)
	}
	room.Free.Store(1000)
	d.clk.Advance(time.Second)
	if reached := <-listener.full; reached {
		t.Fatal("the listener got a second event that there is no room")
	}
	if r := submit(false); r.Kind != core.Submitted {
		t.Errorf("after: %+v", r)
	}
}

// TestReadAfterShutdownDoesNotStopTheStore requests a job whose body is only in the closed store.
func TestReadAfterShutdownDoesNotStopTheStore(t *testing.T) {
	t.Parallel()
	listener := &recordingListener{}
	w := newRecorder(t, storetest.NewDisk(), coretest.NewClock(),
		func(o *engine.Options) { o.CacheBytes, o.Listener = 1, listener })
	r := w.one(w.client, &core.Submit{Job: &core.Job{Queue: "q", Origin: core.Gearman, Body: []byte("body")}})
	w.flush()
	w.shutdown()
	for _, op := range []core.Op{
		&core.Inspect{Ref: core.Ref{Seq: r.Seq}}, &core.Lease{Queues: []string{"q"}, Holder: core.HeldByNobody},
	} {
		if r := w.one(w.client, op); !errors.Is(r.Err, core.ErrShutdown) {
			t.Errorf("%T is answered %+v", op, r)
		}
	}
	if failures, _ := listener.counts(); failures != 0 || w.Stopped() {
		t.Errorf("%d failures of the store are reported, stopped %v", failures, w.Stopped())
	}
}

// Between two checks by time, a fast producer could write more than the minimum.
func TestFreeSpaceIsCheckedAfterEachCommit(t *testing.T) {
	t.Parallel()
	listener := &recordingListener{full: make(chan bool, 9)}
	room := storetest.NewRoom(storetest.NewDisk(), 1000)
	d := &fixture{t: t, clk: coretest.NewClock(), fs: room}
	d.open(func(o *engine.Options) { o.MinFreeDiskBytes, o.Listener, o.ManualTimers = 1000, listener, true })
	defer d.shutdown()
	c := d.client(core.Gearman)
	submit := func() core.Reply { return d.one(c, &core.Submit{Job: &core.Job{Queue: "q", Origin: core.Gearman}}) }
	if r := submit(); r.Kind != core.Submitted {
		t.Fatalf("with room: %+v", r)
	}
	room.Free.Store(999)
	d.Flush()
	if r := submit(); !errors.Is(r.Err, core.ErrDiskFull) {
		t.Errorf("after a commit that left too little room: %+v", r)
	}
}
