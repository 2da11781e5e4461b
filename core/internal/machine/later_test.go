package machine

import (
	"fmt"
	"testing"
	"time"

	"broker/core"
)

// rest does all steps that an operation has left, each with a batch of its own, and returns their number. It fails if
// the operation or a step touches more than it may.
func (l *limited) rest(t *testing.T) (steps int) {
	t.Helper()
	for more := true; more; steps++ {
		var s Sealed
		if l.Seal(&s); len(s.Batch.Changes) > freeEffort+2*l.links.Step() {
			t.Errorf("%d changes in a batch", len(s.Batch.Changes))
		}
		l.Committed(&s)
		if l.table.Touched > freeEffort+2*l.links.Step() {
			t.Errorf("%d things at once", l.table.Touched)
		}
		if err := l.Check(); err != nil {
			t.Fatal(err)
		}
		more = l.Tick(3, 100)
	}
	return steps
}

// commit commits everything so far.
func (l *limited) commit() {
	var s Sealed
	l.Seal(&s)
	l.Committed(&s)
}

// joined opens a client with a connection.
func (l *limited) joined() core.ClientID {
	return l.OpenClient(2, core.ClientOptions{Protocol: core.Gearman, Close: func() {}})
}

// as does an operation for a client, and returns its last reply.
func (l *limited) as(id core.ClientID, op core.Op) core.Reply {
	l.Apply(2, id, []core.Op{op})
	l.table.OpenBytes = 0
	r := l.Take(id, nil)
	if len(r) == 0 {
		return core.Reply{}
	}
	return r[len(r)-1]
}

func TestLeavingClientGivesBackWhatItHasInSteps(t *testing.T) {
	t.Parallel()
	for name, one := range map[string]func(l *limited, id core.ClientID, i int){
		"leases": func(l *limited, id core.ClientID, _ int) {
			l.submitted(core.Job{})
			l.as(id, &core.Lease{Queues: []string{"q"}, Holder: core.HeldByConn})
		},
		"watched jobs": func(l *limited, id core.ClientID, _ int) {
			l.as(id, &core.Submit{Job: &core.Job{Queue: "q", Ephemeral: true}, Watch: core.WatchStream})
		},
		"registrations": func(l *limited, id core.ClientID, i int) {
			l.as(id, &core.Register{Queue: fmt.Sprint("q", i)})
		},
		"held queues": func(l *limited, id core.ClientID, i int) {
			l.as(id, &core.HoldQueue{Queue: fmt.Sprint("q", i)})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLimited()
			id := l.joined()
			for i := range many {
				one(l, id, i)
			}
			l.commit()
			l.CloseClient(3, id)
			if n := len(l.do(&core.ListClients{Limit: 10}).Answer.Clients); n != 1 {
				t.Errorf("%d clients are listed", n)
			}
			if steps := l.rest(t); steps < many/1000-1 {
				t.Errorf("only %d steps", steps)
			}
			if c := l.clients[Slot(id)]; c != nil || l.Stats().Jobs[core.Leased] != 0 ||
				l.stats.Clients[core.Gearman] != 0 {
				t.Errorf("client %v is left, %d jobs are leased", c, l.Stats().Jobs[core.Leased])
			}
		})
	}
}

// TestUnregisteredWorkerGivesBackItsJobsInSteps lets a worker with many jobs end its registration for their queue. It
// gets no job before it has given back all of them.
func TestUnregisteredWorkerGivesBackItsJobsInSteps(t *testing.T) {
	t.Parallel()
	for _, op := range []*core.Unregister{{Queue: "q"}, {All: true}} {
		l := newLimited()
		id := l.joined()
		l.as(id, &core.Register{Queue: "q"})
		for range many {
			l.submitted(core.Job{})
			l.as(id, &core.Lease{Holder: core.HeldByConn})
		}
		l.commit()
		l.as(id, op)
		l.as(id, &core.Register{Queue: "q"})
		if r := l.as(id, &core.Lease{Holder: core.HeldByConn}); r.Kind != core.NothingReady {
			t.Errorf("it got %v", r.Kind)
		}
		l.as(id, &core.Sleep{})
		if steps := l.rest(t); steps < many/1000-1 {
			t.Errorf("only %d steps", steps)
		}
		if n := l.Stats().Jobs[core.Ready]; n != many {
			t.Errorf("%d jobs are ready", n)
		}
		if r := l.Take(id, nil); len(r) != 1 || r[0].Kind != core.Woken {
			t.Errorf("after it has given back its jobs, it got %v", r)
		}
	}
}

