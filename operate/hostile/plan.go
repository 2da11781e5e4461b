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

// In this order: the submission before it takes effect, the reply to it, the job's first delivery, the reply to its
// end.
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

// Ranges of delays: minimum and maximum.
const (
	lateFrom, lateTo       = 300 * time.Millisecond, 2 * time.Second
	expireFrom, expireTo   = time.Millisecond, 500 * time.Millisecond
	reorderFrom, reorderTo = 20 * time.Millisecond, 300 * time.Millisecond
)

// maxJump is the maximum error of the clock. A scheduled job can be late by twice that.
const maxJump = 10 * time.Second

// plan holds the planned faults of one job. Each fault happens once and is then cleared. Broker.mu guards it.
type plan struct {
	protocol   core.Protocol
	queue      string
	submission uint64 // number of the submission to the queue
	seq        uint64
	id         string

	busy        bool
	heldBack    time.Duration
	duplicate   bool
	expireAfter time.Duration
	drop        stage
	cutAt       float64 // the part of the reply that is sent
	late        stage
	lateBy      time.Duration
	jumps       bool
	clockOffset time.Duration // error of the broker's clock after the jump

	holder   core.ClientID // holder of the newest lease
	epoch    uint32
	leasedAt core.Instant
}

// dice are the random numbers of one kind of fault for one job, from 0 to 1. They decide whether it happens, how strong
// it is, and where it happens.
type dice struct{ happens, size, place float64 }

// roll depends only on its arguments, so every version gives the same numbers on every machine.
func roll(seed uint64, k Kind, queue string, submission uint64) dice {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %s %q %d", seed, k, queue, submission))
	number := func(i int) float64 { return float64(binary.BigEndian.Uint64(sum[8*i:])>>11) / (1 << 53) }
	return dice{number(0), number(1), number(2)}
}

// between returns a time between two others.
func (d dice) between(from, to time.Duration) time.Duration {
	return (from + time.Duration(d.size*float64(to-from))).Round(time.Millisecond)
}

// among returns one of several stages.
func (d dice) among(stages ...stage) stage { return stages[int(d.place*float64(len(stages)))] }

// newPlan plans the faults of a job.
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

// subject is the job.
func (p *plan) subject() Subject {
	return Subject{Queue: p.queue, Submission: p.submission, Protocol: p.protocol.String(), Job: p.id, Seq: p.seq}
}

// laterFaults reports whether the plan has faults after the submission.
func (p *plan) laterFaults() bool {
	return p.duplicate || p.expireAfter > 0 || p.drop >= onLease || p.late >= onLease
}
