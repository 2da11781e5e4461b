package engine_test

import (
	"errors"
	"testing"
	"time"

	"broker/core"
	"broker/core/coretest"
	"broker/core/engine"
	"broker/core/internal/store/storetest"
)

// A hanging disk returns no error. After HangAfter, clients get errors, reads continue, and deadlines are handled.
func TestHangingDiskStopsTheEngine(t *testing.T) {
	t.Parallel()
	disk, listener := storetest.NewDisk(), &recordingListener{}
	w := newRecorder(t, disk, coretest.NewClock(), func(o *engine.Options) {
		o.ManualCommits, o.ManualTimers, o.Listener, o.HangAfter = false, false, listener, 80*time.Millisecond
	})
	woken := make(chan struct{}, 100)
	c := w.Open(core.ClientOptions{Protocol: core.Workq, Wake: func() { woken <- struct{}{} }})
	release := make(chan struct{})
	disk.Before(func(write bool) error {
		if write {
			<-release
		}
		return nil
	})
	r := w.Do(c, []core.Op{&core.Submit{Tag: 1, Job: &core.Job{Queue: "q", Origin: core.Workq}}}, nil)
	for !w.Stopped() {
		<-woken
	}
	if failures, _ := listener.counts(); failures != 1 {
		t.Errorf("the listener got %d failures", failures)
	}
	if got := w.Do(c, []core.Op{&core.Submit{Tag: 2, Job: &core.Job{Queue: "q", Origin: core.Workq}}},
		nil); !errors.Is(got[0].Err, core.ErrStopped) {
		t.Errorf("a submission got %+v", got)
	}
	if got := w.Do(c, []core.Op{&core.InspectQueue{Tag: 3, Queue: "q"}}, nil); got[0].Kind != core.Queues {
		t.Errorf("a read got %+v", got)
	}
	w.Flush() // returns although the committer is stuck
	disk.Before(nil)
	close(release)
	_ = w.Shutdown() // says that the store failed
	if w.Committed() >= r[0].Commit {
		t.Errorf("commit %d was announced after its clients were refused", w.Committed())
	}
}

// slowListener is told of slow commits.
type slowListener struct {
	core.NopListener
	slow chan time.Duration
}

func (l slowListener) CommitSlow(after time.Duration) { l.slow <- after }

func TestSlowCommitIsReportedWhileItRuns(t *testing.T) {
	t.Parallel()
	disk, listener := storetest.NewDisk(), slowListener{slow: make(chan time.Duration, 9)}
	w := newRecorder(t, disk, coretest.NewClock(), func(o *engine.Options) {
		o.ManualCommits, o.Listener, o.HangAfter = false, listener, time.Hour
	})
	c := w.Open(core.ClientOptions{Protocol: core.Workq})
	release := make(chan struct{})
	disk.Before(func(write bool) error {
		if write {
			<-release
		}
		return nil
	})
	w.Do(c, []core.Op{&core.Submit{Tag: 1, Job: &core.Job{Queue: "q", Origin: core.Workq}}}, nil)
	if after := <-listener.slow; after != time.Second {
		t.Errorf("reported after %v", after)
	}
	if !w.one(c, &core.ReadStats{}).Stats.DiskSlow {
		t.Error("the counters do not say so")
	}
	disk.Before(nil)
	close(release)
	w.Flush()
	if w.one(c, &core.ReadStats{}).Stats.DiskSlow {
		t.Error("the counters still say so")
	}
	w.shutdown()
}