func TestManyWaitingClientsAreServedInSteps(t *testing.T) {
	t.Parallel()
	wait := func(worker string, least int) *core.Lease {
		return &core.Lease{
			Queues: []string{"q"}, Holder: core.HeldByWorker, Worker: worker, LeaseFor: time.Hour, Deadline: 1e15,
			Min: least, Max: max(least, 1),
		}
	}
	t.Run("workers at their limit", func(t *testing.T) {
		t.Parallel()
		l := newLimited()
		l.do(&core.PutLimit{Limit: core.Limit{
			Selector: core.InQueue("q", core.ScopeQueue, ""), Throttle: core.Throttle{LeasedPerWorker: 1},
		}})
		held := l.submitted(core.Job{})
		first := l.joined()
		l.as(first, wait("w", 1))
		for range many {
			l.as(l.joined(), wait("w", 1))
		}
		last := l.joined()
		l.as(last, wait("v", 1))
		job := l.submitted(core.Job{})
		if steps := l.rest(t); steps < many/1000-1 {
			t.Errorf("only %d steps", steps)
		}
		if r := l.Take(last, nil); len(r) != 1 || r[0].Seq != job {
			t.Errorf("the worker below its limit got %v", r)
		}
		l.submitted(core.Job{})
		l.as(first, &core.Complete{Ref: core.Ref{Seq: held}, Authority: core.ByAnyone}) // the walk is behind the others
		if l.rest(t); l.Stats().Jobs[core.Ready] != 0 {
			t.Error("nobody got the job, although the first worker is below its limit")
		}
	})
	t.Run("leases of more jobs than there are", func(t *testing.T) {
		t.Parallel()
		l := newLimited()
		for range many {
			l.as(l.joined(), wait("w", 2))
		}
		last := l.joined()
		l.as(last, wait("v", 1))
		l.submitted(core.Job{})
		if steps := l.rest(t); steps < many/1000-1 {
			t.Errorf("only %d steps", steps)
		}
		if r := l.Take(last, nil); len(r) != 1 {
			t.Errorf("the lease of one job got %v", r)
		}
	})
	t.Run("all sleeping workers are woken", func(t *testing.T) {
		t.Parallel()
		l := newLimited()
		l.opts.Wakeup = 0
		for range many {
			id := l.joined()
			l.as(id, &core.Register{Queue: "q"})
			l.as(id, &core.Sleep{})
		}
		l.submitted(core.Job{})
		if steps := l.rest(t); steps < many/1000-1 {
			t.Errorf("only %d steps", steps)
		}
		if n := l.queues[l.table.QueueNumber("q")].woken; n != many {
			t.Errorf("%d workers were woken", n)
		}
	})
}

func TestManyQueuesAreServedInStepsAfterADrain(t *testing.T) {
	t.Parallel()
	l := newLimited()
	l.do(&core.Drain{On: true})
	for i := range many {
		queue := fmt.Sprint("q", i)
		l.do(&core.Submit{Job: &core.Job{Queue: queue}})
		l.as(l.joined(), &core.Lease{Queues: []string{queue}, Holder: core.HeldByConn, Deadline: 1e15})
		l.table.OpenBytes = 0
	}
	l.commit()
	for range 2 {
		l.do(&core.Drain{})
		l.do(&core.Drain{On: true})
	}
	l.do(&core.Drain{})
	if steps := l.rest(t); steps < many/1000-1 {
		t.Errorf("only %d steps", steps)
	}
	if n := l.Stats().Jobs[core.Leased]; n != many {
		t.Errorf("%d jobs are leased", n)
	}
}

func TestWhatMovesWithTheClockIsStoredInSteps(t *testing.T) {
	t.Parallel()
	l := newLimited()
	l.table.StoreLeaseEnds = true
	for i := range many {
		l.submitted(core.Job{})
		l.do(&core.Lease{Queues: []string{"q"}, Holder: core.HeldByWorker, Worker: "w", LeaseFor: time.Hour})
		l.do(&core.CreateQueue{Queue: fmt.Sprint(i)})
		l.do(&core.PauseQueue{Queue: fmt.Sprint(i), Paused: true, For: time.Hour})
		l.table.OpenBytes = 0
	}
	l.commit()
	l.ClockSet(1e9, 1e9)
	if steps := l.rest(t); steps < 2*many/1000 {
		t.Errorf("only %d steps", steps)
	}
	paused := l.do(&core.InspectQueue{Queue: "0"}).Queues[0]
	if want := core.Instant(1e9 + 2).Add(time.Hour); paused.PausedUntil != want {
		t.Errorf("the queue is paused until %d, want %d", paused.PausedUntil, want)
	}
}

