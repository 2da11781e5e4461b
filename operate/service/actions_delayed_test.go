package service

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestPendingActionsTogetherHaveALimitedNumberOfJobs(t *testing.T) {
	t.Parallel()
	s, e := setup(t)
	submitMany(t, e, "q", 10)
	a := Action{Action: ActionKill, Delay: time.Hour}
	sel := Selection{Filter: &JobFilter{Queues: []string{"q"}}}
	if err := s.operations.hold(everyone.Holder(), maxAllDelayed-15); err != nil {
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
	if err := s.operations.hold(everyone.Holder(), 16); err == nil {
		t.Error("more jobs than were held are free")
	}
	if err := s.operations.hold(everyone.Holder(), 15); err != nil {
		t.Errorf("the jobs of the cancelled action are still counted: %v", err)
	}
	s.operations.delayed.Return(everyone.Holder(), 15)
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

// TestAPendingOperationIsNeverEvicted starts more operations behind a pending one than the ring has places.
func TestAPendingOperationIsNeverEvicted(t *testing.T) {
	t.Parallel()
	s, e := setup(t)
	submitMany(t, e, "q", 1)
	sel := Selection{Filter: &JobFilter{Queues: []string{"q"}}}
	pending, err := s.StartAction(t.Context(), everyone, Action{Action: ActionKill, Delay: time.Hour}, sel)
	if err != nil {
		t.Fatal(err)
	}
	none := Selection{Filter: &JobFilter{Queues: []string{"none"}}}
	for range 2*keptOperations + 1 {
		o, err := s.StartAction(t.Context(), everyone, Action{Action: ActionKill}, none)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.WaitOperation(t.Context(), everyone, o.ID, time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	if stored := s.readRing(keptOperations, operationName); len(stored) != keptOperations ||
		!slices.ContainsFunc(stored,
			func(b []byte) bool { return strings.Contains(string(b), `"id":"`+pending.ID+`"`) }) {
		t.Errorf("the store has %d operations, or lacks %s", len(stored), pending.ID)
	}
	if all, err := s.Operations(everyone); err != nil || len(all) != keptOperations {
		t.Errorf("%d operations, %v", len(all), err)
	}
	if _, err := s.CancelOperation(everyone, pending.ID); err != nil {
		t.Fatal(err)
	}
	if o, err := s.WaitOperation(t.Context(), everyone, pending.ID, time.Minute); err != nil || o.State != OpCancelled {
		t.Errorf("%+v, %v", o, err)
	}
}
