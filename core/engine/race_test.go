package engine_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"broker/core"
	"broker/core/clock"
	"broker/core/engine"
	"broker/core/internal/store/storetest"
	"broker/core/notify"
)

// TestConcurrentClientsFinishEveryAcknowledgedJob lets producers, workers of all kinds, watchers and an administrator
// work at the same time, with real timers and commits. Every acknowledged job is done, no job runs after its end was
// acknowledged, and every wait ends.
func TestConcurrentClientsFinishEveryAcknowledgedJob(t *testing.T) {
	t.Parallel()
	for name, durability := range map[string]engine.Durability{"sync": engine.Sync, "none": engine.None} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &crowd{t: t, jobs: 300, done: make(chan struct{}), ended: map[uint64]int{}}
			e, err := engine.Open(engine.Options{
				Dir: "data", FS: storetest.NewDisk().FS(), Durability: durability, CacheBytes: 30_000,
				Clock: clock.System{},
			})
			if err != nil {
				t.Fatal(err)
			}
			c.Engine = e
			c.work()
			if err := e.Check(); err != nil {
				t.Error(err)
			}
			if err := e.Shutdown(); err != nil {
				t.Error(err)
			}
			for seq, n := range c.ended {
				if n != 1 {
					t.Errorf("the end of job %d was promised %d times", seq, n)
				}
			}
			if want := producers * c.jobs; len(c.ended) != want {
				t.Errorf("%d jobs ended, want %d", len(c.ended), want)
			}
		})
	}
}

const (
	producers = 3
	workers   = 5
)

// crowd is an engine with clients, each on its own goroutine.
type crowd struct {
	*engine.Engine
	t    *testing.T
	jobs int // per producer
	left atomic.Int64
	done chan struct{} // closed when all jobs have ended

	mu    sync.Mutex
	ended map[uint64]int // accepted completions, by job
}

func (c *crowd) work() {
	c.left.Store(int64(producers * c.jobs))
	var all sync.WaitGroup
	for i := range producers {
		all.Go(func() { c.produce(i) })
	}
	for i := range workers {
		all.Go(func() { c.consume(i) })
	}
	all.Go(c.administrate)
	all.Wait()
}

// member is one client with its wake-ups.
type member struct {
	*crowd
	id    core.ClientID
	woken notify.Signal
}

func (c *crowd) join(p core.Protocol) *member {
	m := &member{crowd: c, woken: notify.NewSignal()}
	m.id = c.Open(core.ClientOptions{Protocol: p, Wake: m.woken.Set})
	return m
}

// ask does one operation and waits for its first direct reply, with tag 1; all other replies go to other.
func (m *member) ask(op core.Op, other func(core.Reply)) (core.Reply, bool) {
	replies := m.Do(m.id, []core.Op{op}, nil)
	for {
		var own *core.Reply
		for i, r := range replies {
			if push := r.Kind > core.TimedOut; r.Tag == 1 && !push && own == nil {
				own = &replies[i]
			} else {
				other(r)
			}
		}
		if own != nil {
			return *own, true
		}
		select {
		case <-m.woken:
		case <-m.done:
			return core.Reply{}, false
		}
		replies = m.Do(m.id, nil, nil)
	}
}

// produce submits jobs of all kinds and waits for those it watches.
func (c *crowd) produce(i int) {
	m := c.join(core.Protocols[1+i%3])
	defer c.Close(m.id)
	watched := 0
	note := func(r core.Reply) {
		if r.Kind == core.Ended {
			watched--
		}
	}
	for n := range c.jobs {
		j := &core.Job{
			Queue: fmt.Sprint("q", n%3), Origin: core.Protocols[1+i%3], Body: make([]byte, n), LeaseFor: time.Minute,
		}
		op := &core.Submit{Tag: 1, Job: j}
		switch n % 5 {
		case 0:
			op.Watch, j.Ephemeral = core.WatchStream, true
			watched++
		case 1:
			j.ReadyAt = c.Now().Add(time.Duration(n%20) * time.Millisecond)
		case 2:
			j.MaxFails, j.RetainFor = 3, time.Second
		}
		if r, _ := m.ask(op, note); r.Kind != core.Submitted {
			c.t.Errorf("submit: %+v", r)
		}
	}
	for watched > 0 {
		select {
		case <-m.woken:
		case <-c.done:
		}
		for _, r := range m.Do(m.id, nil, nil) {
			note(r)
		}
	}
}

// consume leases and finishes jobs like one kind of worker, and leaves from time to time.
func (c *crowd) consume(i int) {
	p := core.Protocols[1+i%3]
	m := c.join(p)
	defer func() { c.Close(m.id) }()
	for n := 0; c.left.Load() > 0; n++ {
		if n%50 == 49 {
			c.Close(m.id)
			m = c.join(p)
		}
		op := &core.Lease{
			Tag: 1, Queues: []string{"q0", "q1", "q2"}, Pick: core.Pick(n % 3), Worker: fmt.Sprint(i),
			Deadline: c.Now().Add(50 * time.Millisecond),
		}
		op.Holder = []core.Holder{core.HeldByNobody, core.HeldByConn, core.HeldByWorker}[i%3]
		r, ok := m.ask(op, func(core.Reply) {})
		if !ok || r.Kind != core.Assigned {
			continue
		}
		claim := []core.FinishAuthority{core.ByAnyone, core.ByHolder, core.ByLeased}[i%3]
		if n%7 == 0 && r.Lease.Fails == 0 && r.Job.MaxFails > 1 {
			m.ask(&core.Fail{Tag: 1, Ref: core.Ref{Seq: r.Seq}, Authority: claim}, func(core.Reply) {})
			continue
		}
		m.Do(m.id, []core.Op{&core.SendData{Tag: 2, Ref: core.Ref{Seq: r.Seq}, Authority: claim, Data: []byte("x")}},
			nil)
		if a, _ := m.ask(&core.Complete{Tag: 1, Ref: core.Ref{Seq: r.Seq}, Authority: claim},
			func(core.Reply) {}); a.Kind == core.Accepted {
			c.end(r.Seq)
		}
	}
}

// end counts a job whose end was accepted. After the last job, all members stop.
func (c *crowd) end(seq uint64) {
	c.mu.Lock()
	c.ended[seq]++
	c.mu.Unlock()
	if c.left.Add(-1) == 0 {
		close(c.done)
	}
}

// administrate inspects the broker, and pauses and resumes queues while other members work.
func (c *crowd) administrate() {
	m := c.join(core.Internal)
	defer c.Close(m.id)
	for n := 0; c.left.Load() > 0; n++ {
		q := fmt.Sprint("q", n%3)
		c.Do(m.id, []core.Op{
			&core.PauseQueue{Queue: q, Paused: true}, &core.ListJobs{Limit: 20}, &core.ListQueues{}, &core.ReadStats{},
			&core.PutLimit{Limit: core.Limit{
				Selector: core.InQueue(q, core.ScopeQueue, ""), Throttle: core.Throttle{Leased: uint32(n%4 + 1)},
			}},
			&core.PauseQueue{Queue: q},
		}, nil)
		timer := time.NewTimer(time.Millisecond)
		select {
		case <-timer.C:
		case <-c.done:
		}
	}
	c.Do(m.id, []core.Op{&core.RemoveLimit{ID: core.LimitID{Queue: "q0"}}}, nil)
}
