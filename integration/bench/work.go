package main

import (
	"io"
	"strings"
	"time"
)

// clients are the producers, and as many workers.
var clients = 8

const (
	bodyBytes = 256 // of every job
	runLimit  = 3 * time.Minute
)

// body is the same for every job; it is text, because Faktory's jobs are.
var body = strings.Repeat("0123456789abcdef", bodyBytes/16)

// tally is what one measurement counts. The producers' loop owns the first group of fields, the workers' the second.
type tally struct {
	total int

	issued, acked int
	latency       histogram
	lastAck       int64

	done     int
	lastDone int64
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
	if t.done++; t.done == t.total {
		t.lastDone = now
	}
}

func (t *tally) allAcked() bool { return t.acked >= t.total }
func (t *tally) allDone() bool  { return t.done >= t.total }

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
		c.out = p.submit(c.out, p.tally.issued)
		p.tally.issued++
		p.clock.start(c.now)
	}
}

func (p *pipeline) begin(c *conn) { p.fill(c) }

// answered notes one reply.
func (p *pipeline) answered(c *conn) { p.tally.ack(p.clock.stop(c.now), c.now) }
