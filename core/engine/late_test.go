package engine_test

import (
	"strings"
	"testing"
	"time"

	"broker/core"
	"broker/core/engine"
	"broker/core/internal/store/storetest"
	"broker/core/notify"
)

// slowDiskEngine is an engine whose jobs are only on a disk that does not answer reads until the test allows it.
type slowDiskEngine struct {
	*fixture
	disk   *storetest.Disk
	asked  notify.Signal // a read has begun
	answer chan struct{} // closed to let reads go on
	worker core.ClientID
	woken  notify.Signal // news for worker
}

// openOnSlowDisk returns such an engine that was restarted with n large jobs in queue q.
func openOnSlowDisk(t *testing.T, n int) *slowDiskEngine {
	t.Helper()
	disk := storetest.NewDisk()
	c := &slowDiskEngine{disk: disk, asked: notify.NewSignal(), answer: make(chan struct{}), woken: notify.NewSignal()}
	c.fixture = setup(t, func(o *engine.Options) { o.FS = disk.FS() })
	client := c.client(core.Faktory)
	for range n {
		c.one(client, &core.Submit{Job: &core.Job{
			Queue: "q", Body: []byte(strings.Repeat("x", 10_000)), Origin: core.Faktory, MaxFails: 5,
		}})
	}
	c.Flush()
	c.shutdown()
	c.fixture.open(func(o *engine.Options) { o.FS = disk.FS() })
	c.worker = c.Open(core.ClientOptions{Protocol: core.Workq, Wake: c.woken.Set})
	disk.Before(func(write bool) error {
		if !write {
			c.asked.Set()
			<-c.answer
		}
		return nil
	})
	return c
}

func (c *slowDiskEngine) lease(tag uint64) core.Op {
	return &core.Lease{Tag: tag, Queues: []string{"q"}, Holder: core.HeldByNobody, Late: true}
}

// want waits for the next reply of the worker; there must be exactly one.
func (c *slowDiskEngine) want(kind core.ReplyKind, tag uint64) core.Reply {
	c.t.Helper()
	var got []core.Reply
	for len(got) == 0 {
		<-c.woken
		got = c.Do(c.worker, nil, nil)
	}
	if len(got) != 1 || got[0].Kind != kind || got[0].Tag != tag {
		c.t.Fatalf("got %+v, want kind %d of %d", got, kind, tag)
	}
	return got[0]
}

func TestReadsForOneClientDoNotDelayOthers(t *testing.T) {
	t.Parallel()
	c := openOnSlowDisk(t, 1)
	if r := c.one(c.worker, c.lease(7)); r.Kind != core.Reading || r.Tag != 7 || r.Job != nil {
		t.Fatalf("lease: %+v", r)
	}
	<-c.asked // and no answer
	other := c.client(core.Workq)
	if r := c.one(other, &core.Submit{Job: &core.Job{Queue: "r", Origin: core.Workq}}); r.Kind != core.Submitted {
		t.Errorf("submit: %+v", r)
	}
	if r := c.one(other, &core.Lease{Queues: []string{"r"}, Holder: core.HeldByNobody}); r.Kind != core.Assigned {
		t.Errorf("lease of a job in memory: %+v", r)
	}
	if r := c.one(other, &core.Lease{Queues: []string{"q"}, Holder: core.HeldByNobody}); r.Kind != core.NothingReady {
		t.Errorf("lease of the job that is being read: %+v", r)
	}
	close(c.answer)
	r := c.want(core.Assigned, 7)
	if r.Job == nil || len(r.Job.Body) != 10_000 || r.Lease.Attempts != 1 {
		t.Errorf("%+v, job %+v", r, r.Job)
	}
	if r := c.one(c.worker,
		&core.Complete{Ref: core.Ref{Seq: r.Seq}, Authority: core.ByLeased}); r.Kind != core.Accepted {
		t.Errorf("complete: %+v", r)
	}
}

