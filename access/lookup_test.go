package access

import (
	"errors"
	"testing"

	"broker/core"
	"broker/core/engine"
)

// racing is a broker in which another client acts just before the operations of a client.
type racing struct {
	core.Broker
	client core.ClientID
	before func()
}

// Do implements core.Broker.
func (b *racing) Do(id core.ClientID, ops []core.Op, into []core.Reply) []core.Reply {
	if act := b.before; act != nil && id == b.client {
		b.before = nil
		act()
	}
	return b.Broker.Do(id, ops, into)
}

// racingFixture returns a client that may submit to the queue in, and change jobs of the queue own.
func racingFixture(t *testing.T) (b *racing, do func(ops ...core.Op) []core.Reply, other func(core.Op) core.Reply) {
	t.Helper()
	e, err := engine.Open(engine.Options{Durability: engine.None, ManualTimers: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Shutdown() }) // nothing is stored
	c := &Control{}
	c.Load([]Entry{{Name: "shop", Grants: []Grant{
		{Role: Produce, Queues: []string{"in", "own"}},
		{Role: Consume, Queues: []string{"own"}},
		{Role: Operate, Queues: []string{"own"}},
	}}})
	b = &racing{Broker: e}
	g := NewGuard(b, c, core.Workq, "")
	b.client = g.Admit(core.ClientOptions{Protocol: core.Workq, Wake: func() {}},
		Credentials{Login: c.Default("shop")})
	do = func(ops ...core.Op) []core.Reply { return g.Do(b.client, ops, nil) }
	return b, do, func(op core.Op) core.Reply { return core.DoOnce(e, core.Internal, op)[0] }
}

func TestRightsAreCheckedAfterEarlierOperationsOfTheCall(t *testing.T) {
	t.Parallel()
	_, do, other := racingFixture(t)
	r := do(&core.Submit{Tag: 1, Job: &core.Job{ID: "x", Queue: "in"}}, &core.Cancel{Tag: 2, Ref: core.Ref{ID: "x"}},
		&core.Submit{Tag: 3, Job: &core.Job{ID: "y", Queue: "own"}}, &core.Cancel{Tag: 4, Ref: core.Ref{ID: "y"}})
	if len(r) != 4 || r[0].Kind != core.Submitted || !errors.Is(r[1].Err, core.ErrForbidden) ||
		r[2].Kind != core.Submitted || r[3].Kind != core.Accepted {
		t.Errorf("%+v", r)
	}
	if i := other(&core.Inspect{Tag: 1, Ref: core.Ref{ID: "x"}}); i.Kind != core.Inspected {
		t.Errorf("the job of a queue that the client may not change: %+v", i)
	}
}

// A client that asks for a job before it exists does not get the job of a queue for which it has no rights.
func TestOperationIsBoundToTheJobThatWasChecked(t *testing.T) {
	t.Parallel()
	x := core.Ref{ID: "x"}
	for name, op := range map[string]func() core.Op{
		"cancel":      func() core.Op { return &core.Cancel{Tag: 7, Ref: x} },
		"cancel also": func() core.Op { return &core.Cancel{Tag: 7, Ref: x, Also: []core.Ref{x}} },
		"complete":    func() core.Op { return &core.Complete{Tag: 7, Ref: x, Authority: core.ByAnyone} },
		"inspect":     func() core.Op { return &core.Inspect{Tag: 7, Ref: x} },
		"await":       func() core.Op { return &core.Await{Tag: 7, Ref: x} },
		"lease by id": func() core.Op { return &core.LeaseJob{Tag: 7, Ref: x, ByConn: true} },
		"enqueue":     func() core.Op { return &core.Enqueue{Tag: 7, Ref: x} },
		"bury":        func() core.Op { return &core.Bury{Tag: 7, Ref: x} },
	} {
		for _, first := range []bool{false, true} { // whether the client had a job of that id
			b, do, other := racingFixture(t)
			if first {
				do(&core.Submit{Tag: 1, Job: &core.Job{ID: "x", Queue: "own"}})
			}
			b.before = func() {
				if first {
					other(&core.Cancel{Tag: 1, Ref: x})
				}
				other(&core.Submit{Tag: 1, Job: &core.Job{ID: "x", Queue: "secret"}})
			}
			if r := do(op())[0]; !errors.Is(r.Err, core.ErrNotFound) {
				t.Errorf("%s, %v: %+v", name, first, r)
			}
			if i := other(&core.Inspect{Tag: 1, Ref: x}); i.Info == nil || i.Info.State != core.Ready {
				t.Errorf("%s, %v: the job of another client is %+v", name, first, i)
			}
		}
	}
}

