package main

import (
	"io"
	"sync/atomic"
	"time"
)

// clients are the producers, and as many workers; inHand is how many jobs a Gearman worker has at a time, more than one
// where it stands for a pool behind one connection.
var clients, inHand = 8, 1

const runLimit = 3 * time.Minute // and what the number of jobs adds to it

// tally is what one measurement counts. The producers' loop owns the first group of fields, the workers' the second.
type tally struct {
	shape
	total int

	issued, acked int
	issuedAt      int64
	latency       histogram
	lastAck       int64

	done     atomic.Int64
	lastDone int64
	hands

	// backlog is how many unfinished jobs the producers may be ahead by; zero: any number. Without it they would be done
	// long before the workers, and what is meant to be measured at once would be measured one after the other.
	backlog int
}

// ack notes that a producer's request was answered for good.
func (t *tally) ack(took, now int64) {
	t.latency.add(took)
	if t.acked++; t.acked == t.total {
		t.lastAck = now
	}
}

// finish notes that a worker is through with a job.
func (t *tally) finish(now int64) {
	if t.done.Add(1) == int64(t.total) {
		t.lastDone = now
	}
}

func (t *tally) allAcked() bool { return t.acked >= t.total }
func (t *tally) allDone() bool  { return t.done.Load() >= int64(t.total) }

// room says whether another job may be submitted.
func (t *tally) room() bool { return t.backlog == 0 || t.issued-int(t.done.Load()) < t.backlog }

// limit bounds the time that the work may take, on a slow machine too.
func (t *tally) limit() time.Duration { return runLimit + time.Duration(t.total)*100*time.Microsecond }

// dialect is a protocol as the load program needs it.
type dialect interface {
	// producer submits jobs until the tally's total has been issued, so many at a time.
	producer(t *tally, inFlight int) session
	// caller submits one job after the other and waits for the outcome of each; nil where the protocol has no such jobs.
	caller(t *tally) session
	// worker takes jobs and finishes them.
	worker(t *tally) session
	// greet is the conversation before the first command; nil where there is none.
	greet() func(rw io.ReadWriter) error
}

// pipeline keeps a number of requests in flight.
type pipeline struct {
	tally    *tally
	inFlight int
	clock    clock
	submit   func(b []byte, n int) []byte // adds the request of the n-th job
}

func newPipeline(t *tally, inFlight int, submit func(b []byte, n int) []byte) pipeline {
	return pipeline{tally: t, inFlight: inFlight, clock: newClock(inFlight), submit: submit}
}

// fill tops the requests in flight up. It waits until half of them are answered: one by one, each would cost two system
// calls, of the load program as well as of the server.
func (p *pipeline) fill(c *conn) {
	if p.clock.n > p.inFlight/2 {
		return
	}
	for p.clock.n < p.inFlight && p.tally.issued < p.tally.total {
		if c.stalled = !p.tally.room(); c.stalled {
			return
		}
		c.out = p.submit(c.out, p.tally.issued)
		p.tally.issued++
		p.tally.issuedAt = c.now
		p.clock.start(c.now)
	}
}

// begin is also how the loop tries again where there was no room.
func (p *pipeline) begin(c *conn) { p.fill(c) }

// answered notes one reply.
func (p *pipeline) answered(c *conn) { p.tally.ack(p.clock.stop(c.now), c.now) }
