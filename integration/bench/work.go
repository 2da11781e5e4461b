package main

import (
	"io"
	"sync/atomic"
	"time"
)

// loadSize is the number of producers and of workers, and the number of jobs that a Gearman worker holds at a time:
// more than one if it represents a pool behind one connection.
type loadSize struct{ clients, inHand int }

var (
	usual = loadSize{8, 1} // flags change it
	wide  = loadSize{64, 16}
)

const runLimit = 3 * time.Minute // and what the number of jobs adds to it

// tally holds the counts of one measurement. The producers' loop owns the first group of fields, the workers' the
// second.
type tally struct {
	shape
	loadSize
	total int

	issued, acked int
	issuedAt      int64
	latency       histogram
	lastAck       int64

	done     atomic.Int64
	lastDone int64
	workerTally

	// backlog limits the number of unfinished jobs; zero: no limit. Without a limit the producers would finish long
	// before the workers, and submitting and processing would not be measured at the same time.
	backlog int
}

// ack records the final reply to a producer's request.
func (t *tally) ack(took, now int64) {
	t.latency.add(took)
	if t.acked++; t.acked == t.total {
		t.lastAck = now
	}
}

// finish records that a worker has finished a job.
func (t *tally) finish(now int64) {
	if t.done.Add(1) == int64(t.total) {
		t.lastDone = now
	}
}

func (t *tally) allAcked() bool { return t.acked >= t.total }
func (t *tally) allDone() bool  { return t.done.Load() >= int64(t.total) }

// room reports whether another job may be submitted.
func (t *tally) room() bool { return t.backlog == 0 || t.issued-int(t.done.Load()) < t.backlog }

// limit is the maximum time for the work, generous enough for slow machines.
func (t *tally) limit() time.Duration { return runLimit + time.Duration(t.total)*100*time.Microsecond }

// dialect is the load generator's implementation of a protocol.
type dialect interface {
	// producer submits jobs until the tally's total is reached, with a number of them in flight.
	producer(t *tally, inFlight int) session
	// caller submits one job after another and waits for each result; nil if the protocol has no such jobs.
	caller(t *tally) session
	// worker leases and completes jobs.
	worker(t *tally) session
	// greet is the handshake before the first command, or nil.
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

// fill refills the requests in flight once half of them are answered: one at a time, each would cost two system calls,
// in the load generator and in the server.
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

// begin is also called when the loop retries after there was no room.
func (p *pipeline) begin(c *conn) { p.fill(c) }

// answered records one reply.
func (p *pipeline) answered(c *conn) { p.tally.ack(p.clock.stop(c.now), c.now) }
