package hostile

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"time"

	"broker/core"
)

// stage is a request about a job.
type stage uint8

// onRequest: the submission, before it takes effect. The others: its reply, the job's first delivery, the reply to its end.
const (
	never stage = iota
	onRequest
	onSubmit
	onLease
	onFinish
)

func (s stage) String() string {
	return [...]string{"", "submission", "reply to the submission", "delivery", "reply to the worker"}[s]
}

// Delays of faults: from the first to the second.
const (
	lateFrom, lateTo       = 300 * time.Millisecond, 2 * time.Second
	expireFrom, expireTo   = time.Millisecond, 500 * time.Millisecond
	reorderFrom, reorderTo = 20 * time.Millisecond, 300 * time.Millisecond
)

// maxJump is how far the clock is ahead or behind at most. A job with a time can be late by twice that.
const maxJump = 10 * time.Second

// plan is what will happen to one job. Each part happens once and is then cleared. Guarded by Broker.mu.
type plan struct {
	protocol   core.Protocol
	queue      string
	submission uint64 // the how many-th of the queue
	seq        uint64
	id         string

	busy        bool
	heldBack    time.Duration
	duplicate   bool
	expireAfter time.Duration
	drop        stage
	cutAt       float64 // share of the reply that is sent
	late        stage
	lateBy      time.Duration
	jumps       bool
	clockOffset time.Duration // of the broker's clock, once it has been set

	holder   core.ClientID // of the newest lease
	epoch    uint32
	leasedAt core.Instant
}

// dice are the random numbers of one kind of fault for one job, from 0 to 1: whether it happens, how much, and where.
type dice struct{ happens, size, place float64 }

// roll depends on its arguments only, in every version and on every machine.
func roll(seed uint64, k Kind, queue string, submission uint64) dice {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %s %q %d", seed, k, queue, submission))
	number := func(i int) float64 { return float64(binary.BigEndian.Uint64(sum[8*i:])>>11) / (1 << 53) }
	return dice{number(0), number(1), number(2)}
}

// between is a time between two others.
func (d dice) between(from, to time.Duration) time.Duration {
	return (from + time.Duration(d.size*float64(to-from))).Round(time.Millisecond)
}

// among is one of several stages.
func (d dice) among(stages ...stage) stage { return stages[int(d.place*float64(len(stages)))] }

// newPlan decides what will happen to a job.
func newPlan(seed uint64, r Rates, p core.Protocol, queue string, submission uint64) *plan {
	x := &plan{protocol: p, queue: queue, submission: submission}
	for k := range kinds {
		d := roll(seed, k, queue, submission)
		if d.happens >= r[k] {
			continue
		}
		switch k {
		case Duplicate:
			x.duplicate = true
		case Drop:
			x.drop, x.cutAt = d.among(onRequest, onSubmit, onLease, onFinish), d.size
		case Late:
			x.late, x.lateBy = d.among(onSubmit, onLease, onFinish), d.between(lateFrom, lateTo)
		case Expire:
			x.expireAfter = d.between(expireFrom, expireTo)
		case Busy:
			x.busy = true
		case Reorder:
			x.heldBack = d.between(reorderFrom, reorderTo)
		case Jump:
			x.jumps, x.clockOffset = true, d.between(-maxJump, maxJump)
		case kinds:
		}
	}
	return x
}

// laterFaults reports whether something will happen after the submission.
func (p *plan) laterFaults() bool {
	return p.duplicate || p.expireAfter > 0 || p.drop >= onLease || p.late >= onLease
}
