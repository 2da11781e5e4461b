package access

import (
	"errors"
	"testing"

	"broker/core"
	"broker/core/engine"
)

// guardFixture is an engine behind a guard.
func guardFixture(t *testing.T, entries ...Entry) (*Guard, *Control) {
	t.Helper()
	e, err := engine.Open(engine.Options{Durability: engine.None, ManualTimers: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Shutdown() }) // nothing is stored
	c := &Control{}
	c.Load(entries)
	return NewGuard(e, c, core.Workq, ""), c
}

func TestClientWithoutAdmissionMayDoNothing(t *testing.T) {
	t.Parallel()
	g, c := guardFixture(t, Entry{Name: "root", Grants: []Grant{{Role: Admin}}})
	id := g.Open(core.ClientOptions{Protocol: core.Workq, Wake: func() {}})
	do := func(op core.Op) core.Reply { return g.Do(id, []core.Op{op}, nil)[0] }
	for _, op := range []core.Op{
		&core.Submit{Tag: 1, Job: &core.Job{Queue: "q"}}, &core.Lease{Tag: 1, Queues: []string{"q"}},
		&core.ReadStats{Tag: 1},
		&core.Drain{Tag: 1, On: true}, &core.Inspect{Tag: 1, Ref: core.Ref{ID: "x"}},
	} {
		if r := do(op); r.Kind != core.Failed || !errors.Is(r.Err, core.ErrForbidden) {
			t.Errorf("%T: %+v", op, r)
		}
	}
	if g.PrincipalOf(id) != Nobody || g.Allowed(id, Read) || g.AllowedFor(id, Read, "q") {
		t.Error("the client is somebody")
	}
	c.Load(nil)
	if r := do(&core.ReadStats{Tag: 1}); r.Kind == core.Failed || g.PrincipalOf(id) != Everyone {
		t.Errorf("without principals: %+v", r)
	}
}

// The same rule applies on every port as on HTTP: a client that makes a job or batch wait for a new job also needs
// rights for that job or batch.
func TestGuardChecksEveryQueueThatASubmissionTouches(t *testing.T) {
	t.Parallel()
	produce := func(patterns ...string) []Grant { return []Grant{{Role: Produce, Queues: patterns}} }
	g, c := guardFixture(t, Entry{Name: "shop", Grants: produce("shop")}, Entry{Name: "mail", Grants: produce("mail")})
	open := func(name string) func(core.Op) core.Reply {
		id := g.Admit(core.ClientOptions{Protocol: core.Workq, Wake: func() {}}, Credentials{Login: c.Default(name)})
		return func(op core.Op) core.Reply { return g.Do(id, []core.Op{op}, nil)[0] }
	}
	shop, mail := open("shop"), open("mail")
	job := mail(&core.Submit{Tag: 1, Job: &core.Job{Queue: "mail"}}).Seq
	bare := mail(&core.OpenBatch{Tag: 1}).Seq
	batch := mail(&core.OpenBatch{Tag: 1, Success: &core.Job{Queue: "mail"}}).Seq
	if job == 0 || bare == 0 || batch == 0 {
		t.Fatal("the rightful principal is refused")
	}
	for _, op := range []core.Op{
		&core.Submit{Tag: 1, Job: &core.Job{Queue: "shop", After: []uint64{job}}},
		&core.Submit{Tag: 1, Job: &core.Job{Queue: "shop", Parent: job}},
		&core.Submit{Tag: 1, Job: &core.Job{Queue: "shop", Batch: batch}},
		&core.Submit{Tag: 1, Job: &core.Job{Queue: "shop", Batch: bare}},
		&core.OpenBatch{Tag: 1, Parent: batch},
		&core.CloseBatch{Tag: 1, Batch: batch}, &core.CloseBatch{Tag: 1, Batch: bare, Reopen: true},
		&core.InspectBatch{Tag: 1, Batch: batch}, &core.InspectBatch{Tag: 1, Batch: bare},
	} {
		if r := shop(op); !errors.Is(r.Err, core.ErrForbidden) {
			t.Errorf("%+v: %+v", op, r)
		}
		if r := mail(op); r.Kind == core.Failed && op.(interface{ TagOf() uint64 }).TagOf() != 0 {
			if s, ok := op.(*core.Submit); !ok || s.Job.Queue != "shop" {
				t.Errorf("the rightful principal, %+v: %+v", op, r)
			}
		}
	}
}
