package access

import (
	"errors"
	"strconv"
	"testing"

	"broker/core"
)

func TestWaitingLeaseEndsWhenThePrincipalLosesTheRole(t *testing.T) {
	t.Parallel()
	consume := func(patterns ...string) Entry {
		return Entry{Name: "w", Grants: []Grant{{Role: Consume, Queues: patterns}}}
	}
	g, c := guardFixture(t, consume("q", "other"))
	id := g.Admit(core.ClientOptions{Protocol: core.Workq, Wake: func() {}}, Credentials{Login: c.Default("w")})
	op := &core.Lease{Tag: 7, Queues: []string{"q", "other"}, Holder: core.HeldByConn, Deadline: g.Now().Add(1 << 40)}
	if r := g.Do(id, []core.Op{op}, nil); len(r) > 0 {
		t.Fatalf("%+v", r)
	}
	c.Load([]Entry{consume("other")})
	seq := core.DoOnce(g.Broker, core.Internal, &core.Submit{Tag: 1, Job: &core.Job{Queue: "q"}})[0].Seq
	r := g.Do(id, nil, nil)
	if len(r) == 0 || r[0].Kind != core.Failed || r[0].Tag != 7 || !errors.Is(r[0].Err, core.ErrForbidden) {
		t.Fatalf("the worker gets %+v", r)
	}
	info := core.DoOnce(g.Broker, core.Internal, &core.Inspect{Tag: 1, Ref: core.Ref{Seq: seq}})[0].Info
	if info.State != core.Ready || info.Attempts != 0 {
		t.Errorf("the job is %v after %d attempts", info.State, info.Attempts)
	}
}

func TestPendingReplyIsDeliveredAfterARegistrationIsRevoked(t *testing.T) {
	t.Parallel()
	consume := func(patterns ...string) Entry {
		return Entry{Name: "w", Grants: []Grant{{Role: Consume, Queues: patterns}}}
	}
	g, c := guardFixture(t, consume("q", "other"))
	id := g.Admit(core.ClientOptions{Protocol: core.Workq, Wake: func() {}}, Credentials{Login: c.Default("w")})
	g.Do(id, []core.Op{
		&core.Register{Queue: "q"}, &core.Register{Queue: "other"},
		&core.Lease{Tag: 7, Holder: core.HeldByConn, Deadline: g.Now().Add(1 << 40)},
	}, nil)
	core.DoOnce(g.Broker, core.Internal, &core.Submit{Tag: 1, Job: &core.Job{Queue: "q"}})
	c.Load([]Entry{consume("q")})
	for _, r := range g.Do(id, nil, nil) {
		if r.Kind == core.Assigned && r.Tag == 7 {
			return
		}
	}
	t.Error("the job that the worker holds never reaches it")
}

func TestOnlyPermittedQueuesAreRemembered(t *testing.T) {
	t.Parallel()
	g, c := guardFixture(t, Entry{Name: "w", Grants: []Grant{{Role: Consume, Queues: []string{"q"}}}})
	id := g.Admit(core.ClientOptions{Protocol: core.Beanstalk, Wake: func() {}}, Credentials{Login: c.Default("w")})
	for i := range 100 {
		g.Do(id, []core.Op{&core.HoldQueue{Queue: "x" + strconv.Itoa(i)}}, nil)
	}
	g.Do(id, []core.Op{&core.HoldQueue{Queue: "q"}, &core.HoldQueue{Queue: "x1", Free: true}}, nil)
	queues := core.DoOnce(g.Broker, core.Internal, &core.ListQueues{Tag: 1})[0].Queues
	if len(queues) != 1 || queues[0].Name != "q" {
		t.Errorf("%d queues are known", len(queues))
	}
}

// Clients of a broker without principals may do anything. The first principals of a reload apply to their leases and
// registrations too.
func TestFirstPrincipalsApplyToConnectedWorkers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before, after []core.Op
	}{
		"a lease that waits": {before: []core.Op{&core.Lease{
			Tag: 7, Queues: []string{"q"}, Holder: core.HeldByConn, Deadline: 1 << 60,
		}}},
		"a registration": {
			before: []core.Op{&core.Register{Queue: "q"}},
			after:  []core.Op{&core.Lease{Tag: 7, Holder: core.HeldByConn}},
		},
	} {
		g, control := guardFixture(t)
		id := g.Admit(core.ClientOptions{Protocol: core.Gearman, Wake: func() {}}, Credentials{})
		if r := g.Do(id, c.before, nil); len(r) > 0 {
			t.Fatalf("%s: %+v", name, r)
		}
		control.Load([]Entry{{Name: "w", Grants: []Grant{{Role: Consume, Queues: []string{"q"}}}}})
		seq := core.DoOnce(g.Broker, core.Internal, &core.Submit{Tag: 1, Job: &core.Job{Queue: "q"}})[0].Seq
		for _, r := range g.Do(id, c.after, nil) {
			if r.Kind == core.Assigned {
				t.Errorf("%s: the worker gets a job", name)
			}
		}
		info := core.DoOnce(g.Broker, core.Internal, &core.Inspect{Tag: 1, Ref: core.Ref{Seq: seq}})[0].Info
		if info.State != core.Ready || info.Attempts != 0 {
			t.Errorf("%s: the job is %v after %d attempts", name, info.State, info.Attempts)
		}
	}
}

// The client asked for one thing and gets one reply. The reply to the guard's release stays with the guard.
func TestWithheldJobGivesTheClientOneReply(t *testing.T) {
	t.Parallel()
	consume := func(patterns ...string) Entry {
		return Entry{Name: "w", Grants: []Grant{{Role: Consume, Queues: patterns}}}
	}
	g, c := guardFixture(t, consume("q", "other"))
	id := g.Admit(core.ClientOptions{Protocol: core.Faktory, Wake: func() {}}, Credentials{Login: c.Default("w")})
	op := &core.Lease{Tag: 7, Queues: []string{"q", "other"}, Holder: core.HeldByConn, Deadline: g.Now().Add(1 << 40)}
	g.Do(id, []core.Op{op}, nil)
	core.DoOnce(g.Broker, core.Internal, &core.Submit{Tag: 1, Job: &core.Job{Queue: "q"}})
	c.Load([]Entry{consume("other")})
	r := g.Do(id, nil, nil)
	if len(r) != 1 || r[0].Kind != core.Failed || r[0].Tag != 7 {
		t.Errorf("the client gets %d replies: %+v", len(r), r)
	}
}
