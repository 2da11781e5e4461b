package sqs

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

func TestGoroutinesAreReused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ending := make(chan struct{})
		s := newStacks(ending)
		var ran atomic.Int32
		for range 3 {
			var all sync.WaitGroup
			release := make(chan struct{})
			for range 10 * maxIdleStacks {
				all.Go(func() {
					s.run(func() {
						<-release
						ran.Add(1)
					})
				})
			}
			synctest.Wait() // all run at once
			close(release)
			all.Wait()
			synctest.Wait()
			want(t, "idle goroutines", len(s.idle), maxIdleStacks)
		}
		want(t, "functions that ran", ran.Load(), int32(3*10*maxIdleStacks))
		close(ending) // ends the idle goroutines
	})
}
