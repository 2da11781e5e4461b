package push

import (
	"sync"

	"broker/core"
)

// counters are the counts of a target.
type counters struct {
	mu       sync.Mutex // guards the fields below
	inFlight int
	outcomes [len(Outcomes)]uint64
	seconds  float64
	last     string
	lastAt   core.Instant
}

// deliver makes the request of a job and reports the result to the broker.
func (t *target) deliver(r *core.Reply) {
	defer t.p.running.Done()
	defer func() { <-t.slots }()
	b := t.p.o.Broker
	t.counts.begin()
	started := b.Now()
	a := t.post(t.p.requests, r)
	took := max(b.Now().Sub(started), 0).Seconds()
	if a.aborted { // the next attempt follows the end of the lease
		t.counts.abandon()
		return
	}
	switch a.outcome {
	case Unreachable:
		if took = 0; t.p.requests.Err() == nil {
			t.unreachable(a.err)
		}
	case Deferred:
		t.reached()
		t.pauseFor(a.retryIn)
	case Done, Failed, Late:
		t.reached()
	}
	if !settle(b, r, &a) && a.outcome != Unreachable {
		a.outcome = Late
	}
	t.counts.end(&a, took, b.Now())
}

// settle applies an answer to its job, if the job still has the lease of the request.
func settle(b core.Broker, r *core.Reply, a *answer) bool {
	ref, held := core.Ref{Seq: r.Seq}, core.Condition{LeasedAt: r.Lease.LeasedAt}
	var op core.Op
	switch a.outcome {
	case Done:
		op = &core.Complete{Ref: ref, If: held, Authority: core.ByLeased, Result: a.result}
	case Failed:
		op = &core.Fail{
			Ref: ref, If: held, Authority: core.ByLeased, Failure: &core.Failure{Type: a.class, Message: a.err.Error()},
		}
	case Deferred:
		attempts := r.Lease.Attempts - 1 // this attempt does not count
		op = &core.Move{
			Ref: ref, If: held, Authority: core.ByLeased, ReadyAt: b.Now().Add(a.retryIn),
			Set: core.JobChange{Attempts: &attempts},
		}
	case Unreachable:
		op = &core.Release{Ref: ref, Epoch: r.Lease.Epoch}
	case Late: // only deliver sets it, after this
	}
	c := openClient(b)
	defer c.Close()
	settled, err := c.Ask(op)
	return err == nil && settled.Kind == core.Accepted
}

func (c *counters) begin() {
	c.mu.Lock()
	c.inFlight++
	c.mu.Unlock()
}

// abandon drops a request without waiting for its answer.
func (c *counters) abandon() {
	c.mu.Lock()
	c.inFlight--
	c.mu.Unlock()
}

func (c *counters) end(a *answer, seconds float64, now core.Instant) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.inFlight--
	c.outcomes[a.outcome]++
	c.seconds += seconds
	switch {
	case a.outcome == Late && a.err == nil:
		c.last, c.lastAt = "the answer came after the end of the job or of its lease", now
	case a.err != nil:
		c.last, c.lastAt = a.text(), now
	}
}

// text is the answer in one line.
func (a *answer) text() string {
	if a.class == "" {
		return a.err.Error()
	}
	return a.class + ": " + a.err.Error()
}

func (t *target) status() Status {
	s := Status{Target: t.Target}
	now := t.p.o.Broker.Now()
	t.mu.Lock()
	if t.pausedUntil > now {
		s.PausedUntil = t.pausedUntil
	}
	t.mu.Unlock()
	c := t.counts
	c.mu.Lock()
	defer c.mu.Unlock()
	s.InFlight, s.Counts, s.Seconds, s.LastError, s.LastErrorAt = c.inFlight, c.outcomes, c.seconds, c.last, c.lastAt
	return s
}
