package service

import (
	"testing"
	"time"

	"broker/access"
)

func TestOnePrincipalLeavesListenersForOthers(t *testing.T) {
	t.Parallel()
	s, _ := setup(t)
	greedy, other := tenant(t, "greedy", "read:a.*"), tenant(t, "other", "read:b.*")
	var all []*EventListener
	for {
		l, err := s.Events(greedy, EventFilter{}, "")
		if err != nil {
			if !IsCode(err, CodeTooMany) {
				t.Fatal(err)
			}
			break
		}
		all = append(all, l)
	}
	if len(all) != maxListeners/2 {
		t.Errorf("one principal has %d of %d listeners", len(all), maxListeners)
	}
	for _, caller := range []Caller{other, everyone} {
		l, err := s.Events(caller, EventFilter{}, "")
		if err != nil {
			t.Errorf("%s: %v", caller.Name(), err)
			continue
		}
		l.Close()
	}
	for _, l := range all {
		l.Close()
	}
	l, err := s.Events(greedy, EventFilter{}, "")
	if err != nil {
		t.Fatalf("after all have left: %v", err)
	}
	l.Close()
}

func TestOnePrincipalLeavesPendingOperationsForOthers(t *testing.T) {
	t.Parallel()
	s, e := setup(t)
	submitMany(t, e, "q", 1)
	a, sel := Action{Action: ActionKill, Delay: time.Hour}, Selection{Filter: &JobFilter{Queues: []string{"q"}}}
	greedy := tenant(t, "greedy", "operate")
	n := 0
	for ; ; n++ {
		if _, err := s.StartAction(t.Context(), greedy, a, sel); err != nil {
			if !IsCode(err, CodeTooMany) {
				t.Fatal(err)
			}
			break
		}
	}
	if n != maxPending/2 {
		t.Errorf("one principal has %d of %d pending operations", n, maxPending)
	}
	for _, caller := range []Caller{tenant(t, "other", "operate"), everyone} {
		if _, err := s.StartAction(t.Context(), caller, a, sel); err != nil {
			t.Errorf("%s: %v", caller.Name(), err)
		}
	}
}

// The record of an operation is displaced by those of the caller who has most of them.
func TestManyOperationsOfOneCallerKeepThoseOfOthersListed(t *testing.T) {
	t.Parallel()
	s, e := setup(t)
	submitMany(t, e, "q", 1)
	a, sel := Action{Action: ActionKill}, Selection{Filter: &JobFilter{Queues: []string{"q"}}}
	run := func(caller Caller) string {
		o, err := s.StartAction(t.Context(), caller, a, sel)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.WaitOperation(t.Context(), caller, o.ID, time.Minute); err != nil {
			t.Fatal(err)
		}
		return o.ID
	}
	loud := tenant(t, "loud", "operate")
	var newest string
	quiet := run(everyone)
	for range 2 * keptOperations {
		newest = run(loud)
	}
	for _, id := range []string{quiet, newest} {
		if _, err := s.WaitOperation(t.Context(), Caller{Principal: access.Everyone}, id, 0); err != nil {
			t.Errorf("%s: %v", id, err)
		}
	}
	restarted, err := New(Options{Broker: e})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(restarted.Close)
	stored := make(map[string]bool)
	for _, op := range restarted.operations.list {
		stored[op.view.ID] = true
	}
	if len(stored) != keptOperations || !stored[quiet] || !stored[newest] {
		t.Errorf("%d operations are stored, the first: %v, the newest: %v", len(stored), stored[quiet], stored[newest])
	}
}
