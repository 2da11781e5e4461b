package cluster_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"broker/integration/harness"
	"broker/integration/server"
)

// jobNumbers numbers the jobs of all loads, some of which use one cluster after the other.
var jobNumbers atomic.Uint64

// load is clients of several protocols at all nodes.
type load struct {
	c       *cluster
	of      []protocol
	history history
	stop    chan struct{}
	clients sync.WaitGroup
	numbers atomic.Int64
	joined  int // submissions that have joined a job, once the load is finished

	mu      sync.Mutex // guards the fields below
	lastAck time.Time
	gap     time.Duration // the longest without an acknowledged submission since reset
}

// begin starts the clients: of each protocol a producer and a worker at every node.
func (c *cluster) begin() *load {
	l := c.beginOf(protocols)
	for _, n := range c.nodes {
		l.clients.Go(func() { l.produceKeys(n) })
		l.clients.Go(func() { l.workKeys(n, l.stop) })
	}
	return l
}

// beginOf starts a producer and a worker of each protocol at every node.
func (c *cluster) beginOf(all []protocol) *load {
	l := &load{c: c, of: all, stop: make(chan struct{}), lastAck: time.Now()}
	for _, n := range c.nodes {
		for _, p := range all {
			l.clients.Go(func() { l.produce(n, p) })
			l.clients.Go(func() { l.work(n, p, l.stop) })
		}
	}
	return l
}

// acked notes that a submission was acknowledged.
func (l *load) acked() {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	l.gap = max(l.gap, now.Sub(l.lastAck))
	l.lastAck = now
}

// resetGap returns the longest time without an acknowledgement.
func (l *load) resetGap() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	gap := max(l.gap, time.Since(l.lastAck))
	l.gap = 0
	return gap
}

func (l *load) ended(stop <-chan struct{}) bool {
	select {
	case <-stop:
		return true
	default:
		return false
	}
}

// newID is an id that every protocol accepts.
func (l *load) newID() string {
	return fmt.Sprintf("6ba7b810-9dad-41d1-80b4-%012d", jobNumbers.Add(1))
}

// pause is between two jobs of a client, since the machine has other things to do.
const pause = 5 * time.Millisecond

// session opens a session, however long that takes; nil: the load has ended.
func (l *load) session(n *server.BrokerServer, p protocol, stop <-chan struct{}) session {
	for !l.ended(stop) {
		if s, err := p.dial(n); err == nil {
			return s
		}
		time.Sleep(20 * time.Millisecond)
	}
	return nil
}

func (l *load) produce(n *server.BrokerServer, p protocol) {
	client := int(l.numbers.Add(1))
	for !l.ended(l.stop) {
		s := l.session(n, p, l.stop)
		for s != nil && !l.ended(l.stop) {
			d := operation{kind: submitted, job: l.newID(), client: client, from: time.Now()}
			err := s.submit(d.job)
			d.to, d.acked = time.Now(), err == nil
			l.history.add(d)
			if err != nil {
				break
			}
			l.acked()
			time.Sleep(pause)
		}
		if s != nil {
			_ = s.Close() // it may be broken
		}
	}
}

// work takes jobs and finishes them; after a hundred leases in a row that bring none, it ends if the load has.
func (l *load) work(n *server.BrokerServer, p protocol, stop <-chan struct{}) {
	client := int(l.numbers.Add(1))
	for !l.ended(stop) {
		s := l.session(n, p, stop)
		for s != nil && !l.ended(stop) {
			took, err := l.workOne(s, p, client)
			if err != nil {
				break
			}
			if !took {
				time.Sleep(pause)
			}
		}
		if s != nil {
			_ = s.Close() // it may be broken
		}
	}
}

func (l *load) workOne(s session, p protocol, client int) (took bool, err error) {
	d := operation{kind: leased, client: client, exclusive: p.exclusive && l.c.committed, acked: true, from: time.Now()}
	if d.job, err = s.lease(); err != nil || d.job == "" {
		return false, err
	}
	d.to = time.Now()
	l.history.add(d)
	f := operation{kind: finished, job: d.job, client: client, from: time.Now()}
	f.acked, err = s.finish(d.job)
	f.to = time.Now()
	l.history.add(f)
	return true, err
}

// finish ends the load, lets workers take what is left, and checks what all clients saw.
func (l *load) finish(t *testing.T) {
	t.Helper()
	close(l.stop)
	l.clients.Wait()
	drained := make(chan struct{})
	var workers sync.WaitGroup
	for _, p := range l.of {
		workers.Go(func() { l.work(l.c.nodes[l.c.leader()], p, drained) })
	}
	workers.Go(func() { l.workKeys(l.c.nodes[l.c.leader()], drained) })
	harness.Eventually(t, func() string {
		status, body, err := l.c.nodes[l.c.leader()].Get("/api/v1/jobs?state=ready&limit=1")
		if err != nil || status != 200 {
			return fmt.Sprint(status, body, err)
		}
		if len(body) > 40 {
			return "jobs are waiting: " + body
		}
		return ""
	})
	close(drained)
	workers.Wait()
	l.joined = l.verifyKeys(t)
	lost := 0
	for _, id := range l.history.verify(t) {
		// A lease may be committed while its reply never arrived: then the job is still there.
		if !l.c.find(id) {
			lost++
			t.Errorf("job %s was acknowledged and is lost", id)
		}
	}
	t.Logf("%d submissions, %d leases, %d ends acknowledged; %d lost", l.history.count(submitted),
		l.history.count(leased),
		l.history.count(finished), lost)
}
