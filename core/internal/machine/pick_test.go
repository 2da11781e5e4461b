package machine_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"broker/core"
	"broker/core/internal/machine"
)

func newMachine() *machine.Machine {
	return machine.New(machine.Options{
		DefaultLease: time.Minute, CacheBytes: 1 << 20, Wakeup: -1, StartedAt: 1,
		Random: rand.New(rand.NewPCG(1, 1)),
	})
}

// do applies one operation and returns the last reply.
func do(t *testing.T, m *machine.Machine, c core.ClientID, op core.Op) core.Reply {
	t.Helper()
	m.Apply(2, c, []core.Op{op})
	r := m.Take(c, nil)
	if len(r) == 0 {
		t.Fatalf("%T: no reply", op)
	}
	return r[len(r)-1]
}

func TestRandomPickIsUniformOverQueuesWithAJob(t *testing.T) {
	t.Parallel()
	m := newMachine()
	c := m.OpenClient(0, core.ClientOptions{Protocol: core.Workq})
	const queues, rounds = 4, 4000
	names := []string{"empty"}
	for i := range queues {
		names = append(names, fmt.Sprint("q", i))
	}
	names = append(names, "q0", "q0") // named thrice: no likelier for that
	got := map[string]int{}
	for i := range queues {
		do(t, m, c, &core.Submit{Job: &core.Job{Queue: names[1+i], Origin: core.Workq}})
	}
	for range rounds {
		r := do(t, m, c, &core.Lease{Queues: names, Pick: core.PickAtRandom, Holder: core.HeldByNobody})
		got[r.Job.Queue]++
		do(t, m, c, &core.Release{Ref: core.Ref{Seq: r.Seq}, Epoch: r.Lease.Epoch})
	}
	for i := range queues {
		if n := got[names[1+i]]; n < rounds/queues*85/100 || n > rounds/queues*115/100 {
			t.Errorf("%s was picked %d times of %d", names[1+i], n, rounds)
		}
	}
}

func TestLeaseOfManyQueuesTakesLinearTime(t *testing.T) {
	t.Parallel()
	m := newMachine()
	c := m.OpenClient(0, core.ClientOptions{Protocol: core.Workq})
	names := make([]string, 200_000) // quadratic work would take minutes
	for i := range names {
		names[i] = fmt.Sprint("q", i%100_000)
	}
	m.Apply(2, c, []core.Op{&core.Lease{Queues: names, Pick: core.PickAtRandom, Deadline: 100}})
	if err := m.Check(); err != nil {
		t.Fatal(err)
	}
	m.CloseClient(3, c)
	if n := m.Stats().Queues; n != 0 {
		t.Fatalf("%d queues are left", n)
	}
}

func TestBackoffIsWithinFaktorysFormula(t *testing.T) {
	t.Parallel()
	m := newMachine()
	c := m.OpenClient(0, core.ClientOptions{Protocol: core.Faktory})
	for prior := range uint32(30) {
		least, most := time.Duration(1<<62), time.Duration(0)
		for range 200 {
			r := do(t, m, c, &core.Submit{Job: &core.Job{
				Queue: "q", Origin: core.Faktory, MaxFails: 1000, Backoff: core.BackoffFaktory, PriorFails: prior,
			}})
			do(t, m, c, &core.Fail{Ref: core.Ref{Seq: r.Seq}, Authority: core.ByAnyone})
			i := do(t, m, c, &core.Inspect{Ref: core.Ref{Seq: r.Seq}}).Info
			if i.State != core.Retrying || i.Failure.NextAt != i.ReadyAt {
				t.Fatalf("after %d failures: %v at %d, said %d", prior+1, i.State, i.ReadyAt, i.Failure.NextAt)
			}
			wait := i.ReadyAt.Sub(2)
			least, most = min(least, wait), max(most, wait)
		}
		n := time.Duration(prior)
		low, high := (n*n*n*n+15)*time.Second, (n*n*n*n+15+29*(n+1))*time.Second
		if least != low || most != high {
			t.Errorf("retry %d waits between %v and %v, want %v and %v", prior, least, most, low, high)
		}
	}
}

func TestBackoffOfManyFailuresIsBounded(t *testing.T) {
	t.Parallel()
	m := newMachine()
	c := m.OpenClient(0, core.ClientOptions{Protocol: core.Faktory})
	r := do(t, m, c, &core.Submit{Job: &core.Job{
		Queue: "q", Origin: core.Faktory, MaxFails: 1<<32 - 1, Backoff: core.BackoffFaktory, PriorFails: 1 << 30,
	}})
	do(t, m, c, &core.Fail{Ref: core.Ref{Seq: r.Seq}, Authority: core.ByAnyone})
	i := do(t, m, c, &core.Inspect{Ref: core.Ref{Seq: r.Seq}}).Info
	if wait := i.ReadyAt.Sub(2); wait != 10*365*24*time.Hour {
		t.Fatalf("the next try is in %v", wait)
	}
}
