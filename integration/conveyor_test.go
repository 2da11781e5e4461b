package integration_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	faktory "github.com/contribsys/faktory/client"

	"broker/integration/conveyorclient"
	"broker/integration/harness"
	"broker/integration/server"
)

// startConveyor starts a broker that serves Conveyor, and opens a client of it.
func startConveyor(t *testing.T) (*harness.Broker, *conveyorclient.Client) {
	t.Helper()
	harness.BrokerOnly(t)
	addr, err := server.FreeAddr()
	check(t, err)
	b := harness.Start(t, harness.Options{Args: []string{"--conveyor", addr}})
	return b, openConveyor(t, addr)
}

func openConveyor(t *testing.T, addr string) *conveyorclient.Client {
	t.Helper()
	c := conveyorclient.Open(addr)
	t.Cleanup(func() { _ = c.Close() }) // the broker may be gone
	return c
}

// conveyorJob takes the next job, which must be of a queue.
func conveyorJob(t *testing.T, c *conveyorclient.Client, queue string) *conveyorclient.Job {
	t.Helper()
	var j *conveyorclient.Job
	harness.Eventually(t, func() string {
		got, err := c.Pop(t.Context(), "main", "child", "heir")
		check(t, err)
		if j = got; j == nil {
			return "there is no job of " + queue
		}
		return ""
	})
	if j.Queue != queue {
		t.Fatalf("got %s of %s, want a job of %s", j.Payload, j.Queue, queue)
	}
	return j
}

// A family outlives kills of the broker between any two steps, and the failure of one of its children: the heir runs
// once, last.
func TestConveyorFamilyOutlivesKills(t *testing.T) {
	t.Parallel()
	b, c := startConveyor(t)
	ctx := t.Context()
	again := func() {
		b.Crash()
		b.Restart()
	}
	check(t, c.Add(ctx, &conveyorclient.Job{Queue: "main", Payload: []byte("main")}))
	again() // a job waits
	main := conveyorJob(t, c, "main")
	check(t, c.Add(ctx, &conveyorclient.Job{Queue: "heir", Predecessor: main.UUID, Payload: []byte("heir")}))
	for i := range 3 {
		check(t, c.Add(ctx, &conveyorclient.Job{Queue: "child", Parent: main.UUID, Payload: fmt.Append(nil, i)}))
	}
	again() // the parent runs, its family waits
	closed, err := c.Finish(ctx, main)
	check(t, err)
	if closed {
		t.Fatal("the parent was closed before its children")
	}
	again() // the parent has run, its children wait
	failing := conveyorJob(t, c, "child")
	check(t, c.Fail(ctx, failing.UUID))
	again() // a child waits for its next try
	var ran []string
	for i := range 3 {
		child := conveyorJob(t, c, "child")
		if i == 1 {
			again() // a child runs
		}
		ran = append(ran, fmt.Sprintf("%s after %d failures", child.Payload, child.Retry))
		closed, err := c.Finish(ctx, child)
		check(t, err)
		if closed != (i == 2) {
			t.Errorf("after %d of 3 children, the parent is closed: %v", i+1, closed)
		}
	}
	slices.Sort(ran) // the one that failed is the first again if it is due by now
	equal(t, "children", strings.Join(ran, ", "), "0 after 1 failures, 1 after 0 failures, 2 after 0 failures")
	again() // the heir waits
	heir := conveyorJob(t, c, "heir")
	closed, err = c.Finish(ctx, heir)
	check(t, err)
	active, err := c.Active(ctx)
	check(t, err)
	if !closed || active != 0 {
		t.Errorf("the heir is closed: %v; %d jobs are active", closed, active)
	}
	again() // nothing comes back
	check(t, c.Housekeep(ctx))
	if j, err := c.Pop(ctx, "main", "child", "heir"); j != nil || err != nil {
		t.Errorf("got %+v, %v after the end of the family", j, err)
	}
}

