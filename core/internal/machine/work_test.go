package machine

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"broker/core"
)

// registered is a client with many registrations.
func (l *limited) registered() core.ClientID {
	id := l.OpenClient(2, core.ClientOptions{Protocol: core.Gearman})
	for i := range many {
		l.Apply(2, id, []core.Op{&core.Register{Queue: fmt.Sprint("f", i)}})
	}
	return id
}

// A worker with many registrations asks to be woken many times in one call, and then a job with many watchers sends
// data many times: each operation is within its bound, but all of them would take seconds.
func TestExpensiveOperationsOfOneCallAreInterrupted(t *testing.T) {
	t.Parallel()
	l := newLimited()
	worker := l.registered()
	l.do(&core.Submit{Job: &core.Job{Queue: "other"}})
	watched := core.Submit{
		Watch: core.WatchStream,
		Job:   &core.Job{Queue: "f1", Ephemeral: true, Unique: core.UniqueCoalesce, UniqueKey: "k"},
	}
	for range core.MaxWatchers {
		l.do(&watched)
	}
	job := core.Ref{Seq: l.do(&core.Lease{Queues: []string{"f1"}, Holder: core.HeldByNobody, LeaseFor: time.Hour}).Seq}
	for name, op := range map[string]core.Op{
		"sleep":      &core.Sleep{Tag: 1},
		"lease":      &core.Lease{Tag: 1, Pick: core.PickByPriority},
		"unregister": &core.Unregister{Queue: "none"},
		"data":       &core.SendData{Tag: 1, Ref: job, Authority: core.ByAnyone, Data: []byte("x")},
		"progress":   &core.Report{Tag: 1, Ref: job, Authority: core.ByAnyone},
	} {
		ops, calls := make([]core.Op, 40), 0
		for i := range ops {
			ops[i] = op
		}
		if name == "unregister" { // the name is looked for only if the queue exists
			ops[0] = &core.Register{Queue: "none"}
		}
		for left := ops; len(left) > 0; calls++ {
			n := l.Apply(2, worker, left)
			if n == 0 || n > 5 {
				t.Fatalf("%s: %d operations are applied at once", name, n)
			}
			left = left[n:]
			l.Take(l.id, nil)
		}
		if calls < len(ops)/5 {
			t.Errorf("%s: %d operations in %d parts", name, len(ops), calls)
		}
	}
	for _, call := range [][]core.Op{
		{&core.Sleep{}, &core.Atomic{}, &core.Sleep{}}, {&core.Atomic{}, &core.Sleep{}, &core.Sleep{}},
	} {
		if n := l.Apply(2, worker, call); n != len(call) {
			t.Errorf("only %d operations of a call with an atomic list are applied together", n)
		}
	}
	cheap := make([]core.Op, 5_000)
	for i := range cheap {
		cheap[i] = &core.Submit{Job: &core.Job{Queue: "q"}}
	}
	if n := l.Apply(2, worker, cheap); n != len(cheap) {
		t.Errorf("%d cheap operations are applied at once", n)
	}
	if err := l.Check(); err != nil {
		t.Error(err)
	}
}

// What a worker reports is sent to all who wait for its job at once, so their number has a bound.
func TestClientsThatWaitForAJobAreBounded(t *testing.T) {
	t.Parallel()
	l := newLimited()
	coalesced := func(watch core.Watch, unique core.UniquePolicy) core.Reply {
		return l.do(&core.Submit{
			Watch: watch, Deadline: 1 << 60, Job: &core.Job{Queue: "q", Unique: unique, UniqueKey: "k"},
		})
	}
	first := coalesced(core.WatchNone, core.UniqueCoalesce)
	await := &core.Await{Ref: core.Ref{Seq: first.Seq}, Deadline: 1 << 60}
	for range core.MaxWatchers - 1 {
		l.Apply(2, l.id, []core.Op{await})
	}
	if r := coalesced(core.WatchOutcome, core.UniqueCoalesce); r.Kind != core.Submitted || r.Seq != first.Seq {
		t.Fatalf("the last one: %+v", r)
	}
	for name, r := range map[string]core.Reply{
		"await":    l.do(await),
		"coalesce": coalesced(core.WatchOutcome, core.UniqueCoalesce),
		"replace":  coalesced(core.WatchOutcome, core.UniqueReplace),
	} {
		if !errors.Is(r.Err, core.ErrFull) {
			t.Errorf("%s: %+v", name, r)
		}
	}
	for _, unique := range []core.UniquePolicy{core.UniqueCoalesce, core.UniqueReplace} {
		if r := coalesced(core.WatchNone, unique); r.Kind != core.Submitted || r.Seq != first.Seq {
			t.Errorf("a client that does not wait: %+v", r)
		}
	}
	l.do(&core.Complete{Ref: core.Ref{Seq: first.Seq}, Authority: core.ByAnyone})
	if r := coalesced(core.WatchOutcome, core.UniqueCoalesce); r.Kind != core.Submitted || r.Seq == first.Seq {
		t.Errorf("after the end: %+v", r)
	}
	if err := l.Check(); err != nil {
		t.Error(err)
	}
}

func TestAPageOfClientsHasFewQueues(t *testing.T) {
	t.Parallel()
	l := newLimited()
	const workers = 5
	for range workers {
		l.registered()
	}
	waiting := &core.Lease{Deadline: 1 << 60}
	for i := range 2 * core.MaxQueuesShown {
		waiting.Queues = append(waiting.Queues, fmt.Sprint("f", i))
	}
	l.Apply(2, l.OpenClient(2, core.ClientOptions{Protocol: core.Workq}), []core.Op{waiting})
	rows, after, pages := 0, core.ClientID(0), 0
	for more := true; more; more = after != 0 {
		r := l.do(&core.ListClients{After: after})
		names := 0
		for i := range r.Clients {
			names += len(r.Clients[i].Queues)
		}
		if names > 2*core.MaxQueuesShown || l.overrun != nil {
			t.Fatalf("%d names on a page, %v", names, l.overrun)
		}
		rows, after = rows+len(r.Clients), r.NextClient
		pages++
	}
	if rows != workers+2 || pages < workers {
		t.Errorf("%d clients in %d pages", rows, pages)
	}
}

func TestRetentionOfManyQueuesChangesInSteps(t *testing.T) {
	t.Parallel()
	l := newLimited()
	for i := range many {
		l.do(&core.CreateQueue{Queue: fmt.Sprint("q", i)})
		l.table.OpenBytes = 0
	}
	kept := func() (n int) {
		for _, q := range l.queues[1:] {
			if q.retention.Count == 7 {
				n++
			}
		}
		return n
	}
	l.do(&core.KeepDone{Queue: "q5", Retention: core.Retention{Count: 7}})
	if n := kept(); n != 1 {
		t.Errorf("%d queues keep jobs", n)
	}
	l.do(&core.KeepDone{Retention: core.Retention{Count: 7}})
	if n := kept(); n == many || n == 0 {
		t.Errorf("%d queues have changed at once", n)
	}
	for l.Tick(3, 100) {
	}
	if n := kept(); n != many || l.overrun != nil {
		t.Errorf("%d queues keep jobs, %v", n, l.overrun)
	}
}
