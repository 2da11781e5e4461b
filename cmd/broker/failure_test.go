package main

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
		var got []shutdown
		exit := func(s shutdown) { got = append(got, s) }
		exitOnFailure{exit: exit}.StoreFailed(failure)
		exitOnFailure{exit: exit, after: 30 * time.Second}.StoreFailed(failure)
		time.Sleep(30*time.Second - 1)
		synctest.Wait()
		if len(got) != 0 {
			t.Fatalf("it exits at once: %v", got)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if len(got) != 1 || got[0].graceful || !errors.Is(got[0].cause, failure) {
			t.Fatalf("got %v", got)
		}
	})
}
