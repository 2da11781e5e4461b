package service

import (
	"testing"
	"time"
)

func TestPendingActionsTogetherHaveALimitedNumberOfJobs(t *testing.T) {
	t.Parallel()
	s, e := setup(t)
	submitMany(t, e, "q", 10)
	a := Action{Action: ActionKill, Delay: time.Hour}
	sel := Selection{Filter: &JobFilter{Queues: []string{"q"}}}
	if err := s.operations.hold(maxAllDelayed - 15); err != nil {
		t.Fatal(err)
	}
	first, err := s.StartAction(t.Context(), everyone, a, sel)
	if err != nil || first.Matched != 10 {
		t.Fatalf("%+v, %v", first, err)
	}
	if _, err := s.StartAction(t.Context(), everyone, a, sel); !IsCode(err, CodeTooMany) {
		t.Errorf("more than %d jobs: %v", maxAllDelayed, err)
	}
	if _, err := s.CancelOperation(everyone, first.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := s.WaitOperation(t.Context(), everyone, first.ID, time.Minute); err != nil {
		t.Fatal(err)
	}
	s.operations.mu.Lock()
	held := s.operations.delayed
	s.operations.mu.Unlock()
	if held != maxAllDelayed-15 {
		t.Errorf("%d jobs are still counted", held-(maxAllDelayed-15))
	}
	if _, err := s.StartAction(t.Context(), everyone, a, sel); err != nil {
		t.Errorf("after a cancellation: %v", err)
	}
}

func TestParametersOfEveryActionAreChecked(t *testing.T) {
	t.Parallel()
	for _, action := range jobActions {
		a := Action{Action: action, Queue: "to", Priority: new(int64), Delay: maxDelay}
		if err := a.check(everyone); err != nil {
			t.Errorf("%s: %v", action, err)
		}
		for _, delay := range []time.Duration{-1, maxDelay + 1} {
			wrong := a
			wrong.Delay = delay
			if wrong.check(everyone) == nil {
				t.Errorf("%s takes a delay of %v", action, delay)
			}
		}
		wrong := a
		wrong.Running = "kill"
		if wrong.check(everyone) == nil {
			t.Errorf("%s takes a wrong value of running", action)
		}
	}
}
