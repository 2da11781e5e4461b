package sqs

import (
	"context"
	"errors"
	"net/http"
	"runtime"
	"sync"
	"testing"
	"time"

	"broker/core"
	"broker/core/client"
)

// Workers that start together create the queue that all of them use. Each waits for a commit that wakes it, not for the
// commit of another request, which does not.
func TestManyCreateTheSameQueueAtOnce(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.options.ManualCommits = true
	f.restart()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var all sync.WaitGroup
	codes := make([]int, 60)
	create := func(i int) {
		all.Go(func() { codes[i], _, _ = f.post(ctx, "CreateQueue", object{"QueueName": "shared"}) })
	}
	create(0)
	for f.known("shared") == nil && ctx.Err() == nil {
		runtime.Gosched()
	}
	for i := range codes[1:] {
		create(i + 1)
	}
	for range 10_000 { // so that most calls wait before the commit
		runtime.Gosched()
	}
	done := make(chan struct{})
	go func() { all.Wait(); close(done) }()
	for waiting := true; waiting; {
		f.engine.Flush()
		select {
		case <-done:
			waiting = false
		default:
			runtime.Gosched()
		}
	}
	for i, code := range codes {
		if code != http.StatusOK {
			t.Errorf("call %d is answered %d", i, code)
		}
	}
}

// The answer to a request waits until it is durable that the queue does not exist. What holds the lock of changes does
// not wait for commits: on a slow disk, all other changes would wait too.
func TestMissingQueueIsDurableForRequestsOnly(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.options.ManualCommits = true
	f.restart()
	drop := func() {
		core.DoOnce(f.engine, core.Internal, &core.CreateQueue{Queue: "gone"}, &core.DropQueue{Queue: "gone"})
	}
	drop()
	before := f.engine.Committed()
	if _, err := f.find("gone"); err == nil || errors.Is(err, client.ErrCommitTimeout) ||
		f.engine.Committed() != before {
		t.Fatalf("it waits for the commit, or the queue exists: %v", err)
	}
	answered := make(chan int)
	go func() {
		status, _, _ := f.post(t.Context(), "GetQueueUrl", object{"QueueName": "gone"})
		answered <- status
	}()
	for range 1000 {
		select {
		case status := <-answered:
			t.Fatalf("answered %d before the commit", status)
		default:
			runtime.Gosched()
		}
	}
	for {
		f.engine.Flush()
		select {
		case status := <-answered:
			if status != http.StatusBadRequest {
				t.Errorf("answered %d", status)
			}
			return
		default:
			runtime.Gosched()
		}
	}
}
