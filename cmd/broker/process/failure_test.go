package process

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestProgramExitsAfterTheStoreHasFailed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		failure := errors.New("torn out")
		exits := make(chan Shutdown, 2)
		exit := func(s Shutdown) { exits <- s }
		exitOnFailure{exit: exit}.StoreFailed(failure)
		exitOnFailure{exit: exit, after: 30 * time.Second}.StoreFailed(failure)
		time.Sleep(30*time.Second - 1)
		synctest.Wait()
		if len(exits) != 0 {
			t.Fatalf("it exits at once: %v", <-exits)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if len(exits) != 1 {
			t.Fatalf("%d exits", len(exits))
		}
		if got := <-exits; got.Graceful || !errors.Is(got.Cause, failure) {
			t.Fatalf("got %+v", got)
		}
	})
}
