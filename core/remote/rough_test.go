package remote

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"broker/core"
	"broker/core/clock"
	"broker/core/engine"
)

// rough is a connection that delivers in pieces and late, and breaks after some bytes.
type rough struct {
	net.Conn
	rnd  *rand.Rand
	left int // bytes until it breaks
}

func (r *rough) Write(p []byte) (n int, err error) {
	for n < len(p) && err == nil {
		piece := min(len(p)-n, 1+r.rnd.IntN(600))
		if r.left -= piece; r.left < 0 {
			_ = r.Conn.Close() // the peer sees it too
			return n, net.ErrClosed
		}
		if r.rnd.IntN(8) == 0 {
			time.Sleep(time.Duration(r.rnd.IntN(200)) * time.Microsecond) //nolint:forbidigo // a test
		}
		var wrote int
		wrote, err = r.Conn.Write(p[n : n+piece])
		n += wrote
	}
	return n, err
}

// roughly is what clients of several nodes do over links that break, and what they saw.
type roughly struct {
	*leader
	t    *testing.T
	jobs atomic.Int64 // submissions that were begun
	stop atomic.Bool  // no more submissions

	mu    sync.Mutex // guards the fields below
	acked map[string]bool
	ended map[string]int // acknowledged completions
}

// roughClient is a client that has one link after the other.
type roughClient struct {
	*roughly
	*worker
	rnd  *rand.Rand
	open map[uint64]string // by tag: what a reply must name; empty: anything
	tag  uint64
}

// ask applies an operation and checks the replies of all.
func (c *roughClient) ask(op func(tag uint64) core.Op, names string) {
	c.tag++
	c.open[c.tag] = names
	c.see(c.worker.do(op(c.tag)))
}

func (c *roughClient) see(all []core.Reply) {
	for i := range all {
		r := &all[i]
		names, asked := c.open[r.Tag]
		if !asked {
			c.roughly.t.Errorf("a reply twice, or to nobody's question: %+v", r)
			return
		}
		delete(c.open, r.Tag)
		switch r.Kind {
		case core.Submitted:
			c.mu.Lock()
			c.acked[names] = true
			c.mu.Unlock()
		case core.Inspected:
			if id := r.Job.ID; id != names || string(r.Job.Body) != "body of "+id {
				c.roughly.t.Errorf("asked for %s, the reply names %s with %q", names, id, r.Job.Body)
			}
		case core.Assigned:
			id := r.Job.ID
			if string(r.Job.Body) != "body of "+id {
				c.roughly.t.Errorf("job %s comes with %q", id, r.Job.Body)
			}
			c.ask(func(tag uint64) core.Op { return &core.Complete{Tag: tag, Ref: core.Ref{Seq: r.Seq}} }, "done "+id)
		case core.Accepted:
			c.mu.Lock()
			c.ended[names]++
			c.mu.Unlock()
		default:
		}
	}
}

// waits reports whether a lease waits.
func (c *roughClient) waits() bool {
	for _, names := range c.open {
		if names == "any" {
			return true
		}
	}
	return false
}

// step does something, and waits for what comes if there is nothing else to do.
func (c *roughClient) step() {
	switch n := c.rnd.IntN(10); {
	case n < 5 && !c.stop.Load():
		id := fmt.Sprint("job-", c.jobs.Add(1))
		job := &core.Job{ID: id, Queue: "q", Origin: core.Workq, Body: []byte("body of " + id), RetainFor: time.Hour}
		c.ask(func(tag uint64) core.Op { return &core.Submit{Tag: tag, Job: job} }, id)
		c.ask(func(tag uint64) core.Op { return &core.Inspect{Tag: tag, Ref: core.Ref{ID: id}} }, id)
	case n == 5:
		if c.waits() {
			c.worker.do(&core.CancelWaits{})
			for tag, names := range c.open {
				if names == "any" {
					delete(c.open, tag)
				}
			}
		}
	case !c.waits():
		until := c.worker.broker.Now().Add(time.Hour)
		c.ask(func(tag uint64) core.Op { return &core.Lease{Tag: tag, Queues: []string{"q"}, Deadline: until} }, "any")
	default:
		select {
		case <-c.worker.woken:
			c.see(c.worker.do())
		case <-c.worker.closed:
		case <-time.After(time.Millisecond):
		}
	}
}

// run is a node with some clients, over one link after the other.
func (l *roughly) run(seed uint64, ends <-chan struct{}) {
	rnd := rand.New(rand.NewPCG(seed, 1))
	for round := uint64(0); ; round++ {
		near, far := net.Pipe()
		go func() { // ends with the link
			if err := l.server.Serve(far); errors.Is(err, errMalformed) {
				l.t.Errorf("at the leader: %v", err)
			}
		}()
		left := 2_000 + rnd.IntN(60_000)
		if l.stop.Load() {
			left = 1 << 30
		}
		b, err := Dial(&rough{Conn: near, rnd: rand.New(rand.NewPCG(seed, round)), left: left}, clock.System{}, l.said)
		if err != nil {
			continue // it broke at once
		}
		var clients sync.WaitGroup
		for i := range uint64(6) {
			clients.Go(func() {
				c := &roughClient{
					roughly: l, worker: open(l.t, b), rnd: rand.New(rand.NewPCG(seed^round<<8, i)),
					open: make(map[uint64]string),
				}
				for {
					select {
					case <-ends:
						return
					case <-c.worker.closed:
						return
					default:
						c.step()
					}
				}
			})
		}
		clients.Wait()
		b.Hangup()
		if errors.Is(b.Reason(), errMalformed) {
			l.t.Errorf("at the node: %v", b.Reason())
		}
		select {
		case <-ends:
			return
		default:
		}
	}
}

// Clients of three nodes work over links that are slow, cut messages and break: no reply comes twice or for another
// question, no job is lost or completed twice, and no waiter is forgotten while there is work.
func TestClientsOverRoughLinks(t *testing.T) {
	l := &roughly{
		leader: newLeader(t, engine.Options{Durability: engine.None}), t: t,
		acked: map[string]bool{}, ended: map[string]int{},
	}
	ends := make(chan struct{})
	var nodes sync.WaitGroup
	for seed := range uint64(3) {
		nodes.Go(func() { l.run(seed+1, ends) })
	}
	l.eventually("submissions", func() bool { return l.jobs.Load() > 3000 })
	l.stop.Store(true)
	l.eventually("an empty queue", func() bool {
		stats := core.DoOnce(l, core.Internal, &core.ReadStats{Tag: 1})[0].Stats
		return stats.Jobs[core.Ready]+stats.Jobs[core.Leased] == 0
	})
	close(ends)
	nodes.Wait()
	if len(l.acked) < 1000 {
		t.Errorf("only %d submissions are acknowledged", len(l.acked))
	}
	for id := range l.acked {
		if job := l.job(id); job.State != core.Done {
			t.Errorf("%s is %v", id, job.State)
		}
	}
	for id, n := range l.ended {
		if n > 1 {
			t.Errorf("%s: %d completions are acknowledged", id, n)
		}
	}
}
