package main

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
)

const (
	bodyBytes  = 256 // of a job, where a mode does not say otherwise
	plainQueue = "bench"
)

// shape describes the jobs of one measurement.
type shape struct {
	queues []string // job n goes to the n-th, and round again
	body   string   // the same for all; text, because Faktory's jobs are
	keyed  bool     // each has a coalescing key of its own
	due    int64    // when they may be handed out, in seconds since 1970; zero: at once
	run    uint32   // makes keys differ from those of other measurements
}

// plainShape is one queue of jobs of 256 bytes.
func plainShape() shape {
	return shape{queues: []string{plainQueue}, body: bodyOf(bodyBytes), run: rand.Uint32()}
}

func newTally(jobs int) *tally { return &tally{total: jobs, shape: plainShape(), loadSize: usual} }

func bodyOf(size int) string {
	const digits = "0123456789abcdef"
	return strings.Repeat(digits, size/len(digits)+1)[:size]
}

// queueNames returns n queue names.
func queueNames(n int) []string {
	if n == 1 {
		return []string{plainQueue}
	}
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("%s-%06d", plainQueue, i)
	}
	return names
}

func (s *shape) queue(n int) string { return s.queues[n%len(s.queues)] }

// appendKey appends the key of job n.
func (s *shape) appendKey(b []byte, n int) []byte {
	b = strconv.AppendUint(b, uint64(s.run), 16)
	return strconv.AppendInt(append(b, '-'), int64(n), 16)
}

// workerTally is the workers' half of a tally. The workers' loop owns it.
type workerTally struct {
	workers int  // that there are
	asked   int  // leases
	first   int  // number of the first job that is to be leased
	hold    bool // lease everything before anything is finished
	endless bool // go on asking when there is a lease for every job

	leases    histogram
	leased    int
	lastLease int64
	assigned  func(c *conn) // called with every job that a worker got; may be nil
	wakes     histogram     // from a submission to the worker that it woke
}

// leaser is the common part of the workers of all protocols.
type leaser struct {
	tally  *tally
	number int // among the workers
	asks   clock
	held   []byte // completions that wait for the last lease
	holds  int    // how many they are
	sent   int    // of them that have been sent since
}

func newLeaser(t *tally) leaser {
	t.workers++
	return leaser{tally: t, number: t.workers - 1, asks: newClock(max(t.inHand, 1))}
}

// next returns the queue of the next lease: the queue of the next job in order, so that with any number of queues each
// lease eventually finds a job. It returns false when all jobs have been requested.
func (h *leaser) next() (queue string, more bool) {
	t := h.tally
	if t.asked >= t.total && !t.endless {
		return "", false
	}
	n := t.first + t.asked
	t.asked++
	return t.queue(n), true
}

// ask records a sent lease request; replies arrive in order.
func (h *leaser) ask(c *conn) { h.asks.start(c.now) }

// got records a leased job and returns the buffer for its completion.
func (h *leaser) got(c *conn) *[]byte {
	t := h.tally
	t.leases.add(h.asks.stop(c.now))
	if t.leased++; t.leased == t.total {
		t.lastLease = c.now
	}
	if t.assigned != nil {
		t.assigned(c)
	}
	if t.hold {
		h.holds++
		return &h.held
	}
	return &c.out
}

// release sends the completions that were held back.
func (h *leaser) release(c *conn) {
	c.out = append(c.out, h.held...)
	h.held = nil
	h.sent += h.holds
	h.holds = 0
}
