package machine_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"broker/core"
	"broker/core/coretest"
	"broker/core/internal/machine"
)

// TestManyIdleQueuesAreForgotten uses a new queue for every job: beyond a limit, queues of all protocols are removed
// when they have been idle for a while.
func TestManyIdleQueuesAreForgotten(t *testing.T) {
	t.Parallel()
	const names, bound = 25_000, 10_000
	clk := coretest.NewClock()
	m := machine.New(machine.Options{Random: rand.New(rand.NewPCG(1, 1))})
	c := m.OpenClient(0, core.ClientOptions{Protocol: core.Gearman})
	use := func(from, to int) {
		for i := from; i < to; i++ {
			m.Apply(clk.Now(), c,
				[]core.Op{&core.Submit{Job: &core.Job{Queue: fmt.Sprint("name-", i), Origin: core.Gearman}}})
			seq := m.Take(c, nil)[0].Seq
			m.Apply(clk.Now(), c, []core.Op{&core.Cancel{Ref: core.Ref{Seq: seq}}})
			m.Take(c, nil)
		}
	}
	pass := func() int {
		clk.Advance(11 * time.Minute)
		for m.Tick(clk.Now(), 1000) {
		}
		if err := m.Check(); err != nil {
			t.Fatal(err)
		}
		return m.Stats().Queues
	}
	use(0, bound)
	if n := pass(); n != bound {
		t.Fatalf("%d queues of %d are known: gearmand forgets none", n, bound)
	}
	use(bound, names)
	if n := pass(); n > bound {
		t.Errorf("%d queues of %d are known, want %d", n, names, bound)
	}
}

// TestKeptQueuesAreBounded uses a new queue for every job: after a restart, at most maxKeptQueues of them exist, and
// removed queues make room for new ones.
func TestKeptQueuesAreBounded(t *testing.T) {
	t.Parallel()
	const bound, names = 10_000, 10_100
	clk, shelf := coretest.NewClock(), newMemStore()
	m := machine.New(machine.Options{Persist: true, Random: rand.New(rand.NewPCG(1, 1))})
	c := m.OpenClient(0, core.ClientOptions{Protocol: core.Faktory})
	push := func(name string) {
		m.Apply(clk.Now(), c, []core.Op{&core.Submit{Job: &core.Job{Queue: name, Origin: core.Faktory}}})
		seq := m.Take(c, nil)[0].Seq
		m.Apply(clk.Now(), c, []core.Op{&core.Cancel{Ref: core.Ref{Seq: seq}}})
		m.Take(c, nil)
	}
	kept := func() (n int) {
		var s machine.Sealed
		m.Seal(&s)
		if _, err := shelf.put(&s.Batch); err != nil {
			t.Fatal(err)
		}
		m.Committed(&s)
		if err := m.Check(); err != nil {
			t.Fatal(err)
		}
		for name := range shelf.meta {
			if strings.HasPrefix(name, "core/queue/") {
				n++
			}
		}
		return n
	}
	for i := range names {
		push(fmt.Sprint("name-", i))
	}
	if n := kept(); n != bound {
		t.Fatalf("%d names are kept, want %d", n, bound)
	}
	again := machine.New(machine.Options{Persist: true, Random: rand.New(rand.NewPCG(1, 1))})
	if err := shelf.load(again, clk.Now()); err != nil {
		t.Fatal(err)
	}
	m, c = again, again.OpenClient(0, core.ClientOptions{Protocol: core.Faktory})
	m.Apply(clk.Now(), c, []core.Op{&core.ListQueues{}})
	if rows := m.Take(c, nil)[0].Queues; len(rows) != bound {
		t.Fatalf("%d queues are known after a restart, want %d", len(rows), bound)
	}
	m.Apply(clk.Now(), c, []core.Op{&core.DropQueue{Queue: "name-7"}})
	m.Take(c, nil)
	push("new-1")
	push("new-2")
	if n := kept(); n != bound || shelf.meta["core/queue/new-1"] == nil {
		t.Fatalf("%d names are kept, want %d with the first new one", n, bound)
	}
}
