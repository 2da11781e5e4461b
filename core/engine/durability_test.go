package engine_test

import (
	"bytes"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"broker/core"
	"broker/core/clock"
	"broker/core/coretest"
	"broker/core/engine"
	"broker/core/internal/store/storetest"
)

// countWrites counts the writes to a disk from now on.
func countWrites(disk *storetest.Disk) *atomic.Int64 {
	n := &atomic.Int64{}
	disk.Before(func(write bool) error {
		if write {
			n.Add(1)
		}
		return nil
	})
	return n
}

func TestDurabilityNoneTouchesNoDisk(t *testing.T) {
	t.Parallel()
	disk := storetest.NewDisk()
	writes := countWrites(disk)
	w := newRecorder(t, disk, coretest.NewClock(), func(o *engine.Options) { o.Durability = engine.None })
	stories[0].play(w)
	r := w.one(w.client, &core.Submit{Job: &core.Job{Queue: "q", Origin: core.Gearman}})
	if r.Kind != core.Submitted || r.Commit != 0 {
		t.Errorf("submit: %+v", r)
	}
	w.shutdown()
	if n := writes.Load(); n != 0 {
		t.Errorf("%d writes", n)
	}
}

// TestJobThatComesAndGoesInOneBatchIsNeverWritten submits, leases and finishes jobs before the commit.
func TestJobThatComesAndGoesInOneBatchIsNeverWritten(t *testing.T) {
	t.Parallel()
	disk, listener := storetest.NewDisk(), &recordingListener{}
	w := newRecorder(t, disk, coretest.NewClock(), func(o *engine.Options) { o.Listener = listener })
	_, before := listener.counts()
	writes := countWrites(disk)
	var last core.Commit
	for range 100 {
		r := w.one(w.client, &core.Submit{Job: &core.Job{Queue: "q", Origin: core.Gearman}})
		w.one(w.client, &core.Lease{Queues: []string{"q"}})
		last = w.one(w.client, &core.Complete{Ref: core.Ref{Seq: r.Seq}}).Commit
	}
	w.flush()
	if w.Committed() < last {
		t.Errorf("commit %d is not announced, only %d", last, w.Committed())
	}
	if _, after := listener.counts(); len(after) != len(before) || writes.Load() != 0 {
		t.Errorf("%d commits and %d writes for nothing", len(after)-len(before), writes.Load())
	}
	w.shutdown()
}

// TestRecordsPerJob counts the durable records for a job whose steps are in separate batches.
func TestRecordsPerJob(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		holder core.Holder
		claim  core.FinishAuthority
		want   string // records at submission, lease and finish; the counters are one, the day's another
	}{
		{"a connection guards the lease: it is not recorded", core.HeldByConn, core.ByHolder, "[2 0 3]"},
		{"a lease that must outlive the connection is", core.HeldByWorker, core.ByLeased, "[2 2 3]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			listener := &recordingListener{}
			w := newRecorder(t, storetest.NewDisk(), coretest.NewClock(),
				func(o *engine.Options) { o.Listener = listener })
			defer w.shutdown()
			var got []int
			step := func(op core.Op) {
				_, before := listener.counts()
				w.do(op)
				w.flush()
				sum := 0
				if _, after := listener.counts(); len(after) > len(before) {
					sum = after[len(after)-1]
				}
				got = append(got, sum)
			}
			step(&core.Submit{Job: &core.Job{Queue: "q", Origin: core.Gearman}})
			step(&core.Lease{Queues: []string{"q"}, Holder: c.holder, Worker: "w"})
			step(&core.Complete{Ref: w.ref(1), Authority: c.claim})
			if fmt.Sprint(got) != c.want {
				t.Errorf("records %v, want %s", got, c.want)
			}
		})
	}
}

// TestRelaxedCommitsFollowSoon lets the engine commit on its own, although no client waits.
func TestRelaxedCommitsFollowSoon(t *testing.T) {
	t.Parallel()
	const every = 20 * time.Millisecond
	disk, clk := storetest.NewDisk(), coretest.NewClock()
	done := make(chan struct{}, 100)
	w := newRecorder(t, disk, clk, func(o *engine.Options) {
		o.Durability, o.SyncEvery, o.ManualCommits, o.Listener = engine.Relaxed, every, false, &commitSignal{done: done}
	})
	for len(done) > 0 {
		<-done
	}
	start := clock.System{}.Now()
	r := w.one(w.client, &core.Submit{Job: &core.Job{Queue: "q", Origin: core.Gearman}})
	<-done
	if took := (clock.System{}).Now().Sub(start); took < every/2 || took > every+2*time.Second {
		t.Errorf("the commit came after %v, want about %v", took, every)
	}
	after := disk.Crash(nil, 0)
	w.shutdown()
	d := &fixture{t: t, clk: clk, fs: after.FS()}
	d.open(nil)
	defer d.shutdown()
	if i := d.one(d.observer(), &core.Inspect{Ref: core.Ref{Seq: r.Seq}}); i.Info == nil {
		t.Error("the job is lost")
	}
}

