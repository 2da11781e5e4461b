package client_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"broker/core"
	"broker/core/client"
	"broker/core/coretest"
	"broker/core/engine"
)

// patience is the timeout of a test.
const patience = 20 * time.Second

func openBroker(t *testing.T) *engine.Engine {
	t.Helper()
	e, err := engine.Open(engine.Options{Dir: "store", FS: coretest.MemoryFS()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Shutdown(); err != nil {
			t.Error(err)
		}
	})
	return e
}

func open(t *testing.T, b core.Broker, o client.Options) *client.Client {
	t.Helper()
	o.Protocol = core.HTTP
	c := client.Open(b, o)
	t.Cleanup(c.Close)
	return c
}

func submit(t *testing.T, c *client.Client) core.Reply {
	t.Helper()
	r, err := c.Ask(&core.Submit{Job: &core.Job{Queue: "q"}})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func lease(e *engine.Engine, queue string, n int) *core.Lease {
	return &core.Lease{
		Queues: []string{queue}, Holder: core.HeldByWorker, Max: n,
		LeaseFor: time.Minute, Deadline: e.Now().Add(patience),
	}
}

func TestCommittedReturnsWhenTheChangeIsDurable(t *testing.T) {
	t.Parallel()
	e := openBroker(t)
	c := open(t, e, client.Options{})
	r := submit(t, c)
	if r.Commit == 0 {
		t.Fatal("a submission depends on no commit")
	}
	if err := c.Committed(t.Context(), r.Commit); err != nil || !c.HasCommitted(r.Commit) {
		t.Errorf("error %v, durable %v", err, c.HasCommitted(r.Commit))
	}
}

// TestCommittedEnds checks the reasons for which a wait ends without its commit. Commit never comes.
func TestCommittedEnds(t *testing.T) {
	t.Parallel()
	const never = core.Commit(1 << 40)
	e := openBroker(t)
	ending := make(chan struct{})
	close(ending)
	gone := errors.New("gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(gone)
	for name, c := range map[string]struct {
		options client.Options
		ctx     context.Context
		want    error
	}{
		"timeout":          {client.Options{CommitTimeout: time.Millisecond}, t.Context(), client.ErrCommitTimeout},
		"end of the owner": {client.Options{Ending: ending}, t.Context(), core.ErrShutdown},
		"end of the call":  {client.Options{}, ctx, gone},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := open(t, e, c.options).Committed(c.ctx, never); !errors.Is(err, c.want) {
				t.Errorf("error %v, want %v", err, c.want)
			}
		})
	}
}

// slowBroker is a broker whose commits become durable while the client waits, and that does not wake it.
type slowBroker struct {
	core.Broker

	asked int // how often it was asked; it is durable from the third time on
}

func (b *slowBroker) Committed() core.Commit {
	if b.asked++; b.asked < 3 {
		return 0
	}
	return 1
}

// If a process stands still for a while, the timeout and the commit come together.
func TestCommittedKnowsAtItsTimeoutThatTheChangeIsDurable(t *testing.T) {
	t.Parallel()
	c := open(t, &slowBroker{Broker: openBroker(t)}, client.Options{CommitTimeout: time.Millisecond})
	if err := c.Committed(t.Context(), 1); err != nil {
		t.Error(err)
	}
}

func TestLeasedWaitsForTheFirstJob(t *testing.T) {
	t.Parallel()
	e := openBroker(t)
	worker, producer := open(t, e, client.Options{}), open(t, e, client.Options{})
	worker.Do(lease(e, "q", 1))
	if worker.Replied() {
		t.Fatal("a lease of an empty queue was answered")
	}
	job := submit(t, producer)
	jobs, err := worker.Leased(t.Context())
	if err != nil || len(jobs) != 1 || jobs[0].Seq != job.Seq {
		t.Errorf("jobs %v, error %v", jobs, err)
	}
}

// TestCancelledLeaseLosesNoJob checks that a job which was handed out before the call ended is returned and can be
// released.
func TestCancelledLeaseLosesNoJob(t *testing.T) {
	t.Parallel()
	e := openBroker(t)
	worker, producer := open(t, e, client.Options{}), open(t, e, client.Options{})
	worker.Do(lease(e, "q", 1))
	job := submit(t, producer)
	<-worker.Woken() // the job waits for its worker, which does not fetch it
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	jobs, err := worker.Leased(ctx)
	if !errors.Is(err, context.Canceled) || len(jobs) != 1 || jobs[0].Seq != job.Seq {
		t.Fatalf("jobs %v, error %v", jobs, err)
	}
	worker.Release(jobs)
	r, err := producer.Ask(&core.Inspect{Ref: core.Ref{Seq: job.Seq}, Brief: true})
	if err != nil || r.Info.State != core.Ready {
		t.Errorf("state %v, error %v, want a ready job", r.Info, err)
	}
}

// TestAskKeepsRepliesOfOperationsThatWait checks that the end of a watched job is not taken for the answer to a
// question.
func TestAskKeepsRepliesOfOperationsThatWait(t *testing.T) {
	t.Parallel()
	e := openBroker(t)
	c, other := open(t, e, client.Options{}), open(t, e, client.Options{})
	job := submit(t, other)
	c.Do(&core.Await{Tag: 7, Ref: core.Ref{Seq: job.Seq}, Deadline: e.Now().Add(patience)})
	if _, err := other.Ask(&core.Cancel{Ref: core.Ref{Seq: job.Seq}}); err != nil {
		t.Fatal(err)
	}
	if r, err := c.Ask(&core.Submit{Tag: 8, Job: &core.Job{Queue: "other"}}); err != nil || r.Tag != 8 {
		t.Errorf("the answer has tag %d, error %v", r.Tag, err)
	}
	if r, err := c.NextOf(t.Context(), func(r *core.Reply) bool { return r.Tag == 7 }); err != nil ||
		r.Kind != core.Ended {
		t.Errorf("reply %v, error %v", r.Kind, err)
	}
}