func TestBatchThatAnotherClientOpensMeanwhileIsNotCommitted(t *testing.T) {
	t.Parallel()
	b, do, other := racingFixture(t)
	number := other(&core.OpenBatch{Tag: 1}).Seq + 1
	b.before = func() {
		if n := other(&core.OpenBatch{Tag: 1, Owner: "mail"}).Seq; n != number {
			t.Errorf("batch %d, want %d", n, number)
		}
	}
	if r := do(&core.CloseBatch{Tag: 7, Batch: number})[0]; !errors.Is(r.Err, core.ErrNoBatch) {
		t.Errorf("%+v", r)
	}
	if i := other(&core.InspectBatch{Tag: 1, Batch: number}); i.Batch == nil || i.Batch.Closed {
		t.Errorf("the batch of another client: %+v", i.Batch)
	}
}

// A job of a queue for which a client has no role is answered like a job that does not exist.
func TestAJobOfAForeignQueueIsNotFound(t *testing.T) {
	t.Parallel()
	_, do, other := racingFixture(t)
	other(&core.Submit{Tag: 1, Job: &core.Job{ID: "there", Queue: "foreign"}})
	for name, op := range map[string]func(core.Ref) core.Op{
		"cancel":      func(r core.Ref) core.Op { return &core.Cancel{Tag: 7, Ref: r} },
		"cancel also": func(r core.Ref) core.Op { return &core.Cancel{Tag: 7, Ref: r, Also: []core.Ref{r}} },
		"complete":    func(r core.Ref) core.Op { return &core.Complete{Tag: 7, Ref: r, Authority: core.ByAnyone} },
		"inspect":     func(r core.Ref) core.Op { return &core.Inspect{Tag: 7, Ref: r} },
		"await":       func(r core.Ref) core.Op { return &core.Await{Tag: 7, Ref: r} },
		"lease by id": func(r core.Ref) core.Op { return &core.LeaseJob{Tag: 7, Ref: r, ByConn: true} },
		"enqueue":     func(r core.Ref) core.Op { return &core.Enqueue{Tag: 7, Ref: r} },
	} {
		there, never := do(op(core.Ref{ID: "there"})), do(op(core.Ref{ID: "never"}))
		same := len(there) == 1 && len(never) == 1 && there[0].Kind == never[0].Kind
		if !same || !errors.Is(there[0].Err, never[0].Err) {
			t.Errorf("%s: %+v, of a job that does not exist %+v", name, there, never)
		}
	}
	if i := other(&core.Inspect{Tag: 1, Ref: core.Ref{ID: "there"}}); i.Kind != core.Inspected {
		t.Errorf("the job has changed: %+v", i)
	}
	// Another job may not wait for it.
	seq := other(&core.Inspect{Tag: 1, Ref: core.Ref{ID: "there"}}).Seq
	r := do(&core.Submit{Tag: 7, Job: &core.Job{Queue: "own", After: []uint64{seq}}})
	if len(r) != 1 || !errors.Is(r[0].Err, core.ErrForbidden) {
		t.Errorf("a job that waits for it: %+v", r)
	}
}
