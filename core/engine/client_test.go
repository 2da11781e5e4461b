package engine_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"broker/core"
)

// TestDisconnectClosesTheConnection has one client disconnect another: its Close is called without the lock, and
// disconnecting a client without a connection fails.
func TestDisconnectClosesTheConnection(t *testing.T) {
	t.Parallel()
	d := setup(t, nil)
	operator := d.client(core.Internal)
	closed := 0
	var victim core.ClientID
	victim = d.Open(core.ClientOptions{Protocol: core.Gearman, Wake: func() {}, Close: func() {
		closed++
		d.Close(victim) // it would hang under the lock
	}})
	if r := d.one(operator, &core.DisconnectClient{Client: victim}); r.Kind != core.Accepted || closed != 1 {
		t.Fatalf("%+v, closed %d times", r, closed)
	}
	if r := d.one(operator, &core.DisconnectClient{Client: victim}); !errors.Is(r.Err, core.ErrNotFound) ||
		closed != 1 {
		t.Errorf("a client that is gone: %+v, closed %d times", r, closed)
	}
	if r := d.one(operator, &core.DisconnectClient{Client: operator}); !errors.Is(r.Err, core.ErrInvalid) {
		t.Errorf("a client without a connection: %+v", r)
	}
}

// A client that stops waiting gives back the job that had just been assigned to it, and is still woken by the commits
// that its replies wait for, whoever connects meanwhile.
func TestCancelWaitsGivesBackAJobAndKeepsTheClient(t *testing.T) {
	t.Parallel()
	d := setup(t, nil)
	woken := 0
	c, other := d.Open(core.ClientOptions{Protocol: core.Workq, Wake: func() { woken++ }}), d.client(core.Workq)
	if r := d.one(c, &core.Submit{Job: &core.Job{Queue: "r", Origin: core.Workq}}); r.Commit == 0 {
		t.Fatalf("submit: %+v", r)
	}
	lease := core.Lease{Queues: []string{"q"}, Holder: core.HeldByNobody}
	waiting := lease
	waiting.Tag, waiting.Deadline = 7, d.clk.Now().Add(time.Hour)
	d.Do(c, []core.Op{&waiting}, nil)
	d.one(other, &core.Submit{Job: &core.Job{Queue: "q", Origin: core.Workq}})
	if r := d.Do(c, []core.Op{&core.CancelWaits{}}, nil); len(r) != 0 {
		t.Errorf("replies: %+v", r)
	}
	d.client(core.Workq)
	if r := d.one(other, &lease); r.Kind != core.Assigned || r.Lease.Attempts != 1 {
		t.Errorf("the job did not come back: %+v", r)
	}
	woken = 0
	d.Flush()
	if woken != 1 {
		t.Errorf("the commit woke the client %d times", woken)
	}
	if err := d.Check(); err != nil {
		t.Error(err)
	}
}

// A client may be told of commits and of waiting replies by two functions.
func TestDurableIsCalledInPlaceOfWakeForACommit(t *testing.T) {
	t.Parallel()
	d := setup(t, nil)
	var woken, durable int
	c := d.Open(core.ClientOptions{
		Protocol: core.Workq, Wake: func() { woken++ }, Durable: func() { durable++ },
	})
	d.one(c, &core.Submit{Job: &core.Job{Queue: "r", Origin: core.Workq}})
	d.Flush()
	if woken != 0 || durable != 1 {
		t.Errorf("after a commit: woken %d times, told of it %d times", woken, durable)
	}
	d.Do(c, []core.Op{&core.Lease{
		Tag: 7, Queues: []string{"q"}, Holder: core.HeldByNobody, Deadline: d.clk.Now().Add(time.Hour),
	}}, nil)
	d.one(d.client(core.Workq), &core.Submit{Job: &core.Job{Queue: "q", Origin: core.Workq}})
	if woken != 1 {
		t.Errorf("woken %d times for a job", woken)
	}
}

// A call whose operations take long is interrupted for other clients. It answers all of its operations, in order.
func TestInterruptedCallAnswersAllOperations(t *testing.T) {
	t.Parallel()
	d := setup(t, nil)
	worker := d.client(core.Gearman)
	const queues, rounds = 10_000, 10
	ops := make([]core.Op, 0, queues)
	for i := range queues {
		ops = append(ops, &core.Register{Queue: fmt.Sprint("f", i)})
	}
	d.Do(worker, ops, nil)
	d.one(d.client(core.Workq), &core.Submit{Job: &core.Job{Queue: "q"}})
	ops = ops[:0]
	for i := range rounds {
		ops = append(ops, &core.Sleep{}, &core.Lease{Tag: uint64(i + 1), Pick: core.PickByPriority})
	}
	replies := d.Do(worker, ops, nil)
	for i, r := range replies {
		if r.Tag != uint64(i+1) || r.Kind != core.NothingReady {
			t.Errorf("reply %d: %+v", i, r)
		}
	}
	if len(replies) != rounds {
		t.Errorf("%d replies to %d leases", len(replies), rounds)
	}
}
