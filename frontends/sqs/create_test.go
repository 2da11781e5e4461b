package sqs

import (
	"context"
	"net/http"
	"runtime"
	"sync"
	"testing"
	"time"
)

// Workers that start together create the queue that all of them use. Each waits for a commit that wakes it, not for the
// commit of another request, which does not.
func TestManyCreateTheSameQueueAtOnce(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.options.ManualCommits = true
	f.restart()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
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