// Two workers run a nested job: as many children as the payload says, then the heir.
func TestConveyorWorkersRunNestedJobs(t *testing.T) {
	t.Parallel()
	_, c := startConveyor(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	const children = 5
	var mu sync.Mutex // guards ran
	var ran []string
	done := make(chan struct{})
	run := func(ctx context.Context, j *conveyorclient.Job) error {
		mu.Lock()
		ran = append(ran, string(j.Payload))
		tries := slices.Index(ran, string(j.Payload)) == len(ran)-1
		mu.Unlock()
		switch {
		case j.Queue == "main":
			for i := range children {
				child := &conveyorclient.Job{Queue: "child", Parent: j.UUID, Payload: fmt.Appendf(nil, "child %d", i)}
				if err := c.Add(ctx, child); err != nil {
					return err
				}
			}
			return c.Add(ctx, &conveyorclient.Job{Queue: "heir", Predecessor: j.UUID, Payload: []byte("heir")})
		case j.Queue == "heir":
			close(done)
		case string(j.Payload) == "child 2" && tries:
			return errors.New("the first try")
		}
		return nil
	}
	var workers sync.WaitGroup
	for range 2 {
		workers.Go(func() {
			if err := c.Work(ctx, run, "main", "child", "heir"); !errors.Is(err, context.Canceled) {
				t.Errorf("a worker ended: %v", err)
			}
		})
	}
	check(t, c.Add(ctx, &conveyorclient.Job{Queue: "main", Payload: []byte("main")}))
	<-done
	cancel()
	workers.Wait()
	if ran[0] != "main" || ran[len(ran)-1] != "heir" || len(ran) != children+3 {
		t.Errorf("ran %q", ran)
	}
}

// A job that has failed as often as it may is kept, and its heir with it.
func TestConveyorJobFailsFinally(t *testing.T) {
	t.Parallel()
	b, c := startConveyor(t)
	ctx := t.Context()
	check(t, c.Add(ctx, &conveyorclient.Job{Queue: "main", MaxRetries: 1, Payload: []byte("main")}))
	j := conveyorJob(t, c, "main")
	check(t, c.Add(ctx, &conveyorclient.Job{Queue: "heir", Predecessor: j.UUID}))
	check(t, c.Fail(ctx, j.UUID))
	b.Crash()
	b.Restart()
	n, err := c.Failed(ctx)
	check(t, err)
	equal(t, "failed jobs", n, 1)
	if j, err := c.Pop(ctx, "main", "heir"); j != nil || err != nil {
		t.Errorf("got %+v, %v", j, err)
	}
}

// Clients of Conveyor and of Faktory run each other's jobs, with a kill of the broker while they wait and while they
// run.
func TestConveyorAndFaktoryRunEachOthersJobs(t *testing.T) {
	t.Parallel()
	b, c := startConveyor(t)
	ctx := t.Context()
	again := func() {
		b.Crash()
		b.Restart()
	}
	job := faktory.NewJob("child", "from Faktory", 1)
	job.Queue = "child"
	check(t, dialFaktory(t, b).Push(job))
	again()
	got := conveyorJob(t, c, "child")
	equal(t, "payload", string(got.Payload), `["from Faktory",1]`)
	equal(t, "type", got.Type, "child")
	again()
	_, err := c.Finish(ctx, got)
	check(t, err)

	sent, other := &conveyorclient.Job{
		Queue: "main", Payload: []byte("from Conveyor"),
	}, &conveyorclient.Job{Queue: "other"}
	check(t, c.Add(ctx, sent))
	again()
	worker := dialFaktory(t, b)
	fetched, err := worker.Fetch("main")
	check(t, err)
	if fetched == nil || fetched.Jid != sent.UUID || fmt.Sprint(fetched.Args) != "[from Conveyor]" {
		t.Fatalf("fetched %+v", fetched)
	}
	check(t, c.Add(ctx, other)) // a lease is on the disk with the next change that a client waits for
	again()
	check(t, dialFaktory(t, b).Ack(fetched.Jid))
	again()
	info, err := dialFaktory(t, b).CurrentState()
	check(t, err)
	equal(t, "waiting jobs: the other one", info.Data.TotalEnqueued, 1)
	equal(t, "finished jobs", info.Data.TotalProcessed, 2)
	if j, err := c.Pop(ctx, "main", "child"); j != nil || err != nil {
		t.Errorf("got %+v, %v after both were finished", j, err)
	}
}
