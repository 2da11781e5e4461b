package service

import (
	"testing"

	"broker/core/coretest"
	"broker/core/engine"
)

// A node may be linked to a leader before the service of the first leader has made the key of tokens.
func TestFollowerLearnsTheKeyOfTokens(t *testing.T) {
	t.Parallel()
	e, err := engine.Open(engine.Options{Dir: "data", FS: coretest.MemoryFS(), Clock: coretest.NewClock(), Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Shutdown(); err != nil {
			t.Error(err)
		}
	})
	f := NewFollower(Options{Broker: e})
	t.Cleanup(f.Close)
	submit := func(o SubmitOptions) error {
		_, err := f.Submit(t.Context(), everyone, []Submission{{Queue: "q"}}, o)
		return err
	}
	if err := submit(SubmitOptions{}); err != nil {
		t.Errorf("a submission needs no key: %v", err)
	}
	if l, err := f.Lease(t.Context(), everyone, LeaseOptions{Queues: []string{"q"}}); !IsCode(err, CodeNoLeader) {
		t.Errorf("leased %v, %v", l, err)
	}
	leader, err := New(Options{Broker: e})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(leader.Close)
	l, err := f.Lease(t.Context(), everyone, LeaseOptions{Queues: []string{"q"}})
	if err != nil || l == nil {
		t.Fatalf("leased %v, %v", l, err)
	}
	if err := leader.Complete(t.Context(), everyone, l.Token, Result{}); err != nil {
		t.Errorf("the leader does not know the token: %v", err)
	}
	if err := submit(SubmitOptions{Key: "k"}); !IsCode(err, CodeUnsupported) {
		t.Errorf("under a key: %v", err)
	}
}