// If a client gives back a job that is being read for it, the next client gets the job, at its old place and with its
// old number of attempts.
func TestJobsThatAreBeingReadCanBeGivenBack(t *testing.T) {
	t.Parallel()
	for name, giveUp := range map[string]func(c *slowDiskEngine){
		"cancelled": func(c *slowDiskEngine) {
			if r := c.one(c.worker, &core.CancelLease{}); r.Kind != core.TimedOut || r.Tag != 7 {
				t.Errorf("cancel: %+v", r)
			}
		},
		"closed": func(c *slowDiskEngine) {
			c.Close(c.worker)
			c.worker = c.Open(core.ClientOptions{Protocol: core.Workq, Wake: c.woken.Set})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := openOnSlowDisk(t, 2)
			first := c.one(c.worker, c.lease(7))
			<-c.asked
			giveUp(c)
			if r := c.one(c.worker, c.lease(8)); r.Kind != core.Reading || r.Seq != first.Seq {
				t.Fatalf("second lease: %+v after %+v", r, first)
			}
			close(c.answer)
			if r := c.want(core.Assigned, 8); r.Seq != first.Seq || r.Lease.Attempts != 1 || len(r.Job.Body) != 10_000 {
				t.Errorf("%+v", r)
			}
			if err := c.Check(); err != nil {
				t.Error(err)
			}
		})
	}
}

// A job that is removed while it is being read is not handed out.
func TestJobsThatAreBeingReadCanBeRemoved(t *testing.T) {
	t.Parallel()
	c := openOnSlowDisk(t, 1)
	r := c.one(c.worker, c.lease(7))
	<-c.asked
	if r := c.one(c.client(core.Internal), &core.Cancel{Ref: core.Ref{Seq: r.Seq}}); r.Kind != core.Accepted {
		t.Fatalf("cancel: %+v", r)
	}
	c.Flush()
	close(c.answer)
	var got []core.Reply
	for len(got) == 0 {
		<-c.woken
		got = c.Do(c.worker, nil, nil)
	}
	// The read may have been quicker than the removal on the disk.
	if got[0].Kind != core.TimedOut && got[0].Kind != core.Assigned || got[0].Tag != 7 {
		t.Errorf("%+v", got)
	}
}

// While a leased job is being read, another client may fail it again. The lease must not show the later failure: it is
// not the failure of the previous try, and its commit may not be durable.
func TestLeasesDoNotShowLaterFailures(t *testing.T) {
	t.Parallel()
	c := openOnSlowDisk(t, 1)
	seq := c.one(c.worker, c.lease(7)).Seq
	fail := func(message string) {
		t.Helper()
		op := &core.Fail{
			Ref: core.Ref{Seq: seq}, Authority: core.ByAnyone, Failure: &core.Failure{Message: message},
			RetryAt: c.Now().Add(time.Millisecond),
		}
		if r := c.one(c.client(core.Faktory), op); r.Kind != core.Accepted {
			t.Fatalf("fail: %+v", r)
		}
		c.Flush()
	}
	<-c.asked
	fail("first")
	c.clk.Advance(time.Second)
	c.Tick()
	if r := c.one(c.worker, c.lease(8)); r.Kind != core.Reading || r.Lease.Fails != 1 {
		t.Fatalf("second lease: %+v", r)
	}
	fail("second")
	close(c.answer)
	for {
		<-c.woken
		for _, r := range c.Do(c.worker, nil, nil) {
			if r.Tag != 8 {
				continue
			}
			if r.Kind != core.Assigned || r.Lease.Failure != nil && r.Lease.Failure.Count > r.Lease.Fails {
				t.Errorf("after %d failures: %+v with %+v", r.Lease.Fails, r, r.Lease.Failure)
			}
			return
		}
	}
}

func TestShutdownWaitsForJobsThatAreBeingRead(t *testing.T) {
	t.Parallel()
	c := openOnSlowDisk(t, 10)
	for tag := range uint64(10) {
		c.one(c.worker, c.lease(tag))
	}
	<-c.asked
	close(c.answer)
	c.shutdown()
	c.fixture.open(func(o *engine.Options) { o.FS = c.disk.FS() })
	if err := c.Check(); err != nil {
		t.Error(err)
	}
}
