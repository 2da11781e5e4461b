package service

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"broker/access"
	"broker/core"
	"broker/core/coretest"
	"broker/core/engine"
)

// setup opens a service on a real engine.
func setup(t testing.TB) (*Service, *engine.Engine) {
	t.Helper()
	e, err := engine.Open(engine.Options{
		Dir: "data", FS: coretest.MemoryFS(), Clock: coretest.NewClock(), Seed: 1, ManualTimers: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(Options{Broker: e})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Close()
		if err := e.Shutdown(); err != nil {
			t.Error(err)
		}
	})
	return s, e
}

var everyone = Caller{Principal: access.Everyone}

// submitMany submits n jobs.
func submitMany(t testing.TB, e *engine.Engine, queue string, n int) {
	t.Helper()
	client := e.Open(core.ClientOptions{Protocol: core.HTTP, Wake: func() {}})
	defer e.Close(client)
	for i := 0; i < n; i += core.MaxAtomic {
		ops := make([]core.Op, min(n-i, core.MaxAtomic))
		for j := range ops {
			ops[j] = &core.Submit{Job: &core.Job{Queue: queue}}
		}
		e.Do(client, ops, nil)
	}
}

func TestSlowListenerGetsTheNumberOfLostEvents(t *testing.T) {
	t.Parallel()
	s, e := setup(t)
	slow, err := s.Events(everyone, EventFilter{Kinds: []string{"submitted"}}, "")
	if err != nil {
		t.Fatal(err)
	}
	defer slow.Close()
	const jobs = 15_000 // each is submitted and ready: two events
	submitMany(t, e, "q", jobs)
	s.events.waitFor(2*jobs + 1)
	var got int
	var lost uint64
	for got+int(lost)/2 < jobs {
		b, err := slow.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(b.Events) > maxEventBatch {
			t.Fatalf("a batch of %d", len(b.Events))
		}
		got += len(b.Events)
		lost += b.Dropped
		slow.quiet = time.Time{} // a test need not pause
	}
	if want := uint64(2*jobs - eventRing); lost != want {
		t.Errorf("%d lost, want %d", lost, want)
	}
}

func TestListenerSeesOnlyQueuesThatItMayRead(t *testing.T) {
	t.Parallel()
	s, e := setup(t)
	var c access.Control
	grant, err := access.ParseGrant("read:mail.*")
	if err != nil {
		t.Fatal(err)
	}
	c.Load([]access.Entry{{Name: "p", Grants: []access.Grant{grant}}})
	caller := Caller{Principal: c.Default("p")}
	if _, err := s.Events(caller, EventFilter{Queues: []string{"other"}}, ""); !IsCode(err, CodeForbidden) {
		t.Errorf("another queue's events: %v", err)
	}
	l, err := s.Events(caller, EventFilter{Kinds: []string{"submitted"}}, "")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	submitMany(t, e, "other", 10)
	submitMany(t, e, "mail.x", 1)
	b, err := l.Next(t.Context())
	if err != nil || len(b.Events) != 1 || b.Events[0].Event().Queue != "mail.x" {
		t.Errorf("%d events, %v", len(b.Events), err)
	}
}

// TestListenerEndsWithTheCredentialsOfItsClient reloads the principals while a client listens.
func TestListenerEndsWithTheCredentialsOfItsClient(t *testing.T) {
	t.Parallel()
	s, e := setup(t)
	var c access.Control
	grants := []access.Grant{{Role: access.Read}}
	c.Load([]access.Entry{{Name: "p", Grants: grants}})
	l, err := s.Events(Caller{Principal: c.Default("p"), Access: &c}, EventFilter{}, "")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	submitMany(t, e, "q", 1)
	if b, err := l.Next(t.Context()); err != nil || len(b.Events) == 0 {
		t.Fatalf("%d events, %v", len(b.Events), err)
	}
	c.Load([]access.Entry{{Name: "other", Grants: grants}})
	waiting, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.Next(waiting); !IsCode(err, CodeForbidden) {
		t.Errorf("after the reload: %v", err)
	}
}

// waitFor waits until the hub has the event in front of number.
func (h *eventHub) waitFor(number uint64) {
	for {
		h.mu.RLock()
		next, news := h.next, h.news
		h.mu.RUnlock()
		if next >= number {
			return
		}
		<-news
	}
}

// heldBroker hides finished commits while it is held.
type heldBroker struct {
	*engine.Engine
	held    atomic.Bool
	events  core.ClientID
	wake    func()
	fetched chan int // replies that the client of the hub has got
}

func (b *heldBroker) Open(o core.ClientOptions) core.ClientID {
	id := b.Engine.Open(o)
	if o.Unlisted { // the subscription of the hub
		b.events, b.wake = id, o.Wake
	}
	return id
}

func (b *heldBroker) Committed() core.Commit {
	if b.held.Load() {
		return 0
	}
	return b.Engine.Committed()
}

func (b *heldBroker) Do(id core.ClientID, ops []core.Op, into []core.Reply) []core.Reply {
	replies := b.Engine.Do(id, ops, into)
	if id == b.events && len(ops) == 0 {
		b.fetched <- len(replies) - len(into)
	}
	return replies
}

// TestEventsThatArriveDuringACommitAreDelivered: the wait for the commit of earlier events also fetches later events.
func TestEventsThatArriveDuringACommitAreDelivered(t *testing.T) {
	t.Parallel()
	_, e := setup(t)
	b := &heldBroker{Engine: e, fetched: make(chan int, 1000)}
	s, err := New(Options{Broker: b})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	l, err := s.Events(everyone, EventFilter{}, "")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	b.held.Store(true)
	for range 2 {
		submitMany(t, e, "q", 1)
		for fetched := 0; fetched < 2; { // the job is submitted and ready
			fetched += <-b.fetched
		}
	}
	b.held.Store(false)
	b.wake()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for got := 0; got < 4; {
		batch, err := l.Next(ctx)
		if err != nil {
			t.Fatalf("%d events of 4: %v", got, err)
		}
		got += len(batch.Events)
	}
}
