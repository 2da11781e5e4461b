package service

import (
	"sync/atomic"
	"testing"

	"broker/core"
	"broker/core/engine"
)

// tripBroker counts how often its lock is taken for operations.
type tripBroker struct {
	*engine.Engine
	trips atomic.Int64
}

func (b *tripBroker) Do(id core.ClientID, ops []core.Op, into []core.Reply) []core.Reply {
	if len(ops) > 0 {
		b.trips.Add(1)
	}
	return b.Engine.Do(id, ops, into)
}

// newCounted makes a service, and a broker that counts its calls.
func newCounted(t *testing.T) (*Service, *tripBroker) {
	t.Helper()
	_, e := setup(t)
	b := &tripBroker{Engine: e}
	s, err := New(Options{Broker: b})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s, b
}

// TestSubmissionTakesTheLockOnce: the reply to a submission has what its answer shows.
func TestSubmissionTakesTheLockOnce(t *testing.T) {
	t.Parallel()
	s, b := newCounted(t)
	for name, c := range map[string]struct {
		subs  []Submission
		o     SubmitOptions
		state string
	}{
		"one":          {[]Submission{{Queue: "q", Tags: []string{"x"}}}, SubmitOptions{}, "ready"},
		"delayed":      {[]Submission{{Queue: "q", DelayS: 60}}, SubmitOptions{}, "scheduled"},
		"several":      {make([]Submission, 3), SubmitOptions{Many: true}, "ready"},
		"with its key": {[]Submission{{Queue: "q"}}, SubmitOptions{Key: "k"}, "ready"},
	} {
		for i := range c.subs {
			c.subs[i].Queue = "q"
		}
		before := b.trips.Load()
		jobs, err := s.Submit(t.Context(), everyone, c.subs, c.o)
		if err != nil || len(jobs) != len(c.subs) || jobs[0].State != c.state || jobs[0].Queue != "q" {
			t.Fatalf("%s: %+v, %v", name, jobs, err)
		}
		if n := b.trips.Load() - before; n != 1 {
			t.Errorf("%s took the lock %d times, want 1", name, n)
		}
	}
}

// TestReportTakesTheLockOnce: a caller who may use every lease needs no look at the job before.
func TestReportTakesTheLockOnce(t *testing.T) {
	t.Parallel()
	s, b := newCounted(t)
	for name, report := range map[string]func(token string) error{
		"complete": func(token string) error { return s.Complete(t.Context(), everyone, token, Result{}) },
		"fail":     func(token string) error { return s.Fail(t.Context(), everyone, token, FailOptions{}) },
		"heartbeat": func(token string) error {
			_, err := s.Heartbeat(t.Context(), everyone, token, 0)
			return err
		},
	} {
		submitMany(t, b.Engine, name, 1)
		l, err := s.Lease(t.Context(), everyone, LeaseOptions{Queues: []string{name}})
		if err != nil || l == nil {
			t.Fatal(l, err)
		}
		before := b.trips.Load()
		if err := report(l.Token); err != nil {
			t.Fatal(name, err)
		}
		if n := b.trips.Load() - before; n != 1 {
			t.Errorf("%s took the lock %d times, want 1", name, n)
		}
		if name == "heartbeat" {
			continue
		}
		if err := report(l.Token); !IsCode(err, CodeLeaseLost) {
			t.Errorf("%s again: %v", name, err)
		}
	}
}