func TestChainOfEmptyBatchesEndsInSteps(t *testing.T) {
	t.Parallel()
	l := newLimited()
	batches := []uint64{0}
	for range many {
		batches = append(batches, l.do(&core.OpenBatch{Parent: batches[len(batches)-1]}).Seq)
		l.table.OpenBytes = 0
	}
	l.commit()
	for _, number := range batches[1:] {
		l.do(&core.CloseBatch{Batch: number})
		l.table.OpenBytes = 0
	}
	if steps := l.rest(t); steps < many/1000-1 {
		t.Errorf("only %d steps", steps)
	}
	if i := l.batches.Find(batches[1]).Info(); i.Success != core.CallbackDone {
		t.Errorf("the outermost batch is %v", i.Success)
	}
}

// asked opens a worker that has asked for jobs of many queues, and has one.
func (l *limited) asked(opts core.ClientOptions) (id core.ClientID, job core.Ref) {
	names := make([]string, many)
	for i := range names {
		names[i] = fmt.Sprint("asked", i)
		l.do(&core.CreateQueue{Queue: names[i]})
		l.table.OpenBytes = 0
	}
	id = l.OpenClient(2, opts)
	l.as(id, &core.Lease{Queues: names, Holder: core.HeldByNobody})
	l.do(&core.Submit{Job: &core.Job{Queue: names[7]}})
	lease := &core.Lease{Queues: names[7:8], Holder: core.HeldByNobody, LeaseFor: time.Hour}
	return id, core.Ref{Seq: l.as(id, lease).Seq}
}

// workers counts the workers of the queues of asked.
func (l *limited) workers() (n int) {
	for _, q := range l.queues {
		if q != nil && q.consumers > 0 {
			n += int(q.consumers)
		}
	}
	return n
}

func TestWorkerThatAskedForManyQueuesLeavesThemInSteps(t *testing.T) {
	t.Parallel()
	worker := core.ClientOptions{Protocol: core.Workq, Close: func() {}}
	t.Run("the end of a lease looks at one", func(t *testing.T) {
		t.Parallel()
		l := newLimited()
		id, job := l.asked(worker)
		l.freshEffort()
		if l.as(id, &core.Complete{Ref: job, Authority: core.ByAnyone}); l.table.Touched > 10 || l.workers() != many {
			t.Errorf("%d were touched, %d workers count", l.table.Touched, l.workers())
		}
		l.rest(t)
	})
	t.Run("the end of its connection", func(t *testing.T) {
		t.Parallel()
		l := newLimited()
		id, job := l.asked(worker)
		l.CloseClient(2, id)
		if steps := l.rest(t); steps < many/1000 || l.workers() != 1 {
			t.Errorf("%d steps, %d workers count", steps, l.workers())
		}
		l.do(&core.Complete{Ref: job, Authority: core.ByAnyone})
		if l.workers() != 0 {
			t.Errorf("%d workers count", l.workers())
		}
	})
	t.Run("a minute", func(t *testing.T) {
		t.Parallel()
		l := newLimited()
		id, job := l.asked(worker)
		at := core.Instant(2).Add(seenFor)
		for more := true; more; {
			if more = l.Tick(at, 100); l.table.Touched > freeEffort+2*l.links.Step() {
				t.Errorf("%d were touched at once", l.table.Touched)
			}
			if err := l.Check(); err != nil {
				t.Fatal(err)
			}
		}
		if l.workers() != 1 {
			t.Errorf("%d workers count", l.workers())
		}
		l.Apply(at, id, []core.Op{&core.Complete{Ref: job, Authority: core.ByAnyone}})
		if l.workers() != 1 { // the worker is there
			t.Errorf("%d workers count", l.workers())
		}
		if l.Tick(at.Add(seenFor), 100); l.workers() != 0 {
			t.Errorf("%d workers count after another minute", l.workers())
		}
	})
}