// TestLargeBatchDelaysTheNextBatch uses a clock that stands still, so that the whole delay is left.
func TestLargeBatchDelaysTheNextBatch(t *testing.T) {
	t.Parallel()
	done := make(chan struct{}, 100)
	w := newRecorder(t, storetest.NewDisk(), coretest.NewClock(), func(o *engine.Options) {
		o.ManualCommits, o.Listener = false, &commitSignal{done: done}
	})
	defer w.shutdown()
	for len(done) > 0 {
		<-done
	}
	commit := func(jobs int) time.Duration {
		ops := make([]core.Op, jobs)
		for i := range ops {
			ops[i] = &core.Submit{Job: &core.Job{Queue: "q", Origin: core.Gearman}}
		}
		start := clock.System{}.Now()
		w.Do(w.client, ops, nil)
		<-done
		return clock.System{}.Now().Sub(start)
	}
	commit(200)
	if took := commit(1); took < time.Millisecond {
		t.Errorf("a commit after a large one took %v: it was not held up for others to join", took)
	}
}

// commitSignal signals commits.
type commitSignal struct {
	core.NopListener
	done chan struct{}
}

func (s *commitSignal) CommitDone(int, time.Duration) { s.done <- struct{}{} }

// TestColdPayloadsAreReadBack uses a cache for only a few jobs.
func TestColdPayloadsAreReadBack(t *testing.T) {
	t.Parallel()
	w := newRecorder(t, storetest.NewDisk(), coretest.NewClock(), func(o *engine.Options) { o.CacheBytes = 20_000 })
	defer w.shutdown()
	const jobs = 60
	body := func(i int) []byte { return bytes.Repeat([]byte{byte(i)}, 10+i*200) } // small ones and large ones
	for i := range jobs {
		w.one(w.client, &core.Submit{Job: &core.Job{
			Queue: "q", Origin: core.Faktory, Body: body(i), Attributes: []byte{byte(i), 1}, ID: fmt.Sprint("job ", i),
			MaxFails: 2, RetainFor: time.Hour,
		}})
	}
	w.flush()
	for i := range jobs {
		r := w.one(w.client, &core.Lease{Queues: []string{"q"}, Holder: core.HeldByWorker, Worker: "w"})
		if r.Job == nil || !bytes.Equal(r.Job.Body, body(i)) || !bytes.Equal(r.Job.Attributes, []byte{byte(i), 1}) {
			t.Fatalf("job %d was handed out as %+v", i, r.Job)
		}
	}
	w.flush()
	for i := range jobs {
		r := w.one(w.client, &core.Inspect{Ref: core.Ref{ID: fmt.Sprint("job ", i)}, Brief: true})
		w.one(w.client, &core.Fail{
			Ref: core.Ref{Seq: r.Seq}, Authority: core.ByLeased, Failure: &core.Failure{Message: fmt.Sprint("no ", i)},
		})
	}
	w.flush()
	for i := range jobs {
		r := w.one(w.client, &core.Lease{Queues: []string{"q"}, Holder: core.HeldByWorker, Worker: "w"})
		if r.Lease.Failure == nil || r.Lease.Failure.Message != fmt.Sprint("no ", i) ||
			!bytes.Equal(r.Job.Body, body(i)) {
			t.Fatalf("job %d was handed out again with failure %+v", i, r.Lease.Failure)
		}
		w.one(w.client, &core.Complete{Ref: core.Ref{Seq: r.Seq}, Authority: core.ByLeased, Result: body(i)})
	}
	w.flush()
	for i := range jobs {
		ref := core.Ref{ID: fmt.Sprint("job ", i)}
		if r := w.one(w.client, &core.Await{Ref: ref}); r.Outcome == nil || !bytes.Equal(r.Outcome.Result, body(i)) {
			t.Fatalf("job %d ended as %+v", i, r.Outcome)
		}
		if info := w.one(w.client, &core.Inspect{Ref: ref}).Info; info.Outcome == nil ||
			!bytes.Equal(info.Job.Body, body(i)) {
			t.Fatalf("job %d is known as %+v", i, info)
		}
	}
}
